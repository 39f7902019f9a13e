// In which order a calibration measures, and what share of its time each kind of record gets.
//
// stages.cc runs the stages in this order, again and again, until nothing is left or the time is
// over. Pure functions. Threads: any.

#ifndef GPUSHARE_SRC_CALIBRATION_STAGES_PLAN_H_
#define GPUSHARE_SRC_CALIBRATION_STAGES_PLAN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "src/models/profile/calibration_record.h"

namespace gpushare::models {

enum class Stage : uint8_t {
  kKernels = 0,     // durations, workers and speeds
  kRest = 1,        // slices and evictions
  kPartitions = 2,  // pairs on the two sides of a split
  kCoResident = 3,
  kFused = 4,
};
inline constexpr size_t kStages = 5;

// What a stage measures, as notes name it, and its share of the time of a bounded calibration.
// Without durations nothing else can be measured or planned; the other kinds are worth the same.
struct StageShare {
  const char* what;
  double share;
};
inline constexpr std::array<StageShare, kStages> kStageShares = {{
    {"kernels", 0.4},
    {"kernels' slices and evictions", 0.15},
    {"pairs on partitions", 0.15},
    {"co-resident pairs", 0.15},
    {"fused kernels", 0.15},
}};

// Seconds of the `seconds_left` for `stage`, which shares them with the later stages that have work
// (`work[stage]` measurements left). Later stages may use the time that a stage leaves.
double SecondsOfStage(Stage stage, double seconds_left, const std::array<size_t, kStages>& work);

using ItemPair = std::pair<size_t, size_t>;

// Indices of kernels: queries (not 0 in `queries`) first, because one of them gives every evictable
// kernel a pair, then the parts of fused kernels, then the others.
std::vector<size_t> KernelsByValue(absl::Span<const uint8_t> queries,
                                   absl::Span<const ItemPair> fused_parts);

// Indices of `pairs`, the most valuable first. A memory-intensive and a compute-intensive kernel
// can gain most from sharing SMs, two of a kind least (`intensities` are those of the items). Among
// equal pairs every item gets a first partner before any gets a second.
std::vector<size_t> PairsByValue(absl::Span<const ItemPair> pairs,
                                 absl::Span<const Intensity> intensities);

// Indices of fused kernels with the given parts. Those that spill (not 0 in `spills`) come first,
// because they only have to be noted; then one variant of every pair before the second of any.
std::vector<size_t> FusedByValue(absl::Span<const ItemPair> parts,
                                 absl::Span<const uint8_t> spills);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_STAGES_PLAN_H_
