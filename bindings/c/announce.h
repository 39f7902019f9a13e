// What GPUSHARE_LOG=info says on stderr of a runtime: versions, device, profile and policy at its
// start, and each app with its promise. arrangement_notes.h says the rest.
//
// Threads: any.

#ifndef GPUSHARE_BINDINGS_C_ANNOUNCE_H_
#define GPUSHARE_BINDINGS_C_ANNOUNCE_H_

#include <string>

#include "src/core/state/options.h"

namespace gpushare::abi {

struct RuntimeObject;

// `profile` says where the profile comes from. The scheduler stands. A GPU that the profile was not
// measured on is a warning, which says what follows.
void AnnounceRuntime(const RuntimeObject& runtime, const std::string& profile);
void AnnounceApp(const RuntimeObject& runtime, const core::AppOptions& options);

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_ANNOUNCE_H_
