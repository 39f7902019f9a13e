// Tuned constants: one table, each with its unit, its reason and the range that simulation may draw
// it from. Bounds are in limits.h.

#ifndef GPUSHARE_SRC_CORE_BASE_TUNING_H_
#define GPUSHARE_SRC_CORE_BASE_TUNING_H_

#include <cstdint>

namespace gpushare::core {

// Window of the smoothed LC load. Long against a query (0.5-1 ms), short against a change of load
// in a day's trace. Range 50 ms to 2 s.
inline constexpr double kLoadWindowNs = 500e6;

// Weight of the newest query in an app's smoothed solo time. Range 0.02 to 0.3.
inline constexpr int64_t kQuerySoloShift = 4;  // 1/16

// An eviction that takes longer than factor x its predicted p99 + floor was blocked: with 16 busy
// streams the write waited for whole kernels (MEASURED). Ranges 2 to 8, 0.2 to 5 ms.
inline constexpr int64_t kBlockedEvictionFactor = 4;
inline constexpr int64_t kBlockedEvictionFloorNs = 1000 * 1000;

// The scheduler's thread spins so long after the last work before it parks: waking it costs the
// submitter a system call and the query some 50 us. Longer than the gaps between the queries of a
// loaded LC app, short against idle hours. Range 0 to 100 ms.
inline constexpr int64_t kSpinIdleNs = 10 * 1000 * 1000;

// What a BE app may be behind the others in attained time, ns. Without a bound, an app that came
// late or asked for nothing would have the device to itself until it had caught up: seconds in
// which the others wait. Long against a task (2-8 ms). Range 10 ms to 1 s.
inline constexpr int64_t kFairCreditNs = 100 * 1000 * 1000;

// BE work waits so long, from when it was ready, for what a fused launch needs: a few block tasks
// until a lane is empty, ns. A fused launch saves a fraction of a task, so that waiting for longer
// than a task takes (2-8 ms) cannot pay. Range 0.1 to 2 ms.
inline constexpr int64_t kFusedWaitNs = 1000 * 1000;

// Claims of a worker (claim_batch.h). The worker form may cost so much, 0.02 = 2 %; range 0.005 to
// 0.05. An evicted worker executes all that it has claimed, ns: with an LC query's headroom in
// mind; range 10 to 500 us.
inline constexpr double kClaimOverheadMax = 0.02;
inline constexpr double kClaimCapNs = 50'000;
// What a claim adds to a worker's time, ns. The SM's other workers run on meanwhile, so it is less
// than the claim's latency of about 1 us. Range 50 to 300.
inline constexpr double kClaimCostNs = 100;
// Batches whose measured overheads differ by less are alike: of them the smallest is the soonest
// evicted. Range 0 to 0.005.
inline constexpr double kClaimOverheadSlack = 0.002;
// A worker of a whole task claims at least so often: the last claims must not be the tail. Range 4
// to 32.
inline constexpr int64_t kClaimsPerWorker = 8;

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_TUNING_H_
