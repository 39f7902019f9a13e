// How many block tasks a worker takes with one claim.
//
// A claim costs a barrier, a read of the eviction word and an atomic addition; an evicted worker
// executes all that it has claimed. The choice is the smallest batch whose overhead is within 2 %,
// the goal of the worker form, under a cap of 50 us for the block tasks of one claim. A device asks
// with the model of the cost, kernel_benchmark with measurements. Threads: any.

#ifndef GPUSHARE_SRC_CORE_CHECKS_CLAIM_BATCH_H_
#define GPUSHARE_SRC_CORE_CHECKS_CLAIM_BATCH_H_

#include <algorithm>
#include <cstdint>

#include "src/core/base/limits.h"
#include "src/core/base/overhead_search.h"
#include "src/core/base/tuning.h"

namespace gpushare::core {

// The largest batch under the cap. A block task of unknown length (0) is taken alone.
inline uint32_t ClaimBatchUnderCap(double block_task_ns) {
  if (!(block_task_ns > 0)) return 1;
  const double most = std::min<double>(kClaimCapNs / block_task_ns, kClaimBatchMax);
  return most < 1 ? 1 : static_cast<uint32_t>(most);
}

// `overhead_of(batch)`: of the worker form over the original grid, measured or predicted.
template <class OverheadOf>
OverheadChoice ChooseClaimBatch(double block_task_ns, OverheadOf overhead_of) {
  return FindSmallestWithin(1, ClaimBatchUnderCap(block_task_ns), kClaimOverheadMax,
                            kClaimOverheadSlack, overhead_of);
}

// By the model: claims of at least kClaimCostNs / kClaimOverheadMax = 5 us.
inline uint32_t PredictClaimBatch(double block_task_ns) {
  return ChooseClaimBatch(block_task_ns,
                          [block_task_ns](uint32_t batch) {
                            // Of an unknown length only a single block task is asked about.
                            return block_task_ns > 0 ? kClaimCostNs / (batch * block_task_ns) : 0;
                          })
      .value;
}

// The batch of one launch: smaller where a few workers would otherwise claim all block tasks.
inline uint32_t ClaimBatchOfLaunch(uint32_t batch, int64_t block_tasks, int64_t workers) {
  const int64_t fair = block_tasks / (kClaimsPerWorker * std::max<int64_t>(1, workers));
  return static_cast<uint32_t>(std::clamp<int64_t>(fair, 1, std::max<uint32_t>(1, batch)));
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_CHECKS_CLAIM_BATCH_H_
