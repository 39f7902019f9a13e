// Sentences of GPUSHARE_LOG=info; see announce.h.

#include "bindings/c/announce.h"

#include <gpushare/gpushare.h>

#include "absl/strings/str_cat.h"
#include "bindings/c/objects.h"
#include "src/core/base/exhaustion.h"
#include "src/core/promise/promise.h"
#include "src/cuda/cuda_device.h"

namespace gpushare::abi {
namespace {

std::string Milliseconds(int64_t ns) { return absl::StrCat(1e-6 * static_cast<double>(ns), " ms"); }

std::string DeviceText(const RuntimeObject& runtime) {
  const core::DeviceCapabilities& capabilities = runtime.scheduler->capabilities();
  std::string text = absl::StrCat("device ", runtime.device_name);
  if (runtime.device_name == "cuda") {
    const int driver = cuda::DriverVersion();
    absl::StrAppend(&text, " (", capabilities.profile.gpu_model, ", driver for CUDA ",
                    driver / 1000, ".", driver % 1000 / 10, ")");
  }
  absl::StrAppend(&text, ", ", capabilities.profile.sm_count, " SMs");
  if (capabilities.simulated) absl::StrAppend(&text, ", SIMULATED");
  if (capabilities.virtual_time) absl::StrAppend(&text, ", in virtual time");
  return text;
}

// Once a runtime that no caller waits for is made, a sentence without memory is left out.
template <class Sentence>
void Say(const Log& log, Sentence&& sentence) {
  if (!log.Announces()) return;
  core::CatchExhaustion([&] {
    log.Announce(sentence());
    return absl::OkStatus();
  }).IgnoreError();
}

std::string PromiseText(const core::Promise& promise) {
  std::string text;
  const auto add = [&](const std::string& part) {
    absl::StrAppend(&text, text.empty() ? "" : ", ", part);
  };
  if (promise.p99_bound > 0) add(absl::StrCat("p99 at most ", promise.p99_bound, " of alone"));
  if (promise.p50_bound > 0) add(absl::StrCat("p50 at most ", promise.p50_bound, " of alone"));
  if (promise.target_ns > 0) add("target " + Milliseconds(promise.target_ns));
  if (promise.p99_alone_ns > 0) add("p99 alone " + Milliseconds(promise.p99_alone_ns));
  return text.empty() ? "states no bound" : text;
}

}  // namespace

void AnnounceRuntime(const RuntimeObject& runtime, const std::string& profile) {
  Say(runtime.log, [&] {
    return absl::StrCat("gpushare ", gpushare_version_string(), " (ABI ", gpushare_abi_version(),
                        "): ", DeviceText(runtime), "; profile '", runtime.profile_name, "' (",
                        profile, "); policy ", runtime.policy_name, ".");
  });
  const core::DeviceProfile& device = runtime.scheduler->capabilities().profile;
  std::string measured;
  {
    core::MutexLock lock(&runtime.mutex);
    measured = runtime.profile.device.gpu_model;
  }
  if (runtime.device_name != "cuda" || device.gpu_model == measured) return;
  runtime.log.Write(
      GPUSHARE_LOG_WARNING,
      absl::StrCat(
          "No profile of the GPU '", device.gpu_model, "': the profile '", runtime.profile_name,
          "' was measured on '", measured,
          "'. Evictions and learned durations hold at once; how fast work is on part of "
          "the SMs and beside other work is not known. `gpushare calibrate` measures it in "
          "at most 30 s a kernel (docs/calibration.md)."));
}

void AnnounceApp(const RuntimeObject& runtime, const core::AppOptions& options) {
  Say(runtime.log, [&] {
    const std::string start = absl::StrCat("app '", options.name, "' is ");
    if (options.app_class == core::AppClass::kBestEffort) {
      return absl::StrCat(start, "best-effort, weight ", options.weight, ".");
    }
    return start + "latency-critical: " + PromiseText(options.promise) + ".";
  });
}

}  // namespace gpushare::abi
