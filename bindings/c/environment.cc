// Variables of the environment; see environment.h.

#include "bindings/c/environment.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "bindings/c/options.h"
#include "src/core/base/file_io.h"
#include "src/core/base/mutex.h"
#include "src/core/base/status.h"

namespace gpushare::abi {
namespace {

// Checks the path that is written. A special file holds one trace, and a name beside it is none.
absl::StatusOr<std::string> TracePath(std::string path, int number) {
  GPUSHARE_RETURN_IF_ERROR(CheckText("The path", path.c_str()));
  if (number > 1) {
    if (core::IsSpecialFile(path)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "The path '", path, "' is no regular file and holds the trace of one runtime, and this ",
          "runtime of the process has the number ", number, "."));
    }
    absl::StrAppend(&path, ".", number);
  }
  GPUSHARE_RETURN_IF_ERROR(core::CheckWritable(path));
  return path;
}

}  // namespace

absl::string_view EnvironmentText(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

absl::Status FromEnvironment(const char* variable, const absl::Status& status) {
  return {status.code(), absl::StrCat(variable, " in the environment: ", status.message())};
}

absl::Status CheckLogVariable() {
  const absl::string_view text = EnvironmentText("GPUSHARE_LOG");
  for (const absl::string_view known : {"", "error", "warning", "info"}) {
    if (text == known) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("GPUSHARE_LOG is '", text.substr(0, 60),
                                                 "', and it is 'error', 'warning' or 'info'."));
}

absl::StatusOr<std::string> TracePathOfEnvironment() {
  static core::Mutex mutex;
  static int runtimes = 0;  // that have a path
  const absl::string_view text = EnvironmentText("GPUSHARE_TRACE");
  if (text.empty()) return std::string();
  core::MutexLock lock(&mutex);
  absl::StatusOr<std::string> path =
      TracePath(absl::StrReplaceAll(text, {{"%p", absl::StrCat(getpid())}}), runtimes + 1);
  if (!path.ok()) return FromEnvironment("GPUSHARE_TRACE", path.status());
  ++runtimes;
  return path;
}

}  // namespace gpushare::abi
