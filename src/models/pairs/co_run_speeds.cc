// Runs of co-schedules, and their weight against a prediction; see co_run_speeds.h.

#include "src/models/pairs/co_run_speeds.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <tuple>

namespace gpushare::models {
namespace {

// A mean follows the last so many runs.
constexpr int64_t kFollowedRuns = 64;
// Single runs of one pair differ by at least so much, and means of many runs from one day to
// another: repeats of an H200's pairs (docs/models.md).
constexpr double kRunError = 0.03;
constexpr double kMeanError = 0.02;
// Runs in a row that begin a mean anew, and how far from it they are: Tacker refits at 10 % (VI-C).
constexpr int32_t kFarRuns = 3;
constexpr double kFar = 0.1;
// A prediction that is farther from the runs than three standard deviations of both is wrong.
constexpr double kContradicts = 3;
// A smaller change of a speed changes no plan.
constexpr double kAnnouncedStep = 0.01;
constexpr double kSpeedMin = 0.02;
// A single run tells nothing of other numbers of workers.
constexpr int64_t kRunsForOthers = 2;

double Square(double value) { return value * value; }

}  // namespace

UncertainSpeed SpeedOf(const CoRunMean& runs) {
  if (runs.samples <= 0 || !(runs.speed > 0)) return {};
  const double run_error = std::max(Square(kRunError), runs.squared_error);
  const double count = static_cast<double>(std::min(runs.samples, kFollowedRuns));
  return {runs.speed, std::sqrt(run_error / count + Square(kMeanError))};
}

UncertainSpeed Combine(const UncertainSpeed& predicted, const UncertainSpeed& measured) {
  const double both = std::hypot(predicted.error, measured.error);
  const double weight = Square(predicted.error) / Square(both);  // of what was measured
  return {predicted.speed * std::pow(measured.speed / predicted.speed, weight),
          predicted.error * measured.error / both};
}

UncertainSpeed Combine(const UncertainSpeed& predicted, const CoRunMean& runs) {
  const UncertainSpeed measured = SpeedOf(runs);
  if (!(measured.speed > 0)) return predicted;
  const bool known = predicted.error < 1 && predicted.speed > 0;
  if (!known) return runs.samples >= CoRunSpeeds::kRunsTrusted ? measured : UncertainSpeed{};
  const double off = std::abs(std::log(measured.speed / predicted.speed));
  const bool contradicted =
      runs.samples >= kFarRuns && off > kContradicts * std::hypot(predicted.error, measured.error);
  return contradicted ? measured : Combine(predicted, measured);
}

// Several runs in a row that are all far above the mean, or all far below, begin it anew.
bool CoRunSpeeds::Observe(const CoRunPair& pair, int32_t workers, int32_t neighbour_workers,
                          double speed) {
  if (!(speed > 0)) return false;  // NaN too
  const double value = std::clamp(speed, kSpeedMin, 1.0);
  Point& point = PointFor(pair, workers, neighbour_workers);
  point.observed = ++observed_;
  CoRunMean& mean = point.value.mean;
  const double off = mean.samples > 0 ? value / mean.speed - 1 : 0;
  const bool same_side = point.far == 0 || (point.far > 0) == (off > 0);
  if (std::abs(off) <= kFar || !same_side) {
    point.far = 0;
    point.far_sum = 0;
  }
  if (std::abs(off) > kFar) {
    point.far += off > 0 ? 1 : -1;
    point.far_sum += value;
  }
  if (std::abs(point.far) >= kFarRuns) {
    mean = {kFarRuns, point.far_sum / kFarRuns, 0};
    point.far = 0;
    point.far_sum = 0;
    point.announced = mean.speed;
    return true;
  }
  ++mean.samples;
  const double weight = 1 / static_cast<double>(std::min(mean.samples, kFollowedRuns));
  mean.squared_error += weight * (Square(off) - mean.squared_error);
  mean.speed += weight * (value - mean.speed);
  // The error bar shrinks by a third with each doubling at most, so these are few.
  const bool doubled =
      mean.samples <= kFollowedRuns && std::has_single_bit(static_cast<uint64_t>(mean.samples));
  if (!doubled && std::abs(mean.speed / point.announced - 1) <= kAnnouncedStep) return false;
  point.announced = mean.speed;
  return true;
}

const CoRunMean* CoRunSpeeds::Find(const CoRunPair& pair, int32_t workers,
                                   int32_t neighbour_workers) const {
  const auto found = pairs_.find(pair);
  if (found == pairs_.end()) return nullptr;
  for (const Point& point : found->second) {
    if (point.value.mean.samples > 0 && point.value.workers == workers &&
        point.value.neighbour_workers == neighbour_workers) {
      return &point.value.mean;
    }
  }
  return nullptr;
}

const CoRunPoint* CoRunSpeeds::Nearest(const CoRunPair& pair, int32_t workers,
                                       int32_t neighbour_workers) const {
  const auto found = pairs_.find(pair);
  if (found == pairs_.end()) return nullptr;
  const CoRunPoint* nearest = nullptr;
  int32_t least = 0;
  for (const Point& point : found->second) {
    if (point.value.mean.samples < kRunsForOthers) continue;
    const int32_t far = std::abs(point.value.workers - workers) +
                        std::abs(point.value.neighbour_workers - neighbour_workers);
    if (far == 0 || (nearest != nullptr && far >= least)) continue;
    nearest = &point.value;
    least = far;
  }
  return nearest;
}

// An empty point, else the least recently observed one. Restored points count as never observed.
CoRunSpeeds::Point& CoRunSpeeds::PointFor(const CoRunPair& pair, int32_t workers,
                                          int32_t neighbour_workers) {
  if (pairs_.size() >= kPairsMax && !pairs_.contains(pair)) MakeRoom();
  Points& points = pairs_[pair];
  const auto goes_first = [](const Point& a, const Point& b) {
    return std::tuple(a.value.mean.samples > 0, a.observed) <
           std::tuple(b.value.mean.samples > 0, b.observed);
  };
  Point* oldest = points.data();
  for (Point& point : points) {
    if (point.value.mean.samples > 0 && point.value.workers == workers &&
        point.value.neighbour_workers == neighbour_workers) {
      return point;
    }
    if (goes_first(point, *oldest)) oldest = &point;
  }
  *oldest = Point();
  oldest->value.workers = workers;
  oldest->value.neighbour_workers = neighbour_workers;
  return *oldest;
}

// Ties, as of restored pairs, go to the least key, so that one history has one result.
void CoRunSpeeds::MakeRoom() {
  const auto last_run = [](const Points& points) {
    return std::max_element(points.begin(), points.end(),
                            [](const Point& a, const Point& b) { return a.observed < b.observed; })
        ->observed;
  };
  const auto oldest =
      std::min_element(pairs_.begin(), pairs_.end(), [&](const auto& a, const auto& b) {
        return std::tuple(last_run(a.second), a.first.kernel, a.first.neighbour) <
               std::tuple(last_run(b.second), b.first.kernel, b.first.neighbour);
      });
  if (oldest != pairs_.end()) pairs_.erase(oldest);
}

void CoRunSpeeds::Restore(const CoRunPair& pair, const CoRunPoint& point) {
  if (point.mean.samples <= 0 || !(point.mean.speed > 0)) return;
  if (pairs_.size() >= kPairsMax && !pairs_.contains(pair)) return;
  Point& known = PointFor(pair, point.workers, point.neighbour_workers);
  known = {.value = point, .announced = point.mean.speed};
}

void CoRunSpeeds::Forget(uint32_t kernel) {
  absl::erase_if(pairs_, [kernel](const auto& pair) {
    return pair.first.kernel == kernel || pair.first.neighbour == kernel;
  });
}

}  // namespace gpushare::models
