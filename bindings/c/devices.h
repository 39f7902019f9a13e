// Which device a runtime opens, and the faults of a simulated one.
//
// Where in the flow: runtime creation. Threads: any.

#ifndef GPUSHARE_BINDINGS_C_DEVICES_H_
#define GPUSHARE_BINDINGS_C_DEVICES_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "bindings/c/log.h"
#include "src/core/seams/device.h"
#include "src/core/seams/device_profile.h"
#include "src/sim/faults.h"

namespace gpushare::abi {

struct DeviceChoice {
  absl::string_view device;  // "auto", "cuda", "sim", "sim:realtime", "null"
  bool device_of_environment = false;
  int ordinal = 0;
  uint64_t seed = 0;
  absl::string_view sim_tier;    // empty: "kernel"
  absl::string_view sim_faults;  // empty: none
  core::DeviceProfile profile;
};

struct OpenDevice {
  const char* name = "";  // "cuda", "sim", "sim:realtime", "null"; lives as long as the library
  std::unique_ptr<core::Device> device;
};

// Whether its kernels need simulation records: the simulated device in virtual or in real time.
bool RunsRecords(absl::string_view device_name);

// Sets the device: the application's option, else GPUSHARE_DEVICE from the environment, else
// "auto".
void ChooseDevice(const char* option, DeviceChoice& choice);

// "auto" without a GPU opens the simulated device and logs that once.
absl::StatusOr<OpenDevice> MakeDevice(const DeviceChoice& choice, const Log& log);

// A comma-separated list: `launch_error=5` fires at the fifth call, `hang=p0.01` at each call with
// probability 0.01; values are numbers. docs/abi.md lists the names.
absl::StatusOr<sim::FaultPlan> ParseFaults(absl::string_view text);

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_DEVICES_H_
