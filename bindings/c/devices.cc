// Which device a runtime opens; see devices.h.

#include "bindings/c/devices.h"

#include "absl/strings/str_cat.h"
#include "bindings/c/environment.h"
#include "src/cuda/cuda_device.h"
#include "src/null/null_device.h"
#include "src/sim/sim_device.h"

namespace gpushare::abi {
namespace {

constexpr char kSim[] = "sim";
constexpr char kSimInRealTime[] = "sim:realtime";

absl::StatusOr<OpenDevice> MakeSim(const DeviceChoice& choice, bool real_time) {
  sim::SimOptions options;
  options.real_time = real_time;
  options.profile = choice.profile;
  options.seed = choice.seed;
  if (choice.sim_tier == "block") {
    options.tier = sim::Tier::kBlock;
  } else if (!choice.sim_tier.empty() && choice.sim_tier != "kernel") {
    return absl::InvalidArgumentError(
        absl::StrCat("The tier '", choice.sim_tier, "' is neither 'kernel' nor 'block'."));
  }
  absl::StatusOr<sim::FaultPlan> faults = ParseFaults(choice.sim_faults);
  if (!faults.ok()) return faults.status();
  options.faults = *faults;
  absl::StatusOr<std::unique_ptr<core::Device>> device = sim::MakeSimDevice(options);
  if (!device.ok()) return device.status();
  return OpenDevice{real_time ? kSimInRealTime : kSim, *std::move(device)};
}

}  // namespace

bool RunsRecords(absl::string_view device_name) {
  return device_name == kSim || device_name == kSimInRealTime;
}

void ChooseDevice(const char* option, DeviceChoice& choice) {
  const absl::string_view text = EnvironmentText("GPUSHARE_DEVICE");
  choice.device_of_environment = option == nullptr && !text.empty();
  if (option != nullptr) {
    choice.device = option;
  } else {
    choice.device = text.empty() ? "auto" : text;
  }
}

absl::StatusOr<OpenDevice> MakeDevice(const DeviceChoice& choice, const Log& log) {
  if (choice.device == "null") return OpenDevice{"null", null::MakeNullDevice()};
  if (RunsRecords(choice.device)) return MakeSim(choice, choice.device == kSimInRealTime);
  if (choice.device != "cuda" && choice.device != "auto") {
    const absl::Status unknown = absl::InvalidArgumentError(
        absl::StrCat("The device '", choice.device.substr(0, 60),
                     "' is none of 'auto', 'cuda', 'sim', 'sim:realtime' and 'null'."));
    return choice.device_of_environment ? FromEnvironment("GPUSHARE_DEVICE", unknown) : unknown;
  }
  absl::StatusOr<std::unique_ptr<core::Device>> device =
      cuda::MakeCudaDevice(choice.ordinal, choice.profile);
  if (device.ok()) return OpenDevice{"cuda", *std::move(device)};
  if (choice.device == "cuda") return device.status();
  log.Write(GPUSHARE_LOG_WARNING,
            absl::StrCat("The device is SIMULATED, because: ", device.status().message()));
  return MakeSim(choice, false);
}

}  // namespace gpushare::abi
