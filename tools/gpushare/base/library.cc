#include "tools/gpushare/base/library.h"

#include <algorithm>
#include <cstddef>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/suggest.h"

namespace gpushare::tool {

namespace {

bool IsInputFault(gpushare_status status) {
  return status == GPUSHARE_INVALID_ARGUMENT || status == GPUSHARE_NOT_FOUND ||
         status == GPUSHARE_DATA_LOSS || status == GPUSHARE_ALREADY_EXISTS ||
         status == GPUSHARE_OUT_OF_RANGE;
}

template <class Function>
std::string TextOf(Function function) {
  size_t size = 0;
  Check(function(nullptr, 0, &size));
  std::string text(size, '\0');
  Check(function(text.data(), text.size(), &size));
  return text.substr(0, text.find('\0'));
}

template <class Function>
std::vector<std::string> Lines(Function function) {
  std::vector<std::string> lines;
  std::string line;
  for (const char c : TextOf(function) + "\n") {
    if (c == '\n') {
      if (!line.empty()) lines.push_back(line);
      line.clear();
    } else {
      line += c;
    }
  }
  return lines;
}

gpushare_runtime_options OptionsOf(const DeviceChoice& choice, const std::string& policy) {
  gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
  options.drive = choice.real_time ? GPUSHARE_DRIVE_THREAD : GPUSHARE_DRIVE_POLL;
  options.device = choice.device.c_str();
  options.policy = policy.c_str();
  options.profile_path = choice.profile.empty() ? nullptr : choice.profile.c_str();
  options.seed = choice.seed;
  options.sim_tier = choice.tier.c_str();
  return options;
}

}  // namespace

void Check(gpushare_status status) {
  if (status == GPUSHARE_OK) return;
  std::string message = gpushare_last_error_message();
  if (message.empty()) {
    message = std::string("The library answers ") + gpushare_status_name(status) + ".";
  }
  if (IsInputFault(status)) throw InputError(message);
  throw RunError(message);
}

std::vector<std::string> PolicyNames() {
  return Lines([](char* buffer, size_t size, size_t* out) {
    return gpushare_policy_names(buffer, size, out);
  });
}

std::vector<std::string> ProfileKernelNames(gpushare_runtime* runtime) {
  return Lines([runtime](char* buffer, size_t size, size_t* out) {
    return gpushare_profile_kernel_names(runtime, buffer, size, out);
  });
}

RuntimeHandle OpenRuntime(const DeviceChoice& choice, const std::string& policy) {
  const gpushare_runtime_options options = OptionsOf(choice, policy);
  gpushare_runtime* runtime = nullptr;
  Check(gpushare_runtime_create(&options, &runtime));
  return RuntimeHandle(runtime);
}

RuntimeHandle OpenReplay(gpushare_event_log* log, const DeviceChoice& choice,
                         const std::string& policy) {
  const gpushare_runtime_options options = OptionsOf(choice, policy);
  gpushare_runtime* runtime = nullptr;
  Check(gpushare_replay_open(log, &options, &runtime));
  return RuntimeHandle(runtime);
}

std::string ReplayDifference(gpushare_runtime* runtime) {
  return TextOf([runtime](char* buffer, size_t size, size_t* out) {
    return gpushare_replay_difference(runtime, buffer, size, out);
  });
}

EventLogHandle OpenEventLog(const std::string& path, int64_t& count) {
  gpushare_event_log* log = nullptr;
  Check(gpushare_event_log_open(path.c_str(), &log, &count));
  return EventLogHandle(log);
}

DeviceFacts FactsOf(gpushare_runtime* runtime) {
  gpushare_device_info info = GPUSHARE_DEVICE_INFO_INIT;
  Check(gpushare_device_info_get(runtime, &info));
  DeviceFacts facts;
  facts.name = info.name;
  facts.profile = info.profile;
  facts.simulated = info.simulated != 0;
  facts.virtual_time = info.virtual_time != 0;
  facts.sm_count = info.sm_count;
  return facts;
}

int64_t NowNs(gpushare_runtime* runtime) {
  int64_t now_ns = 0;
  Check(gpushare_now_ns(runtime, &now_ns));
  return now_ns;
}

void RequirePolicies(const std::vector<std::string>& policies) {
  const std::vector<std::string> known = PolicyNames();
  for (const std::string& policy : policies) {
    if (std::find(known.begin(), known.end(), policy) != known.end()) continue;
    throw InputError("The policy '" + policy.substr(0, 60) + "' is unknown" +
                     DidYouMean(policy, known) + ListOf("policies", known));
  }
}

}  // namespace gpushare::tool
