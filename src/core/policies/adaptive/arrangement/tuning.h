// The tuned constants of adaptive: each with its unit, its reason and the range that simulation may
// draw it from. Those of promises and of what queries show are in promise/tuning.h and
// evidence/tuning.h.

#ifndef GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_TUNING_H_
#define GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_TUNING_H_

#include <cstdint>

#include "src/core/base/tuning.h"
#include "src/core/promise/tuning.h"
#include "src/core/queueing/queue_tail.h"

namespace gpushare::core {

// --- what a change must gain --------------------------------------------------------------------

// Values closer than this are alike, and a load or a speed below it is none. Range 1e-12 to 1e-6.
inline constexpr double kTie = 1e-9;

// Least gain in predicted throughput for a change of the arrangement, share of the device.
inline constexpr double kLayoutHysteresis = kSpeedError;
static_assert(kGainMin > kLayoutHysteresis, "what a trial shows to be better is also chosen");
// What one return to the LC side and one eviction cost BE, ns: hysteresis, launch call and latency
// (2.0 + 2.8 + 4.5), and half of the eviction write (2.0). Range 5,000 to 30,000.
inline constexpr int64_t kReturnGapNs = 11'000;
// A running task gets a part on another place only with at least this much left, ns: the launch of
// a part takes 7.3 us to call and to start, and its eviction costs as much.
inline constexpr int64_t kElasticPartNsMin = 2 * kReturnGapNs;
// Segments of a graph that are on the device, on average, when it leaves a place: half of the one
// that runs, and those behind it. Beside BERT-base queries on an H200 a training step of 80 us
// segments got 0.68 on a split of 64 and 68 SMs and 0.45 on one of 100 and 32, where it got 0.51 on
// the whole device; predicted so: 0.67 and 0.38.
inline constexpr double kSegmentsLeft = kSegmentsOutstanding - 1.0 / 2;

// --- the queue on the LC side of a split --------------------------------------------------------

// Added to a smoothed load before the queue of a split is judged: this many of its standard
// deviations, and at least this share of the device. An uncuttable task keeps the split for up to
// its whole length, 33 times as long on 4 of 132 SMs, so an error lasts. Ranges 2 to 4 and 0.02 to
// 0.1.
inline constexpr double kLayoutLoadErrors = 3;
inline constexpr double kLayoutLoadMargin = 0.05;

// --- lag (arrangement/lag.h) --------------------------------------------------------------------

// A queue that left a split by its lag comes back when the lag is below this share of what made it
// leave, or when it is empty: a queue that has just caught up would leave again. Range 0 to 0.5.
inline constexpr double kLagReturn = 0.25;
static_assert(kLagReturn < 1, "a queue comes back with less lag than it left with");

// --- shift (arrangement/shift.h) ----------------------------------------------------------------

// What else a question has in steps (kLoadSteps): shares of idle periods, rounded down, and times,
// rounded up to 1 / steps of the next power of two; factors of a target, rounded up; the largest
// slowdown of a side, which for a bound of 1.05 is 1.05 to 1.1, rounded down.
inline constexpr int32_t kIdleShareSteps = kLoadSteps / 2;
inline constexpr int32_t kTargetTailSteps = kIdleShareSteps / 2;
inline constexpr int32_t kSlowdownSteps = 2 * kLoadSteps;
// Least share of idle periods in which BE work runs beyond the bounds. Less is not worth the
// question, and is left to the tail account.
inline constexpr double kIdleShareMin = kGainMin;
static_assert(kIdleShareMin * kIdleShareSteps > 1, "a step above none is not the least");

// --- BE work on a place, and beside queries -----------------------------------------------------

// Live BE launches on one place: the workers of one fill it, the second hides the launch latency
// between tasks of different queues. Grids and segments beside queries too: a third gained nothing.
// Range 1 to 2.
inline constexpr int32_t kBeWindowPerPlace = 2;
static_assert(kBeWindowPerPlace <= kQuotaLanes);
// What BE grids beside queries gain, share of LC's time: 0.05 to 0.13, 0.09 on the mean, of eleven
// pairs on an H200. Range 0.02 to 0.1.
inline constexpr double kGridGain = 0.09;
// The load from which this gain is worth the longer queries. Range 0.1 to 0.5.
inline constexpr double kGridLoadMin = 0.3;
// Share of a target that stays unused beside grids, for errors of predictions.
inline constexpr double kGridReserve = kKeptForErrors;
// What a fused launch costs an LC kernel beyond its slowdown, ns: the kernel waits until the host
// has seen the end of the one before it and has called the launch, as long as BE work takes to
// return.
inline constexpr int64_t kFusedTurnNs = kReturnGapNs;
// Shortest LC query, ns, whose grids may wait for empty SMs (empty_sms.h). An H200 showed a gain
// for kernels of 2 ms and more (bfs took 1.5 times as long without), and none for nn, which takes
// 0.7 ms. Range 5e5 to 5e6.
inline constexpr int64_t kEmptySmsQueryNs = 1'500'000;
// Longest wait, an eviction's p99, share of the query. The kernel that gained least, pathfinder,
// took 1.085 times as long without. Range 0.02 to 0.1.
inline constexpr double kEmptySmsWaitMax = 0.08;

// --- copies (carry_out/be_copies.h) -------------------------------------------------------------

// The smallest piece of a copy, bytes. Alone it takes 8.4 us, 7.2 us of them latency
// (docs/hardware.md): a smaller piece only adds latency. Range 16,384 to 1,048,576.
inline constexpr int64_t kCopyPieceBytesMin = 65'536;
// Pieces of a copy end on pages, bytes. Range 512 to 65,536.
inline constexpr int64_t kCopyPieceAlignment = 4'096;
static_assert(kCopyPieceBytesMin % kCopyPieceAlignment == 0);
// A BE copy's piece takes this share of the smallest blocking budget, in a direction that LC apps
// use: half of it between queries, an eighth while a query is active. Then every further query of
// the busy period may meet a piece (copies.json: p99 1.25 x alone with the whole budget). Ranges 1
// to 4 and 4 to 16.
inline constexpr int64_t kActivePieceDivisor = 8;
inline constexpr int64_t kIdlePieceDivisor = kActivePieceDivisor / 2 / 2;
// Longest piece of a copy of pageable memory beside LC apps, ns: as long as a segment, or 1 MB at
// 10 GB/s. Shorter ones lose throughput to the launch of each, some 10 us.
inline constexpr int64_t kPageablePieceNs = kSegmentNs;

// --- when to look again -------------------------------------------------------------------------

// While an LC app's load fades, BE work that an arrangement keeps out is judged again after this
// time, ns: the load changes without any event. Short against kLoadWindowNs.
inline constexpr int64_t kLoadLookNs = kBePassedNsMax;
// Choices of an arrangement that are remembered; a smoothed load moves over a few steps. Range 1 to
// 64.
inline constexpr int32_t kLayoutsRemembered = 8;

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_POLICIES_ADAPTIVE_ARRANGEMENT_TUNING_H_
