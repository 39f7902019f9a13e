// Entries of the code cache: their names, their bytes, their end. See code_cache.h.

#include "src/cuda/code/code_cache.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "src/core/base/digest.h"
#include "src/core/base/file_io.h"
#include "src/core/base/status.h"

namespace gpushare::cuda {
namespace {

namespace fs = std::filesystem;

constexpr char kFolderVariable[] = "GPUSHARE_CODE_CACHE";
constexpr absl::string_view kSuffix = ".code";
constexpr absl::string_view kTemporarySuffix = ".tmp";  // of core::WriteFileAtomically
constexpr size_t kDigits = 16;
constexpr int kLockRetryMs = 5;

// The first bytes of an entry; another version of the layout has other magic.
struct EntryHeader {
  char magic[16] = {'g', 'p', 'u', 's', 'h', 'a', 'r', 'e',
                    ' ', 'c', 'o', 'd', 'e', ' ', '1', '\n'};
  uint64_t key_bytes = 0;
  uint64_t code_bytes = 0;
  uint64_t digest = 0;  // of both sizes, the key and the code
};
static_assert(sizeof(EntryHeader) == 40);

// The source as one text. Sizes stand before the parts, so that no two sources have one key.
std::string KeyOf(const CodeSource& source) {
  std::string key;
  key.reserve(source.text.size() + 128);
  for (const absl::string_view part :
       {source.form, source.options, source.assembler, source.architecture, source.text}) {
    absl::StrAppend(&key, part.size(), ":", part, ";");
  }
  return key;
}

uint64_t DigestOf(const EntryHeader& header, absl::string_view key, absl::string_view code) {
  uint64_t digest = core::kEmptyDigest;
  for (const uint64_t& bytes : {header.key_bytes, header.code_bytes}) {
    digest = core::Fnv1a(digest, {reinterpret_cast<const char*>(&bytes), sizeof(bytes)});
  }
  return core::Fnv1a(core::Fnv1a(digest, key), code);
}

// The key and the code of an entry's bytes; nothing if they are damaged.
std::optional<std::pair<absl::string_view, absl::string_view>> ReadEntry(absl::string_view file) {
  EntryHeader header;
  const EntryHeader expected;
  if (file.size() < sizeof(header)) return std::nullopt;
  std::memcpy(&header, file.data(), sizeof(header));
  file.remove_prefix(sizeof(header));
  if (std::memcmp(header.magic, expected.magic, sizeof(header.magic)) != 0) return std::nullopt;
  if (header.key_bytes > file.size() || header.code_bytes != file.size() - header.key_bytes) {
    return std::nullopt;
  }
  const absl::string_view key = file.substr(0, header.key_bytes);
  const absl::string_view code = file.substr(header.key_bytes);
  if (DigestOf(header, key, code) != header.digest) return std::nullopt;
  return std::pair{key, code};
}

// What a file counts against the bound.
int64_t Charge(uint64_t bytes) {
  return std::max(static_cast<int64_t>(bytes), core::kMinCodeCacheEntryBytes);
}

bool IsEntryName(absl::string_view name) {
  return name.size() == kDigits + kSuffix.size() && absl::EndsWith(name, kSuffix) &&
         name.substr(0, kDigits).find_first_not_of("0123456789abcdef") == absl::string_view::npos;
}

// What a writer left behind that ended too early.
bool IsTemporaryName(absl::string_view name) {
  return absl::EndsWith(name, kTemporarySuffix) &&
         IsEntryName(name.substr(0, kDigits + kSuffix.size()));
}

// FAILED_PRECONDITION unless nobody but this user and root may change what the folder holds.
absl::Status CheckFolder(const std::string& folder) {
  struct stat status = {};
  if (stat(folder.c_str(), &status) != 0) {
    return absl::UnavailableError(absl::StrCat(
        "The code cache '", folder, "' cannot be inspected: ", std::strerror(errno), "."));
  }
  const bool ours = status.st_uid == geteuid() || status.st_uid == 0;
  if (S_ISDIR(status.st_mode) && ours && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat("The code cache '", folder,
                   "' is not used: it must be a folder that only this user or root may write to."));
}

// The lock of a folder, which ends with the object or the process.
class FolderLock {
 public:
  explicit FolderLock(const std::string& folder)
      : fd_(open(absl::StrCat(folder, "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600)) {}
  ~FolderLock() {
    if (fd_ >= 0) close(fd_);
  }
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  absl::Status Take() const {
    if (fd_ < 0) {
      return absl::UnavailableError(
          absl::StrCat("The code cache cannot be written: ", std::strerror(errno), "."));
    }
    for (int waited_ms = 0; flock(fd_, LOCK_EX | LOCK_NB) != 0; waited_ms += kLockRetryMs) {
      if (waited_ms >= core::kCodeCacheLockMsMax) {
        return absl::UnavailableError("Another process writes to the code cache.");
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(kLockRetryMs));
    }
    return absl::OkStatus();
  }

 private:
  const int fd_;
};

std::string Variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

}  // namespace

CodeCache::CodeCache(std::string folder, int64_t bytes_max)
    : folder_(std::move(folder)), bytes_max_(bytes_max) {}

std::string CodeCache::FolderOfEnvironment() {
  std::string given = Variable(kFolderVariable);
  if (given == "off") return "";
  if (!given.empty()) return given;
  // As the XDG specification has it: a relative path does not count.
  const std::string cache = Variable("XDG_CACHE_HOME");
  if (absl::StartsWith(cache, "/")) return cache + "/gpushare/code";
  const std::string home = Variable("HOME");
  return absl::StartsWith(home, "/") ? home + "/.cache/gpushare/code" : "";
}

std::string CodeCache::PathOf(absl::string_view key) const {
  return absl::StrCat(folder_, "/",
                      absl::Hex(core::Fnv1a(core::kEmptyDigest, key), absl::kZeroPad16), kSuffix);
}

std::optional<std::string> CodeCache::Find(const CodeSource& source) const {
  if (folder_.empty() || !CheckFolder(folder_).ok()) return std::nullopt;
  const std::string key = KeyOf(source);
  const std::string path = PathOf(key);
  const absl::StatusOr<std::string> file = core::ReadWholeFile(path, bytes_max_);
  if (!file.ok()) return std::nullopt;
  const auto entry = ReadEntry(*file);
  if (!entry.has_value()) {
    unlink(path.c_str());
    return std::nullopt;
  }
  if (entry->first != key) return std::nullopt;  // another source with this digest
  // Its last use, which decides what goes first; a folder that is only read has none.
  static_cast<void>(utimensat(AT_FDCWD, path.c_str(), nullptr, 0));
  return std::string(entry->second);
}

absl::Status CodeCache::Keep(const CodeSource& source, absl::string_view code) const {
  if (folder_.empty()) return absl::FailedPreconditionError("No code cache is in use.");
  const std::string key = KeyOf(source);
  EntryHeader header;
  header.key_bytes = key.size();
  header.code_bytes = code.size();
  header.digest = DigestOf(header, key, code);
  const int64_t bytes = Charge(sizeof(header) + key.size() + code.size());
  if (bytes > bytes_max_) {
    return absl::ResourceExhaustedError(absl::StrCat("The code has ", bytes,
                                                     " bytes with its source, and the code cache "
                                                     "holds ",
                                                     bytes_max_, "."));
  }
  GPUSHARE_RETURN_IF_ERROR(MakeFolder());
  const FolderLock lock(folder_);
  GPUSHARE_RETURN_IF_ERROR(lock.Take());
  MakeRoom(bytes);
  return core::WriteFileAtomically(
      PathOf(key), {{reinterpret_cast<const char*>(&header), sizeof(header)}, key, code});
}

void CodeCache::Drop(const CodeSource& source) const {
  if (folder_.empty() || !CheckFolder(folder_).ok()) return;
  unlink(PathOf(KeyOf(source)).c_str());
}

absl::Status CodeCache::MakeFolder() const {
  std::error_code error;
  if (const fs::path parent = fs::path(folder_).parent_path(); !parent.empty()) {
    fs::create_directories(parent, error);
  }
  static_cast<void>(mkdir(folder_.c_str(), 0700));  // CheckFolder says what failed
  return CheckFolder(folder_);
}

// The folder's lock is held: whatever is temporary was left behind.
void CodeCache::MakeRoom(int64_t bytes) const {
  struct Entry {
    fs::file_time_type used;
    int64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  int64_t total = bytes;
  std::error_code error;
  for (fs::directory_iterator next(folder_, error); !error && next != fs::directory_iterator();
       next.increment(error)) {
    const std::string name = next->path().filename().string();
    std::error_code gone;
    if (IsTemporaryName(name)) fs::remove(next->path(), gone);
    if (!IsEntryName(name)) continue;
    Entry entry{next->last_write_time(gone), Charge(next->file_size(gone)), next->path()};
    if (gone) continue;  // a reader found it damaged and removed it
    total += entry.bytes;
    entries.push_back(std::move(entry));
  }
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= bytes_max_) return;
    std::error_code gone;
    fs::remove(entry.path, gone);
    total -= entry.bytes;
  }
}

}  // namespace gpushare::cuda
