// The simulated device: a GPU in virtual time, made from a DeviceProfile and the kernels'
// simulation records.
//
// In the flow it stands where the GPU stands: behind core::Device. Time moves only in AdvanceTo.
// Invariants: the same options and the same calls give the same completions; every accepted launch
// is reported exactly once unless a fault says otherwise; every block task of a counter runs
// exactly once. Threads: every call from any thread (one mutex inside); NowNs takes no lock.
// Launch, Evict and PollCompletions do not allocate.

#ifndef GPUSHARE_SRC_SIM_SIM_DEVICE_H_
#define GPUSHARE_SRC_SIM_SIM_DEVICE_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "src/core/seams/device.h"
#include "src/core/seams/device_profile.h"
#include "src/sim/faults.h"

namespace gpushare::sim {

// How finely SMs are told apart. Both tiers run the same model; a test holds them together.
enum class Tier : uint8_t {
  kKernel = 0,  // one state for each group of SMs: fluid, a few events a launch
  kBlock = 1,   // one state for each SM, each with a phase of its own
};

struct SimOptions {
  core::DeviceProfile profile;
  uint64_t seed = 1;
  Tier tier = Tier::kKernel;
  FaultPlan faults;
};

// INVALID_ARGUMENT when the profile has sizes, rates or latencies that no GPU can have.
absl::StatusOr<std::unique_ptr<core::Device>> MakeSimDevice(const SimOptions& options);

}  // namespace gpushare::sim

#endif  // GPUSHARE_SRC_SIM_SIM_DEVICE_H_
