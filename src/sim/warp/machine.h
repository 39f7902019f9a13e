// The SM that is simulated: schedulers, functional units, caches, and its share of L2 and DRAM.
//
// One SM stands for all: every SM of the GPU runs the same work on other data, so it has 1/SMs of
// the L2 capacity and of the bandwidth of L2 and DRAM. Times are cycles of the SM's clock.
// Threads: any; the tables are constants.

#ifndef GPUSHARE_SRC_SIM_WARP_MACHINE_H_
#define GPUSHARE_SRC_SIM_WARP_MACHINE_H_

#include <array>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "src/sim/warp/program.h"

namespace gpushare::sim::warp {

inline constexpr int kMaxSchedulers = 8;
inline constexpr int kMaxWarpsPerScheduler = 64;  // bits of a mask
inline constexpr int64_t kLineBytes = 128;
inline constexpr int64_t kSectorBytes = 32;

// One class of instructions on one scheduler's unit.
struct UnitTiming {
  int32_t latency = 1;   // from issue until a dependent instruction may issue
  int32_t interval = 1;  // from issue until the unit takes the next instruction
};

struct Machine {
  std::string name;
  int schedulers = 4;
  int warps = 64;        // resident at once
  int64_t l1_bytes = 0;  // L1 and shared memory together
  int64_t l2_bytes = 0;  // this SM's share
  std::array<UnitTiming, kOpKinds> units = {};

  // The load-store unit, which all schedulers share. It passes one line or one bank pass a cycle.
  int32_t lsu_queue = 8;           // cycles of work that may wait in it
  int32_t l1_latency = 1;          // a hit
  int32_t l2_latency = 1;          // a hit in L2, behind its queue
  int32_t dram_latency = 1;        // a miss, behind both queues
  double l2_bytes_per_cycle = 32;  // this SM's share
  double dram_bytes_per_cycle = 8;
  int32_t outstanding_lines = 256;  // lines of loads and stores in flight
};

// Table 4.1's TITAN V. Its L2 is 4.5 MB for 80 SMs.
Machine TitanV();
// The H200 of docs/hardware.md.
Machine H200();
// Unit latencies and intervals everywhere and one scheduler of four warps: the example of 4.4.3.
Machine ExampleMachine();

// Errors: INVALID_ARGUMENT with the value and the limit.
absl::Status Check(const Machine& machine);

}  // namespace gpushare::sim::warp

#endif  // GPUSHARE_SRC_SIM_WARP_MACHINE_H_
