// Predicted latencies and throughputs (layout_value.h).

#include "src/core/policies/adaptive/layout/layout_value.h"

#include <algorithm>

#include "src/core/base/tuning.h"
#include "src/core/seams/queue_tail.h"

namespace gpushare::core {
namespace {

// What a layout does to one LC app.
struct LcEffect {
  double inflation = 1;    // of a p99 that is known
  double tail_p99_ns = 0;  // the p99 that the queue on its side gives
};

// Whether LC app `lc` keeps its bound and target with this effect and blocking.
bool KeepsBound(const LcTerm& lc, const LcEffect& effect, int64_t blocking_ns) {
  constexpr double kRounding = 1e-9;
  // An app without bound and target still gets at most kUnstatedInflation: it must not move to a
  // few SMs for BE's sake.
  const double inflation = effect.inflation;
  if (lc.p99_bound <= 0 && lc.p50_bound <= 0 && lc.target_ns <= 0) {
    return inflation <= kUnstatedInflation;
  }
  const double blocking = static_cast<double>(blocking_ns);
  if (lc.p50_bound > 0) {  // the median alone is at least the solo duration
    const double share = lc.solo_ns > 0 ? blocking / static_cast<double>(lc.solo_ns) : 0;
    if (inflation + share > lc.p50_bound + kRounding) return false;
  }
  const double p99 = static_cast<double>(lc.p99_ns);
  if (lc.p99_bound > 0) {
    const double share = lc.p99_ns > 0 ? blocking / p99 : 0;
    if (inflation + share > lc.p99_bound + kRounding) return false;
  }
  if (lc.target_ns > 0) {
    const double predicted = lc.target_tail > 0 ? TailP99(lc, effect.tail_p99_ns) : p99 * inflation;
    if (predicted + blocking > static_cast<double>(lc.target_ns)) return false;
  }
  return true;
}

constexpr double kUnboundedInflation = 1e9;

float LcSpeed(const PairTable& pairs, int32_t app, int32_t kernel, int32_t split, Speeds speeds) {
  const PairOption& option = pairs.at(app, kernel, split);
  if (speeds == Speeds::kAlone) return option.lc_speed_alone;
  const float hoped = speeds == Speeds::kHoped ? pairs.HopedAt(app, kernel, split) : 0;
  return hoped > 0 ? hoped : option.lc_speed;
}

}  // namespace

double TailP99(const LcTerm& lc, double tail_p99_ns) {
  if (lc.solo_ns <= 0) return kTargetTailMax * static_cast<double>(lc.target_ns);
  return lc.target_tail * tail_p99_ns;
}

double Queueing(double load, double split_load, double margin) {
  if (split_load <= load) return (1 - load) / (1 - split_load);
  const double raised = split_load / std::max(load, 1e-9) * (load + margin);
  return raised < kLayoutSideLoadMax ? (1 - load - margin) / (1 - raised) : kUnboundedInflation;
}

LayoutEvaluation::LayoutEvaluation(const LayoutQuestion& question, const PairTable& pairs)
    : question_(question), pairs_(pairs) {
  for (int32_t a = 0; a < question.lc_count; ++a) {
    const LcTerm& lc = question.lc[static_cast<size_t>(a)];
    load_ += lc.load;
    bare_targets_ = bare_targets_ || lc.target_tail > 0;
    if (lc.solo_ns > 0) queries_per_ns_ += lc.load / static_cast<double>(lc.solo_ns);
  }
  load_ = std::min(load_, kLoadMax);
}

double LayoutEvaluation::IdleShare(double load) const {
  const double idle = 1 - load;
  const double returns = queries_per_ns_ * (1 - load_) * kReturnGapNs;
  return std::max(0.0, idle - returns);
}

double LayoutEvaluation::WholeValue() const {
  double fitting = 0;
  for (int32_t b = 0; b < question_.be_count; ++b) {
    const BeTerm& be = question_.be[static_cast<size_t>(b)];
    fitting += be.weight * be.share * std::min(be.most, 1.0);
  }
  return fitting * IdleShare(load_) / WeightSum();
}

double LayoutEvaluation::SplitValue(int32_t split, Mechanism mechanism, Speeds speeds,
                                    Layout* layout) const {
  double value = 0;
  for (int32_t b = 0; b < question_.be_count; ++b) {
    const BeTerm& be = question_.be[static_cast<size_t>(b)];
    const SplitEffect effect = EffectOf(be.kernel, split, speeds);
    Sides sides = AllowedSides(be, effect, split, mechanism, speeds);
    value += be.weight * ValueOf(effect, sides, be);
    if (mechanism != Mechanism::kBest) sides = ForcedSides(be, mechanism);
    if (layout != nullptr) layout->sides[static_cast<size_t>(be.kernel)] = sides;
  }
  return value / WeightSum();
}

double LayoutEvaluation::PlannedValue(const BeTerm& be, int32_t split) const {
  const SplitEffect effect = EffectOf(be.kernel, split, Speeds::kPlanned);
  return ValueOf(effect, AllowedSides(be, effect, split, Mechanism::kBest, Speeds::kPlanned), be);
}

int32_t LayoutEvaluation::UnknownOn(int32_t split) const {
  for (int32_t b = 0; b < question_.be_count; ++b) {
    const int32_t kernel = question_.be[static_cast<size_t>(b)].kernel;
    for (int32_t a = 0; a < question_.lc_count; ++a) {
      if (pairs_.HopedAt(a, kernel, split) > 0) return kernel;
    }
  }
  return -1;
}

bool LayoutEvaluation::HasUnknownPair() const {
  return std::any_of(pairs_.hoped.begin(), pairs_.hoped.end(), [](float hope) { return hope > 0; });
}

double LayoutEvaluation::Knee(int32_t split) const {
  return question_.be_count == 0 ? 0
                                 : EffectOf(question_.be[0].kernel, split, Speeds::kAlone).slowest;
}

SplitEffect LayoutEvaluation::EffectOf(int32_t kernel, int32_t split, Speeds speeds) const {
  SplitEffect effect;
  effect.load = load_;
  effect.be_side = effect.lc_side = effect.slowest = 1e9;
  bool judged = false;
  for (int32_t a = 0; a < question_.lc_count; ++a) {
    if (question_.lc[static_cast<size_t>(a)].silent) continue;
    judged = true;
    const PairOption& option = pairs_.at(a, kernel, split);
    const double speed = LcSpeed(pairs_, a, kernel, split, speeds);
    effect.be_side = std::min<double>(effect.be_side, option.be_speed_be_side);
    effect.lc_side = std::min<double>(effect.lc_side, option.be_speed_lc_side);
    effect.slowest = std::min(effect.slowest, speed);
    if (!(speed > 0)) {
      effect.stable = false;
      continue;
    }
    const LcTerm& lc = question_.lc[static_cast<size_t>(a)];
    effect.split_load += lc.load / speed;
    if (bare_targets_) {
      effect.peak_load += lc.peak_load / speed;
      effect.service_ns += lc.load / speed * static_cast<double>(lc.solo_ns) / speed;
    }
  }
  if (!judged) effect.be_side = effect.lc_side = effect.slowest = 0;
  if (bare_targets_ && effect.split_load > 0) effect.service_ns /= effect.split_load;
  if (!judged || !(effect.split_load < 1)) effect.stable = false;
  return effect;
}

bool LayoutEvaluation::AllKeepBounds(const SplitEffect& effect, int32_t kernel, int32_t split,
                                     Speeds speeds, int64_t blocking_ns) const {
  if (!effect.stable || effect.peak_load > kTargetSideLoadMax) return false;
  const double queueing = Queueing(effect.load, effect.split_load, question_.load_margin);
  for (int32_t a = 0; a < question_.lc_count; ++a) {
    const LcTerm& lc = question_.lc[static_cast<size_t>(a)];
    if (lc.silent) continue;
    const double speed = LcSpeed(pairs_, a, kernel, split, speeds);
    LcEffect on_split = {.inflation = queueing / speed};
    if (lc.target_tail > 0) {
      on_split.tail_p99_ns =
          QueueP99(static_cast<double>(lc.solo_ns) / speed, effect.service_ns, effect.split_load);
    }
    if (!KeepsBound(lc, on_split, blocking_ns)) return false;
  }
  return true;
}

Sides LayoutEvaluation::AllowedSides(const BeTerm& be, const SplitEffect& effect, int32_t split,
                                     Mechanism mechanism, Speeds speeds) const {
  if (!AllKeepBounds(effect, be.kernel, split, speeds, 0)) return Sides::kNone;
  if (mechanism == Mechanism::kPartition || !be.fits) return Sides::kBeSide;
  if (be.blocking_ns == 0) return Sides::kBoth;  // judged already
  return AllKeepBounds(effect, be.kernel, split, speeds, be.blocking_ns) ? Sides::kBoth
                                                                         : Sides::kBeSide;
}

Sides LayoutEvaluation::ForcedSides(const BeTerm& be, Mechanism mechanism) {
  return mechanism == Mechanism::kElastic && (be.evictable || be.fits) ? Sides::kBoth
                                                                       : Sides::kBeSide;
}

double LayoutEvaluation::ValueOf(const SplitEffect& effect, Sides sides, const BeTerm& be) const {
  if (sides == Sides::kNone) return 0;
  const double be_side = std::min(effect.be_side, be.most);
  if (sides == Sides::kBeSide || !be.evictable || be.confined) return be_side;
  const double idle = IdleShare(effect.split_load);
  const double both = std::min(effect.lc_side + effect.be_side, be.most);
  const double value = idle * both + (1 - idle) * be_side;
  return value - std::min(ReturnCost(effect, be), std::max(0.0, idle * (both - be_side)));
}

// What a graph in segments loses when it leaves the BE side for the whole device, after each busy
// period: the segments on the device end at the BE side's speed.
double LayoutEvaluation::ReturnCost(const SplitEffect& effect, const BeTerm& be) const {
  if (be.segment_ns <= 0 || !(effect.be_side > 0)) return 0;
  const double left_ns = kSegmentsLeft * static_cast<double>(be.segment_ns);
  return queries_per_ns_ * (1 - effect.split_load) * left_ns *
         std::max(0.0, 1 / effect.be_side - 1);
}

double LayoutEvaluation::WeightSum() const {
  double sum = 0;
  for (int32_t b = 0; b < question_.be_count; ++b) {
    sum += question_.be[static_cast<size_t>(b)].weight;
  }
  return sum > 0 ? sum : 1;
}

}  // namespace gpushare::core
