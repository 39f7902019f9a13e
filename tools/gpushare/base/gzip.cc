// Decompression by the program gzip; see gzip.h.

#include "tools/gpushare/base/gzip.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <vector>

#include "tools/gpushare/base/errors.h"

namespace gpushare::tool {

namespace {

bool IsCompressed(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  char magic[2] = {};
  return file.read(magic, sizeof(magic)) && magic[0] == '\x1f' && magic[1] == '\x8b';
}

// Starts `gzip -dc` on the file. What it prints comes out of the answer.
int StartGzip(const std::string& path, pid_t& child) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) throw RunError("No pipe to gzip can be made.");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::string name = "gzip";
  std::string options = "-dc";
  std::string end_of_options = "--";
  std::string file = path;
  char* const arguments[] = {name.data(), options.data(), end_of_options.data(), file.data(),
                             nullptr};
  const int failed = posix_spawnp(&child, "gzip", &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  if (failed == 0) return ends[0];
  close(ends[0]);
  throw InputError("'" + path + "' is compressed, and the program gzip does not start.");
}

// Copies up to `bytes_max`; returns what was copied, or -1 if the target cannot be written.
int64_t Copy(int from, std::FILE* to, int64_t bytes_max) {
  std::vector<char> buffer(1 << 16);
  int64_t copied = 0;
  while (copied <= bytes_max) {
    const ssize_t got = read(from, buffer.data(), buffer.size());
    if (got <= 0) break;
    if (std::fwrite(buffer.data(), 1, static_cast<size_t>(got), to) != static_cast<size_t>(got)) {
      return -1;
    }
    copied += got;
  }
  return copied;
}

std::FILE* MakeTemporary(std::string& path) {
  path = (std::filesystem::temp_directory_path() / "gpushare_XXXXXX").string();
  const int file = mkstemp(path.data());
  std::FILE* const stream = file < 0 ? nullptr : fdopen(file, "wb");
  if (stream == nullptr) throw RunError("No temporary file can be made as '" + path + "'.");
  return stream;
}

}  // namespace

Uncompressed::Uncompressed(const std::string& path, int64_t bytes_max) : path_(path) {
  if (!IsCompressed(path)) return;
  pid_t child = 0;
  const int output = StartGzip(path, child);
  std::FILE* const stream = MakeTemporary(temporary_);
  int64_t copied = Copy(output, stream, bytes_max);
  if (std::fclose(stream) != 0) copied = -1;
  close(output);  // ends a gzip that would go on
  int status = 0;
  waitpid(child, &status, 0);
  path_ = temporary_;
  if (copied >= 0 && copied <= bytes_max && status == 0) return;
  std::filesystem::remove(temporary_);
  if (copied < 0) throw RunError("The temporary file '" + temporary_ + "' cannot be written.");
  if (copied > bytes_max) {
    throw InputError("'" + path + "' holds more than " + std::to_string(bytes_max) +
                     " bytes when it is decompressed.");
  }
  throw InputError("'" + path + "' is compressed, and gzip cannot read it.");
}

Uncompressed::~Uncompressed() {
  std::error_code ignored;
  if (!temporary_.empty()) std::filesystem::remove(temporary_, ignored);
}

}  // namespace gpushare::tool
