// The shape of a measurement: take a sample several times and keep the median of each of its
// values.
//
//   GPUSHARE_ASSIGN_OR_RETURN(
//       const auto medians, MediansOf<2>(timer, repeats, [&]() -> absl::StatusOr<Sample<2>> {
//         GPUSHARE_ASSIGN_OR_RETURN(const TimedLaunch a, timer.RunOne(one));
//         GPUSHARE_ASSIGN_OR_RETURN(const TimedLaunch b, timer.RunOne(other));
//         return Sample<2>{a.duration_ns(), b.duration_ns()};
//       }));
//
// Everything that one sample times runs in turn, so that a drift of the clocks affects all of its
// values alike. Threads: one.

#ifndef GPUSHARE_SRC_CALIBRATION_LAUNCH_REPEAT_H_
#define GPUSHARE_SRC_CALIBRATION_LAUNCH_REPEAT_H_

#include <array>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "src/calibration/launch/timing.h"
#include "src/core/base/status.h"
#include "src/models/samples/row_times.h"

namespace gpushare::models {

// A latency is small and varies, so its median is of this many times `repeats` samples.
inline constexpr int kLatencySamples = 3;

// The values of one sample; an empty one does not count.
template <size_t kValues>
using Sample = std::array<std::optional<double>, kValues>;

// Every value of `times` samples, in the order taken. The first `warm_ups` calls of `take` come on
// top and do not count. Returns early when a sample fails or the caller cancels.
template <size_t kValues, class Take>
absl::StatusOr<std::array<std::vector<double>, kValues>> RepeatsOf(const LaunchTimer& timer,
                                                                   int times, Take take,
                                                                   int warm_ups = 0) {
  std::array<std::vector<double>, kValues> values;
  for (int i = -warm_ups; i < times; ++i) {
    GPUSHARE_RETURN_IF_ERROR(timer.CheckCancelled());
    GPUSHARE_ASSIGN_OR_RETURN(const Sample<kValues> sample, take());
    for (size_t v = 0; i >= 0 && v < kValues; ++v) {
      if (sample[v].has_value()) values[v].push_back(*sample[v]);
    }
  }
  return values;
}

// The median of each value, 0 of one that never counted.
template <size_t kValues, class Take>
absl::StatusOr<std::array<double, kValues>> MediansOf(const LaunchTimer& timer, int times,
                                                      Take take, int warm_ups = 0) {
  GPUSHARE_ASSIGN_OR_RETURN(auto values, RepeatsOf<kValues>(timer, times, take, warm_ups));
  std::array<double, kValues> medians{};
  for (size_t v = 0; v < kValues; ++v) medians[v] = Median(std::move(values[v]));
  return medians;
}

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_CALIBRATION_LAUNCH_REPEAT_H_
