// Whole-file reads and atomic writes; see file_io.h. POSIX calls, because the C++ streams offer
// neither fsync nor a check for the kind of file that was opened.

#include "src/core/base/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "src/core/base/exhaustion.h"

namespace gpushare::core {
namespace {

// Makes temporary names unique among the threads of this process; the process id does the rest.
std::atomic<uint64_t> temporary_names{0};

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() { Close(); }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  int get() const { return fd_; }
  bool Close() {
    const int fd = fd_;
    fd_ = -1;
    return fd < 0 || close(fd) == 0;
  }

 private:
  int fd_;
};

absl::Status Failure(const char* action, const std::string& path, int error) {
  const std::string message =
      absl::StrCat("The file '", path, "' cannot be ", action, ": ", std::strerror(error), ".");
  return error == ENOENT ? absl::NotFoundError(message) : absl::UnavailableError(message);
}

bool WriteAll(int fd, absl::string_view piece) {
  while (!piece.empty()) {
    const ssize_t written = write(fd, piece.data(), piece.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    piece.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

absl::Status WriteTemporary(const std::string& temporary, const std::string& path,
                            absl::Span<const absl::string_view> pieces) {
  FileDescriptor file(open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (file.get() < 0) return Failure("created", temporary, errno);
  for (absl::string_view piece : pieces) {
    if (!WriteAll(file.get(), piece)) return Failure("written", temporary, errno);
  }
  // The rename must not reach the disk before the bytes do.
  if (fsync(file.get()) != 0) return Failure("synced", temporary, errno);
  if (!file.Close()) return Failure("closed", temporary, errno);
  if (std::rename(temporary.c_str(), path.c_str()) != 0) return Failure("replaced", path, errno);
  return absl::OkStatus();
}

absl::Status WriteInPlace(const std::string& path, absl::Span<const absl::string_view> pieces) {
  // Non-blocking to open, so that a FIFO without a reader is an error instead of a hang.
  FileDescriptor file(open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return Failure("opened", path, errno);
  if (fcntl(file.get(), F_SETFL, 0) != 0) return Failure("opened", path, errno);
  for (absl::string_view piece : pieces) {
    if (!WriteAll(file.get(), piece)) return Failure("written", path, errno);
  }
  if (!file.Close()) return Failure("closed", path, errno);
  return absl::OkStatus();
}

}  // namespace

bool IsSpecialFile(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode);
}

absl::Status WriteFileAtomically(const std::string& path,
                                 absl::Span<const absl::string_view> pieces) {
  if (path.empty()) return absl::InvalidArgumentError("The file name is empty.");
  // A rename would replace it by a file.
  if (IsSpecialFile(path)) return WriteInPlace(path, pieces);
  const std::string temporary = absl::StrCat(
      path, ".", getpid(), ".", temporary_names.fetch_add(1, std::memory_order_relaxed), ".tmp");
  absl::Status status = CatchExhaustion([&] { return WriteTemporary(temporary, path, pieces); });
  if (!status.ok()) unlink(temporary.c_str());
  return status;
}

absl::Status CheckWritable(const std::string& path) {
  struct stat status = {};
  if (stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    if (S_ISDIR(status.st_mode)) return Failure("written", path, EISDIR);
    return access(path.c_str(), W_OK) == 0 ? absl::OkStatus() : Failure("written", path, errno);
  }
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (access(folder.c_str(), W_OK | X_OK) != 0) return Failure("created", path, errno);
  return absl::OkStatus();
}

bool IsSameFile(const std::string& a, const std::string& b) {
  if (a == b) return true;
  struct stat one = {};
  struct stat other = {};
  return stat(a.c_str(), &one) == 0 && stat(b.c_str(), &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino && S_ISREG(one.st_mode);
}

absl::StatusOr<std::string> ReadWholeFile(const std::string& path, int64_t bytes_max) {
  // Non-blocking, so that opening a FIFO without a writer returns; regular files ignore it.
  FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return Failure("opened", path, errno);
  struct stat status;
  if (fstat(file.get(), &status) != 0) return Failure("inspected", path, errno);
  if (!S_ISREG(status.st_mode)) {
    return absl::InvalidArgumentError(absl::StrCat("'", path, "' is not a regular file."));
  }
  std::string bytes;
  char buffer[1 << 16];
  for (;;) {
    const ssize_t count = read(file.get(), buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failure("read", path, errno);
    if (count == 0) return bytes;
    // Counted while reading: the file may grow after fstat.
    if (static_cast<int64_t>(bytes.size()) + count > bytes_max) {
      return absl::InvalidArgumentError(absl::StrCat("The file '", path, "' is longer than ",
                                                     bytes_max, " bytes, which is the limit."));
    }
    bytes.append(buffer, static_cast<size_t>(count));
  }
}

}  // namespace gpushare::core
