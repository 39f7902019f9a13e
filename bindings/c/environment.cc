// Variables of the environment; see environment.h.

#include "bindings/c/environment.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "bindings/c/options.h"
#include "src/core/base/file_io.h"
#include "src/core/base/status.h"

namespace gpushare::abi {

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
  static std::atomic<int> runtimes{0};
  const absl::string_view text = EnvironmentText("GPUSHARE_TRACE");
  if (text.empty()) return std::string();
  std::string path = absl::StrReplaceAll(text, {{"%p", absl::StrCat(getpid())}});
  absl::Status status = CheckText("The path", path.c_str());
  if (status.ok()) status = core::CheckWritable(path);
  if (!status.ok()) return FromEnvironment("GPUSHARE_TRACE", status);
  if (const int number = ++runtimes; number > 1) absl::StrAppend(&path, ".", number);
  return path;
}

}  // namespace gpushare::abi
