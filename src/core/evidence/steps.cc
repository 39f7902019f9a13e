// Counts of pauses, and what they show (steps.h).

#include "src/core/evidence/steps.h"

#include <algorithm>
#include <cmath>

namespace gpushare::core {
namespace {

constexpr int64_t kFirstNs = 1'000;  // the end of the first range
constexpr int64_t BeginNs(int range) { return range == 0 ? 0 : kFirstNs << (range - 1); }

int RangeOf(int64_t pause_ns, int ranges) {
  int range = 0;
  while (range + 1 < ranges && pause_ns >= BeginNs(range + 1)) ++range;
  return range;
}

void Fade(double& count) { count -= count / static_cast<double>(kStepsRemembered); }

}  // namespace

void Steps::Begin(bool alone, int64_t solo_ns, TimeNs since_ns, TimeNs now_ns) {
  begun_ns_ = since_ns;
  Fade(waited_);
  if (!alone || !pauses_) {
    ++waited_;
    return;
  }
  NoteLapse(now_ns);
  pauses_ = false;
  CountPause(stated_ns_, lapse_seen_, now_ns - ended_ns_, solo_ns);
}

void Steps::EndSeenLate(int64_t stated_ns, int64_t solo_ns, TimeNs ended_ns) {
  const int64_t pause_ns = begun_ns_ - ended_ns;
  if (pause_ns <= 0) return;
  waited_ = std::max(0.0, waited_ - 1);
  const bool lapsed = stated_ns > 0 && pause_ns > stated_ns;
  lapsed_ += lapsed ? 1 : 0;
  lapses_ += lapsed ? 1 : 0;
  CountPause(stated_ns, lapsed, pause_ns, solo_ns);
}

void Steps::CountPause(int64_t stated_ns, bool lapsed, int64_t pause_ns, int64_t solo_ns) {
  for (double& count : lengths_) Fade(count);
  Fade(followed_);
  Fade(silences_);
  Fade(lapsed_);
  if (stated_ns == 0) {
    ++lengths_[static_cast<size_t>(RangeOf(pause_ns, kRanges))];
  } else if (stated_ns > 0 && !lapsed) {
    ++followed_;
  } else {
    ++silences_;
  }
  Learn(solo_ns);
}

double Steps::SilenceShare() const {
  double silences = silences_;
  double pauses = silences_ + followed_;
  for (int r = 0; r < kRanges; ++r) {
    pauses += At(r);
    if (BeginNs(r) >= learnt_ns_) silences += At(r);
  }
  if (pauses < kSamples) return 1;
  silences = std::max(silences, 1.0);
  return std::min(1.0, (silences + std::sqrt(silences)) / pauses);
}

// The shortest length of which at least half of the pauses are shorter, while at least half of the
// rest is kSamplesMin times as long, or more.
void Steps::Learn(int64_t solo_ns) {
  learnt_ns_ = 0;
  double longer = 0;
  for (int r = 0; r < kRanges; ++r) longer += At(r);
  if (waited_ * kSamplesMin > longer) return;
  double much_longer = longer;
  for (int r = 0; r < kMuchLongerRanges; ++r) much_longer -= At(r);
  double shorter = 0;
  for (int r = 1; r + kMuchLongerRanges < kRanges; ++r) {
    shorter += At(r - 1);
    longer -= At(r - 1);
    much_longer -= At(r - 1 + kMuchLongerRanges);
    if (BeginNs(r) > kGapQueriesMax * solo_ns) return;
    if (shorter < longer || longer < kSilencesMin || 2 * much_longer < longer) continue;
    learnt_ns_ = BeginNs(r);
    return;
  }
}

}  // namespace gpushare::core
