// Assembled code on disk, so that a text is assembled once and not by every process.
//
//   CodeCache cache(CodeCache::FolderOfEnvironment());
//   std::optional<std::string> code = cache.Find(source);
//   if (!code) { code = assemble...; cache.Keep(source, *code).IgnoreError(); }
//
// The cache only saves time: what cannot be read or written is assembled again.
// Invariants: an entry is whole or absent (written under a temporary name and renamed). It has the
// whole source, which is compared, and a checksum over all bytes; one that fails is removed. The
// folder is used only where it belongs to this user or to root and nobody else may write to it,
// because what it holds is executed. Writers hold the lock of the folder, so that several processes
// keep its bound together; readers need no lock. Files of other names are never touched.
// Threads: any, of any process.

#ifndef GPUSHARE_SRC_CUDA_CODE_CODE_CACHE_H_
#define GPUSHARE_SRC_CUDA_CODE_CODE_CACHE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "src/core/base/limits.h"

namespace gpushare::cuda {

// All that decides which code comes out.
struct CodeSource {
  absl::string_view text;          // PTX of all these forms
  absl::string_view form;          // which forms the text has: "original+worker+slice"
  absl::string_view options;       // of the assembler
  absl::string_view assembler;     // its name and version
  absl::string_view architecture;  // "sm_90a"
};

class CodeCache {
 public:
  // In this folder, which is made when the first entry is kept. "": nothing is kept. An entry of
  // the least recent use goes when all would have more than `bytes_max`.
  explicit CodeCache(std::string folder, int64_t bytes_max = core::kMaxCodeCacheBytes);

  // GPUSHARE_CODE_CACHE, else gpushare/code in the user's cache folder; "" where it is "off" or no
  // folder is known.
  static std::string FolderOfEnvironment();

  const std::string& folder() const { return folder_; }

  // The code of this source, if it is kept. An entry that is damaged is removed. Blocks: reads a
  // file.
  std::optional<std::string> Find(const CodeSource& source) const;

  // Blocks: writes a file, and waits for other writers, at most kCodeCacheLockMsMax.
  // Errors: FAILED_PRECONDITION nothing is kept, or the folder is not safe; RESOURCE_EXHAUSTED the
  // code is larger than the cache; UNAVAILABLE another process writes, or the system's reason.
  absl::Status Keep(const CodeSource& source, absl::string_view code) const;

  // Removes the entry: its code turned out to be of no use.
  void Drop(const CodeSource& source) const;

 private:
  std::string PathOf(absl::string_view key) const;
  absl::Status MakeFolder() const;
  void MakeRoom(int64_t bytes) const;

  const std::string folder_;
  const int64_t bytes_max_;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_CODE_CODE_CACHE_H_
