// The tuned constants of the planners: value, unit, reason, and the range that simulation may draw
// it from.

#ifndef GPUSHARE_SRC_CORE_POLICIES_TUNING_H_
#define GPUSHARE_SRC_CORE_POLICIES_TUNING_H_

#include <cstdint>

namespace gpushare::core::tuning {

// BE tasks of one app issued ahead when no LC app states a target: one runs and one hides the
// launch latency (4.5 us). Range 1 to 4.
inline constexpr int32_t kBeWindowPerApp = 2;

// Live BE launches on one place: the workers of one fill it, the second hides the launch latency
// between tasks of different queues. Range 1 to 2.
inline constexpr int32_t kBeWindowPerPlace = 2;

// What one return to the LC side and one eviction cost BE, ns: hysteresis, launch call and latency
// (2.0 + 2.8 + 4.5), and half of the eviction write (2.0). Range 5,000 to 30,000.
inline constexpr int64_t kReturnGapNs = 11'000;

// Another layout must be better by this much predicted throughput, share of the device. Range 0 to
// 0.1.
inline constexpr double kLayoutHysteresis = 0.02;

// Slower service that an LC app tolerates that states neither bound nor target, as a factor: the 5
// % that the library promises. Range 1 to 1.2.
inline constexpr double kUnstatedInflation = 1.05;

// Loads are rounded to 1 / kLoadSteps before a layout is chosen, so that the choice is remembered
// while a smoothed load wanders. Range 16 to 256.
inline constexpr int32_t kLoadSteps = 64;

// The queueing factor has a pole at 1; a measured load above this is noise or overload.
inline constexpr double kLoadMax = 0.98;

// A running task gets a part on another place only with so much left, ns: its launch takes 7.3 us
// to call and to start. Range 0 to 100,000.
inline constexpr int64_t kElasticPartNsMin = 20'000;

// The smallest piece of a copy, bytes: alone it takes 8.4 us, 7.2 of them latency (MEASURED), so
// that smaller ones only lose. Range 16,384 to 1,048,576.
inline constexpr int64_t kCopyPieceBytesMin = 65'536;

// A BE copy's piece as a share of the smallest blocking budget, in a direction that LC apps use.
// Between queries it may take half; while one is active, every further query of the busy period may
// meet a piece, so that it takes an eighth (copies.json: p99 1.25 x alone with the whole budget).
// Ranges 1 to 4 and 4 to 16.
inline constexpr int64_t kIdlePieceDivisor = 2;
inline constexpr int64_t kActivePieceDivisor = 8;

// Pieces end on pages, bytes.
inline constexpr int64_t kCopyPieceAlignment = 4'096;

// BE work that a layout keeps out is judged again so often while an LC app's load fades, ns: the
// load changes without any event. Short against its window (500 ms). Range 1 to 100 ms.
inline constexpr int64_t kLoadLookNs = 10'000'000;

// Layout choices that are remembered; a wandering load visits a few steps.
inline constexpr int32_t kLayoutsRemembered = 8;

}  // namespace gpushare::core::tuning

#endif  // GPUSHARE_SRC_CORE_POLICIES_TUNING_H_
