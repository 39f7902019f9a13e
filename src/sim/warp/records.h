// What a simulation is asked and what it answers. The call is in simulation.h.
//
// Threads: any; these are values.

#ifndef GPUSHARE_SRC_SIM_WARP_RECORDS_H_
#define GPUSHARE_SRC_SIM_WARP_RECORDS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "src/sim/warp/issue_unit.h"
#include "src/sim/warp/machine.h"
#include "src/sim/warp/memory.h"
#include "src/sim/warp/program.h"

namespace gpushare::sim::warp {

inline constexpr size_t kMaxLaunches = 16;
inline constexpr int64_t kMaxPriority = 1 << 20;
// 256 times the longest run of the figures. A simulation of more cycles is refused, not cut.
inline constexpr int64_t kMaxCycles = int64_t{1} << 40;

// One kernel. Earlier launches are placed first and have older warps.
struct KernelLaunch {
  const Program* program = nullptr;
  int resident_blocks = 1;  // on the SM at once, as far as there is room
  int64_t at_cycle = 0;
  int64_t priority = 1;  // real-time priority; larger is more urgent. Read by rt-paws alone.
};

struct IssueRecord {
  int64_t cycle = 0;
  int scheduler = 0;
  int launch = 0;
  int64_t warp = 0;  // identifier: the order of arrival on the SM, from 0
};

struct SimulationOptions {
  Machine machine;
  WarpPolicy policy = WarpPolicy::kGto;
  IssueRules rules;
  uint64_t seed = 1;  // of bank conflicts drawn from a range
  int64_t cycles_max = int64_t{1} << 32;
  std::vector<IssueRecord>* log = nullptr;  // gets the first log_max issues
  size_t log_max = 0;
};

struct KernelResult {
  int64_t start_cycle = 0;       // its launch
  int64_t last_issue_cycle = 0;  // what figure 4.1 counts
  int64_t end_cycle = 0;         // everything that it issued is complete
  int64_t instructions = 0;
};

struct SimulationResult {
  std::vector<KernelResult> kernels;
  int64_t cycles = 0;  // until the last instruction has issued
  int64_t instructions = 0;
  int64_t slots = 0;  // issue slots of all schedulers in these cycles
  MemoryCounts memory;
};

}  // namespace gpushare::sim::warp

#endif  // GPUSHARE_SRC_SIM_WARP_RECORDS_H_
