// Whole-file reads and writes with a bound and without half-written results.
//
// Used where the library touches a file: profiles, event logs, traces. Never on the submit, plan or
// launch paths. Threads: any; two writers of one path: the last rename wins, neither file is torn.

#ifndef GPUSHARE_SRC_CORE_BASE_FILE_IO_H_
#define GPUSHARE_SRC_CORE_BASE_FILE_IO_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace gpushare::core {

// Writes the pieces one after the other to a temporary name beside `path`, syncs it and renames it:
// a crash leaves the old file or the new one. What is no regular file (/dev/null, a FIFO) is
// written in place and stays what it is. Blocks: yes; on a FIFO until its reader has taken all
// bytes. Errors: UNAVAILABLE with the path and the system's reason.
absl::Status WriteFileAtomically(const std::string& path,
                                 absl::Span<const absl::string_view> pieces);

// Whether WriteFileAtomically could write the file now: its folder exists and takes a new file.
// Says nothing of the space that is left. Blocks: yes. Errors: as WriteFileAtomically, and
// NOT_FOUND.
absl::Status CheckWritable(const std::string& path);

// Whether the path names a device, a FIFO or a socket. Blocks: yes.
bool IsSpecialFile(const std::string& path);

// Whether both paths name one file that exists, or are the same text. Blocks: yes.
bool IsSameFile(const std::string& a, const std::string& b);

// Blocks: yes. Errors: NOT_FOUND, UNAVAILABLE, and INVALID_ARGUMENT for a file that is longer than
// `bytes_max` or that is not a regular file (a FIFO would never end).
absl::StatusOr<std::string> ReadWholeFile(const std::string& path, int64_t bytes_max);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_FILE_IO_H_
