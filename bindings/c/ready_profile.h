// The profile of a new runtime, and what it says was learned.
//
// A process that makes many runtimes mostly gives each the same file. The last file's text and what
// was read from it are kept; the same text is not parsed again. Invariant: the answer is that of
// reading the file anew. Threads: any.

#ifndef GPUSHARE_BINDINGS_C_READY_PROFILE_H_
#define GPUSHARE_BINDINGS_C_READY_PROFILE_H_

#include <string>

#include "absl/status/statusor.h"
#include "src/models/learned/learned.h"
#include "src/models/profile/profile.h"

namespace gpushare::abi {

struct ReadyProfile {
  models::Profile profile;  // without its learned text
  models::Learned learned;
};

absl::StatusOr<ReadyProfile> ReadBuiltInProfile();
absl::StatusOr<ReadyProfile> ReadProfileFile(const std::string& path);

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_READY_PROFILE_H_
