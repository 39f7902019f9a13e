// What the simulation's tests share: the profile, a device with its kernels prepared, and a small
// hand-written loop against the device seam that runs LC beside BE as hardware.md's prototype did.

#ifndef GPUSHARE_TESTS_SIM_SIM_FIXTURE_H_
#define GPUSHARE_TESTS_SIM_SIM_FIXTURE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "src/core/seams/device.h"
#include "src/models/profile.h"
#include "src/sim/sim_device.h"

namespace gpushare::sim {

// profiles/h200_prototype.json; ends the test program when it cannot be read.
const models::Profile& H200();
const core::KernelDesc& Kernel(const std::string& name);

std::unique_ptr<core::Device> MakeDevice(Tier tier, uint64_t seed = 1,
                                         const FaultPlan& faults = {});

// Moves event by event until `done` answers true for a completion or nothing is due.
std::vector<core::DeviceCompletion> RunUntilIdle(core::Device& device);

enum class Mechanism : uint8_t {
  kAlone,      // LC without BE
  kStreams,    // ordinary grids beside it, equal priority
  kPriority,   // ordinary grids, LC's stream first
  kQuota,      // two workers an SM, never evicted, LC's stream first
  kEvictAll,   // workers on the whole GPU, evicted at each arrival
  kPartition,  // workers on the other SMs, never evicted
  kElastic,    // both: two launches on one counter, one of them evicted at each arrival
};

struct Colocation {
  Tier tier = Tier::kKernel;
  uint64_t seed = 1;
  std::string lc = "chain1";
  std::string be = "sincos_27us";
  Mechanism mechanism = Mechanism::kAlone;
  double load = 0.3;
  double lc_solo_ns = 667000;  // sets the arrival rate: the same in every mechanism
  int lc_groups = 15;          // of the LC side of a partition, with the remainder
  int queries = 3000;
  double be_task_ns = 20e6;   // one BE task alone
  bool lc_saturated = false;  // the next query starts when one ends (the spatial table)
  core::TimeNs give_up_ns = core::kNever;  // for cases without a steady state
};

struct ColocationResult {
  double lc_p50_ns = 0, lc_p99_ns = 0;
  double service_ns = 0;  // median time on the device
  double be_rate = 0;     // of its solo rate
  double eviction_p50_ns = 0, eviction_p99_ns = 0;
  double realised_load = 0;  // LC's solo time over the time that passed
  double busy_share = 0;
  int64_t queries = 0;
  double elapsed_ns = 0;
};

ColocationResult Run(const Colocation& colocation);

}  // namespace gpushare::sim

#endif  // GPUSHARE_TESTS_SIM_SIM_FIXTURE_H_
