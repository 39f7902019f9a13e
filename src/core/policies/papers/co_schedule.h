// FindCoSchedule of Kernelet's algorithm 1: which two kernels run slices side by side, and how
// large the slices are.
//
// A slice is one wave: its blocks are resident all at once, beside the other kernel's. So the
// workers of a co-schedule (snapshot.h) are the blocks of an SM. Of a pair the balanced ratio
// counts (eq. 8): the one with the least difference in the slices' times. Of all pairs the one with
// the largest CP counts (eq. 1), less what slices cost: their gaps, ramps and tails, as a
// calibration measured them of each kernel alone, and once the pair has run, as it did.
//
// Pairs of kernels that are alike are pruned (4.3): PUR and MUR both closer than their thresholds.
// Where all were measured none is: the table is there, and pruning saves nothing. Else the
// thresholds fit this GPU: the paper's, halved until they prune no pair that was measured to gain,
// and until a pair is left. Threads: any. Pure; nothing allocates.

#ifndef GPUSHARE_SRC_CORE_POLICIES_PAPERS_CO_SCHEDULE_H_
#define GPUSHARE_SRC_CORE_POLICIES_PAPERS_CO_SCHEDULE_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

// How much of the pipeline and of the memory bandwidth a kernel uses alone, of 1.
struct Utilization {
  double pur = 0;
  double mur = 0;
};
// From the kernel's counters, else from the demands of its simulation record. None: nobody knows.
std::optional<Utilization> UtilizationOf(const KernelDesc& kernel);

// alpha_p and alpha_m; of the C2050 where nothing says more.
struct PruningThresholds {
  double pur = 0.4;
  double mur = 0.1;
};
// A pair is pruned when both differences are under their thresholds. The text (4.3) says "or"; only
// "and" gives the numbers of table 6 (docs/models.md).
bool IsPruned(const Utilization& a, const Utilization& b, const PruningThresholds& thresholds);
// The paper's thresholds, halved until they prune no pair of the table that was measured and gains.
PruningThresholds ThresholdsFor(const CoScheduleTable& table);

// A kernel that is pending: its first task, and whether it has another.
struct PendingKernel {
  const HeadView* task = nullptr;
  const HeadView* second = nullptr;  // another task of the same kernel
};

struct CoSchedule {
  std::array<const HeadView*, 2> tasks = {};  // null: no pair gains
  std::array<int32_t, 2> blocks_per_sm = {};  // of a slice
  double profit = 0;                          // CP of slices
  // The pair of the next largest CP that gains; null: there is none.
  std::array<const HeadView*, 2> runner_up = {};
  double runner_up_profit = 0;
};

// `ahead`: slices of a task on the device, of which all but one wait behind another. `must`: a task
// that has to be one of the two; null: none has.
CoSchedule FindCoSchedule(const Snapshot& snapshot, absl::Span<const PendingKernel> kernels,
                          int32_t ahead, const HeadView* must);

// Block tasks of a slice that is of no pair: whole waves of all workers, as few as cost at most
// kSliceOverheadMax by the calibration, or by the gaps between them.
int64_t SliceAlone(const Snapshot& snapshot, const HeadView& task, int32_t ahead);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_PAPERS_CO_SCHEDULE_H_
