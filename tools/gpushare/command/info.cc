// What this installation is; see info.h.

#include "tools/gpushare/command/info.h"

#include <gpushare/gpushare.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "tools/gpushare/base/library.h"
#include "tools/gpushare/base/text.h"

namespace gpushare::tool {

namespace {

void AddWarning(void* user, gpushare_log_level level, const char* message) {
  if (level > GPUSHARE_LOG_WARNING) return;
  static_cast<std::string*>(user)->append("warning: ").append(message).append("\n");
}

std::string VariablesText() {
  std::vector<std::string> set;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    if (text.rfind("GPUSHARE_", 0) == 0) set.push_back("environment: " + text + "\n");
  }
  std::sort(set.begin(), set.end());
  std::string text;
  for (const std::string& line : set) text += line;
  return text.empty() ? "environment: no GPUSHARE_ variable is set\n" : text;
}

// The trace of a runtime that does nothing would replace one that the user keeps.
class WithoutTrace {
 public:
  WithoutTrace() {
    const char* const path = std::getenv(kVariable);
    if (path != nullptr) path_ = path;
    unsetenv(kVariable);
  }
  ~WithoutTrace() {
    if (!path_.empty()) setenv(kVariable, path_.c_str(), 1);
  }
  WithoutTrace(const WithoutTrace&) = delete;
  WithoutTrace& operator=(const WithoutTrace&) = delete;

 private:
  static constexpr char kVariable[] = "GPUSHARE_TRACE";
  std::string path_;
};

std::string DeviceText(const gpushare_device_info& info) {
  std::string text = Format("device: %s, %d SMs", info.name, info.sm_count);
  if (info.simulated != 0) text += ", SIMULATED";
  if (info.virtual_time != 0) text += ", in virtual time";
  if (info.partitions != 0) text += Format(", splits in groups of %d SMs", info.sm_granularity);
  return text + "\n";
}

}  // namespace

std::string InfoText() {
  const std::string variables = VariablesText();
  const WithoutTrace without_trace;
  std::string warnings;
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  options.drive = GPUSHARE_DRIVE_POLL;  // nothing runs, so no thread can outrun virtual time
  options.log = AddWarning;
  options.log_user = &warnings;
  gpushare_runtime* opened = nullptr;
  Check(gpushare_runtime_create(&options, &opened));
  const RuntimeHandle runtime(opened);
  gpushare_device_info info = GPUSHARE_DEVICE_INFO_INIT;
  Check(gpushare_device_info_get(opened, &info));
  std::string text = Format("gpushare: %s (C ABI %u)\n", gpushare_version_string(),
                            static_cast<unsigned>(gpushare_abi_version()));
  text += DeviceText(info) + warnings;
  text += Format("profile: %s\npolicy: %s\n", info.profile, info.policy);
  return text + variables;
}

}  // namespace gpushare::tool
