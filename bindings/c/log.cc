// Output of log messages; see log.h.

#include "bindings/c/log.h"

#include <cstdio>

#include "bindings/c/environment.h"
#include "bindings/c/errors.h"
#include "src/core/base/application_call.h"

namespace gpushare::abi {
namespace {

gpushare_log_level LevelFromEnvironment() {
  const absl::string_view level = EnvironmentText("GPUSHARE_LOG");
  if (level == "error") return GPUSHARE_LOG_ERROR;
  if (level == "warning") return GPUSHARE_LOG_WARNING;
  if (level == "info") return GPUSHARE_LOG_INFO;
  return 0;
}

const char* LevelName(gpushare_log_level level) {
  switch (level) {
    case GPUSHARE_LOG_ERROR:
      return "error";
    case GPUSHARE_LOG_WARNING:
      return "warning";
    default:
      return "info";
  }
}

}  // namespace

Log::Log(gpushare_log_callback callback, void* user) : callback_(callback), user_(user) {
  stderr_level_ = LevelFromEnvironment();
}

void Log::Write(gpushare_log_level level, const char* message) const {
  if (callback_ != nullptr) {
    const CallbackScope scope;
    if (core::ThrownBy([&] { callback_(user_, level, message); }).empty()) return;
    // The callback threw: the message goes where it would go without one.
  }
  if (level <= stderr_level_) {
    std::fprintf(stderr, "gpushare: %s: %s\n", LevelName(level), message);
  }
}

void Log::Announce(const std::string& sentence) const {
  if (Announces()) std::fprintf(stderr, "gpushare: info: %s\n", sentence.c_str());
}

}  // namespace gpushare::abi
