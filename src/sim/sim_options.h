// The options of a simulated device: which GPU, in which detail, with which seed and faults.
//
// Threads: plain data.

#ifndef GPUSHARE_SRC_SIM_SIM_OPTIONS_H_
#define GPUSHARE_SRC_SIM_SIM_OPTIONS_H_

#include <cstdint>

#include "src/core/seams/device_profile.h"
#include "src/sim/faults.h"

namespace gpushare::sim {

// The resolution of SMs. Both tiers run the same model; tests/sim/tiers_agree_test.cc compares
// them.
enum class Tier : uint8_t {
  kKernel = 0,  // one state for each group of SMs: a few events a launch
  kBlock = 1,   // one state, with its own phase, for each SM
};

struct SimOptions {
  core::DeviceProfile profile;
  uint64_t seed = 1;
  Tier tier = Tier::kKernel;
  bool real_time = false;  // time passes as on the steady clock, not in AdvanceTo
  FaultPlan faults;
};

}  // namespace gpushare::sim

#endif  // GPUSHARE_SRC_SIM_SIM_OPTIONS_H_
