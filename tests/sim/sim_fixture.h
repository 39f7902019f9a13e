// What the simulation's tests share: the profile, a device with its kernels prepared, and a small
// loop against the device seam. The loop runs LC beside BE as the prototype of hardware.md did.

#ifndef GPUSHARE_TESTS_SIM_SIM_FIXTURE_H_
#define GPUSHARE_TESTS_SIM_SIM_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/core/seams/device.h"
#include "src/models/profile/profile.h"
#include "src/sim/sim_device.h"

namespace gpushare::sim {

// profiles/h200_prototype.json. Ends the test program if the file cannot be read.
const models::Profile& H200();
const core::KernelDesc& Kernel(const std::string& name);
// profiles/h200.json, which has counters and fused pairs.
const models::Profile& Calibrated();

std::unique_ptr<core::Device> MakeDevice(Tier tier, uint64_t seed = 1,
                                         const FaultPlan& faults = {});

// Advances from event to event until `done` returns true for a completion, or nothing is due.
std::vector<core::DeviceCompletion> RunUntilIdle(core::Device& device);

enum class Mechanism : uint8_t {
  kAlone,      // LC without BE
  kStreams,    // ordinary grids beside it, equal priority
  kPriority,   // ordinary grids, LC's stream first
  kQuota,      // two workers an SM, never evicted, LC's stream first
  kEvictAll,   // workers on the whole GPU, evicted at each arrival
  kPartition,  // workers on the other SMs, never evicted
  kElastic,    // both sides: two launches on one counter; one is evicted at each arrival
};

struct Colocation {
  Tier tier = Tier::kKernel;
  uint64_t seed = 1;
  std::string lc = "chain1";
  std::string be = "sincos_27us";
  Mechanism mechanism = Mechanism::kAlone;
  double load = 0.3;
  double lc_solo_ns = 667000;  // sets the same arrival rate for every mechanism
  int lc_groups = 15;          // groups of the LC side of a partition, which also has the remainder
  int queries = 3000;
  double be_task_ns = 20e6;   // duration of one BE task alone
  bool lc_saturated = false;  // each query starts when the last one ends (the spatial table)
  core::TimeNs give_up_ns = core::kNever;  // for cases without a steady state
};

struct ColocationResult {
  double lc_p50_ns = 0, lc_p99_ns = 0;
  double service_ns = 0;  // median time on the device
  double be_rate = 0;     // as a share of its solo rate
  double eviction_p50_ns = 0, eviction_p99_ns = 0;
  double realised_load = 0;  // LC's solo time over the elapsed time
  double busy_share = 0;
  int64_t queries = 0;
  double elapsed_ns = 0;
};

ColocationResult Run(const Colocation& colocation);

}  // namespace gpushare::sim

#endif  // GPUSHARE_TESTS_SIM_SIM_FIXTURE_H_
