// Measured pairs; see pair_model.h.

#include "src/models/pairs/pair_model.h"

#include <algorithm>
#include <cmath>

namespace gpushare::models {
namespace {

// The mean follows the last so many samples: queries of some ten milliseconds.
constexpr int64_t kFollowedSamples = 64;
// A sample below the least met something else than the neighbour. No neighbour makes a kernel
// faster: a factor above 1 means that its time alone is overestimated, from its first, cold
// queries.
constexpr double kFactorMin = 0.02;
constexpr double kFactorMax = 1;
// To keep a bound of 2 %, the planner must see changes of a fraction of it.
constexpr double kAnnouncedStep = 0.005;
// Samples in a row that begin a pair anew, and how far from the mean they are. Neighbours that no
// record knows slow a query by 5 to 25 %; the same pair's samples scatter by 1 to 3 %.
constexpr int32_t kFarSamples = 3;
constexpr double kFar = 0.1;
// Two first samples below this make a pair known: a p99 bound of 1.3 and less does not allow such a
// neighbour, and each query of its trial is late.
constexpr double kHopeless = 0.75;

}  // namespace

bool FollowedMean::trusted() const { return samples >= kPairSamplesTrusted; }

bool FollowedMean::Observe(double value, double step) {
  ++samples;
  const double weight = 1 / static_cast<double>(std::min(samples, kFollowedSamples));
  mean += weight * (value - mean);
  if (!trusted() || (samples > kPairSamplesTrusted && std::abs(mean - announced) <= step))
    return false;
  announced = mean;
  return true;
}

FollowedSpeed::Change FollowedSpeed::Observe(double value, double step) {
  met = true;
  const double off = value - mean;
  if (!trusted() || std::abs(off) <= kFar || (far != 0 && (far > 0) != (off > 0))) {
    far = 0;
    far_sum = 0;
  }
  if (trusted() && std::abs(off) > kFar) {
    far += off > 0 ? 1 : -1;
    far_sum += value;
  }
  if (samples == 1 && std::max(mean, value) < kHopeless) {
    mean = announced = (mean + value) / 2;
    samples = kPairSamplesTrusted;
    return Change::kMean;
  }
  if (std::abs(far) < kFarSamples) {
    return FollowedMean::Observe(value, step) ? Change::kMean : Change::kNone;
  }
  samples = kPairSamplesTrusted;
  mean = announced = far_sum / kFarSamples;
  far = 0;
  far_sum = 0;
  return Change::kBegunAnew;
}

double PairModel::SpeedOf(const PairKey& key) const {
  const auto found = speeds_.find(key);
  return found != speeds_.end() && found->second.trusted() ? found->second.mean : 0;
}

bool PairModel::ObserveSpeed(const PairKey& key, double factor) {
  const auto found = speeds_.find(key);
  if (found == speeds_.end() && speeds_.size() >= kMaxPairs) return false;
  FollowedSpeed& state = found == speeds_.end() ? speeds_[key] : found->second;
  const FollowedSpeed::Change change =
      state.Observe(std::clamp(factor, kFactorMin, kFactorMax), kAnnouncedStep);
  if (change == FollowedSpeed::Change::kBegunAnew) ForgetUnmet(key);
  return change != FollowedSpeed::Change::kNone;
}

// A profile that is wrong about the pair on one split is no better on the others.
void PairModel::ForgetUnmet(const PairKey& like) {
  for (auto& [key, state] : speeds_) {
    if (key.kernel != like.kernel || key.neighbour != like.neighbour || state.met) continue;
    state = FollowedSpeed();
  }
}

void PairModel::Confirm(const PairKey& key) {
  const auto found = speeds_.find(key);
  if (found == speeds_.end()) return;
  FollowedSpeed& state = found->second;
  state.met = true;
  state.far = 0;
  state.far_sum = 0;
  if (!state.trusted()) static_cast<FollowedMean&>(state) = FollowedMean();
}

void PairModel::GiveUp(const PairKey& key, double factor) {
  if (SpeedOf(key) > 0) return;
  const double mean = std::clamp(factor, kFactorMin, kFactorMax);
  Restore(key, {.samples = kPairSamplesTrusted, .mean = mean, .announced = mean});
  if (const auto found = speeds_.find(key); found != speeds_.end()) found->second.met = true;
}

void PairModel::Restore(const PairKey& key, const FollowedMean& state) {
  if (speeds_.size() < kMaxPairs || speeds_.contains(key)) speeds_[key] = {state, 0, 0, false};
}

}  // namespace gpushare::models
