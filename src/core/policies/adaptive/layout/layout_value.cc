// Predicted latencies and throughputs (layout_value.h).

#include "src/core/policies/adaptive/layout/layout_value.h"

#include <algorithm>

#include "src/core/base/tuning.h"
#include "src/core/seams/queue_tail.h"

namespace gpushare::core {
namespace {

// Whether LC app `lc` keeps its bound and target with this effect and blocking.
bool KeepsBound(const LcTerm& lc, const QueueEffect& effect, int64_t blocking_ns) {
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
    if (TargetP99(lc, effect) + blocking > static_cast<double>(lc.target_ns)) return false;
  }
  return true;
}

constexpr double kUnboundedInflation = 1e9;

double JudgedLoad(const LcTerm& lc) {
  return lc.target_tail > 0 && !lc.bare ? std::max(lc.load, lc.peak_load) : lc.load;
}

float LcSpeed(const PairTable& pairs, int32_t app, int32_t kernel, int32_t split, Speeds speeds) {
  const PairOption& option = pairs.at(app, kernel, split);
  if (speeds == Speeds::kAlone) return option.lc_speed_alone;
  const float hoped = speeds == Speeds::kHoped ? pairs.HopedAt(app, kernel, split) : 0;
  return hoped > 0 ? hoped : option.lc_speed;
}

}  // namespace

double TargetP99(const LcTerm& lc, const QueueEffect& effect) {
  if (!lc.bare) {
    const StatedTail stated{static_cast<double>(lc.p99_ns), effect.whole_p99_ns};
    return stated.P99(effect.inflation, effect.tail_p99_ns, lc.target_tail);
  }
  if (lc.solo_ns <= 0) return kTargetTailMax * static_cast<double>(lc.target_ns);
  return lc.target_tail * effect.tail_p99_ns;
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
    judged_load_ += JudgedLoad(lc);
    targets_ = targets_ || lc.target_tail > 0;
    whole_service_ns_ += lc.load * static_cast<double>(lc.solo_ns);
    if (lc.solo_ns > 0) queries_per_ns_ += lc.load / static_cast<double>(lc.solo_ns);
  }
  if (load_ > 0) whole_service_ns_ /= load_;
  load_ = std::min(load_, kLoadMax);
  judged_load_ = std::min(judged_load_, kLoadMax);
  if (!targets_) unblocked_ = LimitOf(0);
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
  const double idle = IdleShare(load_);
  return std::min(idle, question_.beside * fitting * idle / WeightSum());
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
  effect.judged_load = judged_load_;
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
    effect.judged_split_load += JudgedLoad(lc) / speed;
    if (targets_) {
      effect.peak_load += lc.peak_load / speed;
      effect.service_ns += lc.load / speed * static_cast<double>(lc.solo_ns) / speed;
    }
  }
  if (!judged) effect.be_side = effect.lc_side = effect.slowest = 0;
  if (targets_ && effect.split_load > 0) effect.service_ns /= effect.split_load;
  if (!judged || !(effect.split_load < 1)) effect.stable = false;
  return effect;
}

bool LayoutEvaluation::AllKeepBounds(const SplitEffect& effect, int32_t kernel, int32_t split,
                                     Speeds speeds, int64_t blocking_ns) const {
  if (!effect.stable || effect.peak_load > kTargetSideLoadMax) return false;
  if (!(effect.judged_split_load < 1)) return false;
  const double queueing =
      Queueing(effect.judged_load, effect.judged_split_load, question_.load_margin);
  for (int32_t a = 0; a < question_.lc_count; ++a) {
    const LcTerm& lc = question_.lc[static_cast<size_t>(a)];
    if (lc.silent) continue;
    const double speed = LcSpeed(pairs_, a, kernel, split, speeds);
    QueueEffect on_split = {.inflation = queueing / speed};
    if (lc.target_tail > 0) {
      const auto solo_ns = static_cast<double>(lc.solo_ns);
      on_split.tail_p99_ns = QueueP99(solo_ns / speed, effect.service_ns, effect.judged_split_load);
      on_split.whole_p99_ns = QueueP99(solo_ns, whole_service_ns_, effect.judged_load);
    }
    if (!KeepsBound(lc, on_split, blocking_ns)) return false;
  }
  return true;
}

