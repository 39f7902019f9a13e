// The profile that is built into the library: profiles/h200.json, as text made by the build
// (embed_profile.cmake), so that the library runs with no file. Threads: any.

#ifndef GPUSHARE_BINDINGS_C_BUILT_IN_PROFILE_H_
#define GPUSHARE_BINDINGS_C_BUILT_IN_PROFILE_H_

#include "absl/strings/string_view.h"

namespace gpushare::abi {

absl::string_view BuiltInProfileText();

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_BUILT_IN_PROFILE_H_
