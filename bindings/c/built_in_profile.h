// The profile that is built into the library, so that the library runs with no file.
//
// The build parses profiles/h200.json and what it says was learned, and keeps both as constant
// arrays (pack_profile.cc). They are read and checked like a file's. Threads: any.

#ifndef GPUSHARE_BINDINGS_C_BUILT_IN_PROFILE_H_
#define GPUSHARE_BINDINGS_C_BUILT_IN_PROFILE_H_

#include "src/models/json/json_document.h"

namespace gpushare::abi {

models::JsonDocument BuiltInProfile();
// The profile's `learned`, which is a JSON text of its own. Without one: an empty record.
models::JsonDocument BuiltInLearned();

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_BUILT_IN_PROFILE_H_