LayoutEvaluation::InflationLimit LayoutEvaluation::LimitOf(int64_t blocking_ns) const {
  InflationLimit limit;
  const double blocking = static_cast<double>(blocking_ns);
  for (int32_t a = 0; a < question_.lc_count; ++a) {
    const LcTerm& lc = question_.lc[static_cast<size_t>(a)];
    if (lc.silent) continue;
    double most = limit.inflation;
    if (lc.p99_bound <= 0 && lc.p50_bound <= 0 && lc.target_ns <= 0) {
      most = std::min(most, kUnstatedInflation);
    }
    const auto solo = static_cast<double>(lc.solo_ns);
    const auto p99 = static_cast<double>(lc.p99_ns);
    if (lc.p50_bound > 0) {
      most = std::min(most, lc.p50_bound - (lc.solo_ns > 0 ? blocking / solo : 0));
    }
    if (lc.p99_bound > 0) {
      most = std::min(most, lc.p99_bound - (lc.p99_ns > 0 ? blocking / p99 : 0));
    }
    if (lc.target_ns > 0) {
      const double left = static_cast<double>(lc.target_ns) - blocking;
      most = std::min(most, lc.p99_ns > 0 ? left / p99 : left < 0 ? -1.0 : most);
    }
    if (most < limit.inflation) limit = {most, a};
  }
  return limit;
}

// The answer of AllKeepBounds() by two comparisons, where it is not so near the limit that rounding
// decides.
bool LayoutEvaluation::KeepsLimit(const SplitEffect& effect, int32_t kernel, int32_t split,
                                  const InflationLimit& limit, int64_t blocking_ns) const {
  constexpr double kNear = 1e-6;
  if (!effect.stable) return false;
  if (limit.app >= 0 && limit.inflation > 0) {
    const double queueing = Queueing(effect.load, effect.split_load, question_.load_margin);
    if (queueing / effect.slowest < limit.inflation * (1 - kNear)) return true;
    const double speed = LcSpeed(pairs_, limit.app, kernel, split, Speeds::kPlanned);
    if (queueing / speed > limit.inflation * (1 + kNear) + kNear) return false;
  }
  return AllKeepBounds(effect, kernel, split, Speeds::kPlanned, blocking_ns);
}

void LayoutEvaluation::PlanSplits(const BeTerm& be, PlannedSplit* out) const {
  const auto plan_one = [&](int32_t split, const SplitEffect& effect, Sides sides) {
    out[split] = {ValueOf(effect, sides, be), sides};
  };
  if (targets_) {
    for (int32_t split = question_.first_split; split < question_.splits; ++split) {
      const SplitEffect effect = EffectOf(be.kernel, split, Speeds::kPlanned);
      plan_one(split, effect, AllowedSides(be, effect, split, Mechanism::kBest, Speeds::kPlanned));
    }
    return;
  }
  const SplitEffects effects = EffectsOf(be.kernel);
  const InflationLimit blocked =
      be.fits && be.blocking_ns > 0 ? LimitOf(be.blocking_ns) : unblocked_;
  for (int32_t split = question_.first_split; split < question_.splits; ++split) {
    const SplitEffect effect = effects.At(static_cast<size_t>(split), load_);
    Sides sides = Sides::kNone;
    if (KeepsLimit(effect, be.kernel, split, unblocked_, 0)) {
      const bool both = be.fits && (be.blocking_ns == 0 ||
                                    KeepsLimit(effect, be.kernel, split, blocked, be.blocking_ns));
      sides = both ? Sides::kBoth : Sides::kBeSide;
    }
    plan_one(split, effect, sides);
  }
}

// EffectOf() for all splits in one pass over the rows of the pair table, without targets.
LayoutEvaluation::SplitEffects LayoutEvaluation::EffectsOf(int32_t kernel) const {
  SplitEffects effects;
  const auto splits = static_cast<size_t>(std::min(question_.splits, kMaxSplits));
  effects.be_side.fill(1e9);
  effects.lc_side.fill(1e9);
  effects.slowest.fill(1e9);
  for (int32_t a = 0; a < question_.lc_count; ++a) {
    const LcTerm& lc = question_.lc[static_cast<size_t>(a)];
    if (lc.silent) continue;
    effects.judged = true;
    const PairOption* const row = &pairs_.at(a, kernel, 0);
    for (size_t s = 0; s < splits; ++s) {
      const double speed = row[s].lc_speed;
      effects.be_side[s] = std::min<double>(effects.be_side[s], row[s].be_speed_be_side);
      effects.lc_side[s] = std::min<double>(effects.lc_side[s], row[s].be_speed_lc_side);
      effects.slowest[s] = std::min(effects.slowest[s], speed);
      effects.split_load[s] += lc.load / speed;
    }
  }
  return effects;
}

SplitEffect LayoutEvaluation::SplitEffects::At(size_t split, double load) const {
  SplitEffect effect;
  effect.load = effect.judged_load = load;
  if (!judged) {
    effect.slowest = 0;
    effect.stable = false;
    return effect;
  }
  effect.be_side = be_side[split];
  effect.lc_side = lc_side[split];
  effect.slowest = slowest[split];
  effect.split_load = effect.judged_split_load = split_load[split];
  // A speed of 0 is unstable, and then no load counts.
  effect.stable = effect.slowest > 0 && effect.split_load < 1;
  return effect;
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
