// The tuned constants of promises, and those that evidence and policies share with them: each with
// its unit, its reason and the range that simulation may draw it from.

#ifndef GPUSHARE_SRC_CORE_PROMISE_TUNING_H_
#define GPUSHARE_SRC_CORE_PROMISE_TUNING_H_

#include <cstdint>

#include "src/core/queueing/queue_tail.h"

namespace gpushare::core {

// Share of a promise that a plan keeps for errors: of the slack of a p99 bound, bound - 1, with
// waits on the whole device, and of an absolute target with a split's predicted p99. VGG-16 at 80 %
// of its peak had a p99 of up to 1.07 times the target where all of it was planned with (H100, 600
// queries): a split's speed is known within 2 %, and the queue amplifies the error. Range 0 to 0.2.
inline constexpr double kKeptForErrors = 0.1;
inline constexpr double kPlannedShare = 1 - kKeptForErrors;
// The same of a bound's slack on a split, whose slowdown and eviction both err. VGG-19 and
// BERT-base at loads of 0.3 and 0.5 beside training steps and sgemm (H200, 20 rows): a mean p99
// of 1.045 and BE of 0.577 with all of it, 1.031 and 0.557 with these shares and
// the least credit, 1.042 and 0.537 with 0.8 for both and no least credit.
inline constexpr double kKeptOfSplit = 2 * kKeptForErrors;
inline constexpr double kBoundShareOfSplit = 1 - kKeptOfSplit;
// The same by queries that earlier BE work made slower (evidence/be_duty.h): what is left pays for
// a split's errors, and for those of the judgement.
inline constexpr double kDutyShareOfBound = 1 - 2 * kKeptOfSplit;
static_assert(kDutyShareOfBound <= kBoundShareOfSplit && kBoundShareOfSplit <= kPlannedShare,
              "what errs more may use less");
// A measured speed errs by this share. So it is the most that is left of a wide bound, as a share
// of the p99 alone, and the least that a change of the arrangement must promise. Range 0.01 to 0.1.
inline constexpr double kSpeedError = 0.02;
inline constexpr double kBoundMarginMax = kSpeedError;
// The least share of the device, or of time, that is worth what it costs to get: by a trial of an
// unknown pair, above the best arrangement that is known; by two BE kernels on the same SMs, of
// which one runs below its speed for the time of a launch when the other ends; for BE work, of idle
// periods and as its duty. Range 0.02 to 0.2.
inline constexpr double kGainMin = 0.05;
// Inflation of its latency that an LC app without bound and target still keeps to, as a factor: the
// 5 % that the library promises. Range 1 to 1.2.
inline constexpr double kUnstatedInflation = 1.05;

// An LC app with a target and no known p99: factor on the estimate of its p99 (queue_tail.h). It
// starts above 1, because the load is unknown at first, and late queries raise it. Range 1.5 to 3.
inline constexpr double kTargetTailStart = 2;
// Bounds of the factor. Regular arrivals have a shorter tail than random ones, bursts a longer one.
inline constexpr double kTargetTailMin = 1 / kTargetTailStart;
inline constexpr double kTargetTailMax = kTargetTailStart * kTargetTailStart;
// The LC side of a split must carry the app's peak load, and at least this. Its queries leave a
// side when their queue is empty, which a burst prevents on a side that is too small. Range 0.3 to
// 0.8.
inline constexpr double kTargetLoadFloor = 0.5;

// Largest load that the queueing factor 1 / (1 - load) is computed with; a measured load above it
// may be one of 1.
inline constexpr double kLoadMax = 1 - kSpeedError;
// Highest load of the LC side of a split at the peak of an app with a target, and of a device on
// which the time until a queue is empty again is computed. Nearer to 1 the queue's length is
// anyone's guess.
inline constexpr double kQueueLoadMax = kPlannedShare;
static_assert(kTargetLoadFloor < kQueueLoadMax && kQueueLoadMax < kLoadMax);
// Loads are rounded to 1 / kLoadSteps before an arrangement is chosen: small changes of a smoothed
// load then ask the same question, whose answer is remembered. A load below half a step is none.
// Range 16 to 256.
inline constexpr int32_t kLoadSteps = 64;

// Most credit of a tail account, queries: the late ones of 10,000. A task that is likely to delay
// more starts at a full account.
inline constexpr double kTailCreditMax = 1 / kLateOfP99;

// Longest time, ns, for which heads that pair with what runs pass over a head that is next by
// weight and pairs with nothing. Range 1e6 to 1e9.
inline constexpr int64_t kBePassedNsMax = 10'000'000;

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_PROMISE_TUNING_H_
