// What the environment sets where the application left a runtime option at its default
// (docs/environment.md). A value that means nothing is an error that names its variable.
//
// Threads: any; as with std::getenv, nobody may change the environment meanwhile.

#ifndef GPUSHARE_BINDINGS_C_ENVIRONMENT_H_
#define GPUSHARE_BINDINGS_C_ENVIRONMENT_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace gpushare::abi {

// The value of a variable; "" where it is not set.
absl::string_view EnvironmentText(const char* variable);

// The same failure, of a value that came from this variable.
absl::Status FromEnvironment(const char* variable, const absl::Status& status);

// INVALID_ARGUMENT unless GPUSHARE_LOG is empty or a level.
absl::Status CheckLogVariable();

// The path of GPUSHARE_TRACE for one runtime, "" for none. "%p" in it is the process. Further
// runtimes of the process get the ending ".2" and so on, so that none replaces another's file; a
// special file (/dev/null, a FIFO) is refused for them.
absl::StatusOr<std::string> TracePathOfEnvironment();

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_ENVIRONMENT_H_
