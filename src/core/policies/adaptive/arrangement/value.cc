// Predicted latencies and throughputs (value.h).

#include "src/core/policies/adaptive/arrangement/value.h"

#include <algorithm>

#include "src/core/base/tuning.h"
#include "src/core/queueing/queue_tail.h"

namespace gpushare::core {
namespace {

constexpr double kUnboundedInflation = 1e9;
constexpr size_t kSplits = kMaxSplits;

double JudgedLoad(const LcTerm& lc) {
  return lc.promise.target_tail > 0 && !lc.promise.bare ? std::max(lc.load, lc.peak_load) : lc.load;
}

float LcSpeed(const PairTable& pairs, int32_t app, int32_t kernel, int32_t split, Speeds speeds) {
  const PairOption& option = pairs.at(app, kernel, split);
  if (speeds == Speeds::kAlone) return option.lc_speed_alone;
  const float hoped = speeds == Speeds::kHoped ? pairs.HopedAt(app, kernel, split) : 0;
  return hoped > 0 ? hoped : option.lc_speed;
}

}  // namespace

double Queueing(double load, double split_load, double margin) {
  if (split_load <= load) return (1 - load) / (1 - split_load);
  const double raised = split_load / std::max(load, 1e-9) * (load + margin);
  return raised < kLayoutSideLoadMax ? (1 - load - margin) / (1 - raised) : kUnboundedInflation;
}

Evaluation::Evaluation(const Question& question, const PairTable& pairs)
    : question_(question), pairs_(pairs) {
  for (int32_t a = 0; a < question.lc_count; ++a) {
    const LcTerm& lc = question.lc[static_cast<size_t>(a)];
    load_ += lc.load;
    judged_load_ += JudgedLoad(lc);
    targets_ = targets_ || lc.promise.target_tail > 0;
    whole_service_ns_ += lc.load * static_cast<double>(lc.promise.solo_ns);
    if (lc.promise.solo_ns > 0)
      queries_per_ns_ += lc.load / static_cast<double>(lc.promise.solo_ns);
  }
  if (load_ > 0) whole_service_ns_ /= load_;
  load_ = std::min(load_, kLoadMax);
  judged_load_ = std::min(judged_load_, kLoadMax);
  returns_ = queries_per_ns_ * (1 - load_) * kReturnGapNs;
  for (int32_t b = 0; b < question.be_count; ++b) {
    weight_sum_ += question.be[static_cast<size_t>(b)].weight;
  }
  if (!(weight_sum_ > 0)) weight_sum_ = 1;
  if (!targets_) unblocked_ = LimitOf(0);
}

double Evaluation::IdleShare(double load) const { return std::max(0.0, 1 - load - returns_); }

double Evaluation::WholeValue() const {
  double fitting = 0;
  for (int32_t b = 0; b < question_.be_count; ++b) {
    const BeTerm& be = question_.be[static_cast<size_t>(b)];
    fitting += be.weight * be.share * std::min(be.most, 1.0);
  }
  const double idle = IdleShare(load_);
  return std::min(idle, question_.beside * fitting * idle / weight_sum_);
}

double Evaluation::SplitValue(int32_t split, Mechanism mechanism, Speeds speeds,
                              Arrangement* arrangement) const {
  double value = 0;
  for (int32_t b = 0; b < question_.be_count; ++b) {
    const BeTerm& be = question_.be[static_cast<size_t>(b)];
    const SplitEffect effect = EffectOf(be.kernel, split, speeds);
    Sides sides = AllowedSides(be, effect, split, mechanism, speeds);
    value += be.weight * ValueOf(effect, sides, be);
    if (mechanism != Mechanism::kBest) sides = ForcedSides(be, mechanism);
    if (arrangement != nullptr) arrangement->sides[static_cast<size_t>(be.kernel)] = sides;
  }
  return value / weight_sum_;
}

double Evaluation::PlannedValue(const BeTerm& be, int32_t split) const {
  const SplitEffect effect = EffectOf(be.kernel, split, Speeds::kPlanned);
  return ValueOf(effect, AllowedSides(be, effect, split, Mechanism::kBest, Speeds::kPlanned), be);
}

int32_t Evaluation::UnknownOn(int32_t split) const {
  for (int32_t b = 0; b < question_.be_count; ++b) {
    const int32_t kernel = question_.be[static_cast<size_t>(b)].kernel;
    for (int32_t a = 0; a < question_.lc_count; ++a) {
      if (pairs_.HopedAt(a, kernel, split) > 0) return kernel;
    }
  }
  return -1;
}

bool Evaluation::HasUnknownPair() const {
  bool any = false;  // without an exit the compiler looks at several at once
  for (const float hope : pairs_.hoped) any |= hope > 0;
  return any;
}

double Evaluation::Knee(int32_t split) const {
  return question_.be_count == 0 ? 0
                                 : EffectOf(question_.be[0].kernel, split, Speeds::kAlone).slowest;
}

SplitEffect Evaluation::EffectOf(int32_t kernel, int32_t split, Speeds speeds) const {
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
      effect.service_ns += lc.load / speed * static_cast<double>(lc.promise.solo_ns) / speed;
    }
  }
  if (!judged) effect.be_side = effect.lc_side = effect.slowest = 0;
  if (targets_ && effect.split_load > 0) effect.service_ns /= effect.split_load;
  if (!judged || !(effect.split_load < 1)) effect.stable = false;
  return effect;
}

bool Evaluation::AllKeepBounds(const SplitEffect& effect, int32_t kernel, int32_t split,
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
    if (lc.promise.target_tail > 0) {
      const auto solo_ns = static_cast<double>(lc.promise.solo_ns);
      on_split.tail_p99_ns = QueueP99(solo_ns / speed, effect.service_ns, effect.judged_split_load);
      on_split.whole_p99_ns = QueueP99(solo_ns, whole_service_ns_, effect.judged_load);
    }
    if (!lc.promise.Keeps(on_split, blocking_ns)) return false;
  }
  return true;
}

InflationLimit Evaluation::LimitOf(int64_t blocking_ns) const {
  InflationLimit limit;
  for (int32_t a = 0; a < question_.lc_count; ++a) {
    const LcTerm& lc = question_.lc[static_cast<size_t>(a)];
    if (lc.silent) continue;
    const double most = lc.promise.MostInflation(blocking_ns);
    if (most < limit.inflation) limit = {most, a};
  }
  return limit;
}

void Evaluation::PlanSplits(const BeTerm& be, PlannedSplits& out) const {
  for (int32_t split = question_.first_split; split < question_.splits; ++split) {
    const SplitEffect effect = EffectOf(be.kernel, split, Speeds::kPlanned);
    const Sides sides = AllowedSides(be, effect, split, Mechanism::kBest, Speeds::kPlanned);
    out.values[static_cast<size_t>(split)] = ValueOf(effect, sides, be);
    out.sides[static_cast<size_t>(split)] = sides;
  }
}

KernelTerms Evaluation::TermsOf(const BeTerm& be) const {
  KernelTerms terms;
  const auto counts = [](const LcTerm& lc) { return !lc.silent; };
  terms.judged =
      std::any_of(question_.lc.begin(), question_.lc.begin() + question_.lc_count, counts);
  if (!terms.judged) return terms;
  terms.be_side.fill(1e9F);
  terms.lc_side.fill(1e9F);
  terms.slowest.fill(1e9F);
  terms.blocked_speed.fill(0);
  terms.unblocked_speed.fill(0);
  terms.blocked = be.fits && be.blocking_ns > 0 ? LimitOf(be.blocking_ns) : unblocked_;
  const auto splits = static_cast<size_t>(std::min(question_.splits, kMaxSplits));
  for (int32_t a = 0; a < question_.lc_count; ++a) {
    if (question_.lc[static_cast<size_t>(a)].silent) continue;
    const PairOption* const row = &pairs_.at(a, be.kernel, 0);
    for (size_t s = 0; s < splits; ++s) {
      terms.be_side[s] = std::min(terms.be_side[s], row[s].be_speed_be_side);
      terms.lc_side[s] = std::min(terms.lc_side[s], row[s].be_speed_lc_side);
      terms.slowest[s] = std::min(terms.slowest[s], row[s].lc_speed);
    }
  }
  const auto speeds_of = [&](const InflationLimit& limit, KernelTerms::Speeds& speeds) {
    for (size_t s = 0; s < splits && limit.app >= 0; ++s) {
      speeds[s] = (&pairs_.at(limit.app, be.kernel, 0))[s].lc_speed;
    }
  };
  speeds_of(terms.blocked, terms.blocked_speed);
  speeds_of(unblocked_, terms.unblocked_speed);
  return terms;
}

void Evaluation::UpdateLoads(int32_t kernel, bool kept, AppLoads* loads) const {
  const auto splits = static_cast<size_t>(std::min(question_.splits, kMaxSplits));
  for (int32_t a = 0; a < question_.lc_count; ++a) {
    const LcTerm& lc = question_.lc[static_cast<size_t>(a)];
    AppLoads& app = loads[a];
    if (lc.silent || (kept && app.load == lc.load)) continue;
    app.load = lc.load;
    app.on_split.fill(0);
    const PairOption* const row = &pairs_.at(a, kernel, 0);
    for (size_t s = 0; s < splits; ++s) {
      app.on_split[s] = lc.load / static_cast<double>(row[s].lc_speed);
    }
  }
}

// Sums in the order of EffectOf(), and Queueing() with one division left to do.
Evaluation::SplitLoads Evaluation::LoadsOf(const KernelTerms& terms, const AppLoads* apps) const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kNear = 1e-9;
  SplitLoads loads;
  std::array<double, kSplits> sum{};
  for (int32_t a = 0; a < question_.lc_count; ++a) {
    if (question_.lc[static_cast<size_t>(a)].silent) continue;
    for (size_t s = 0; s < kSplits; ++s) sum[s] += apps[a].on_split[s];
  }
  const double margin = question_.load_margin;
  const double raise = (load_ + margin) / std::max(load_, 1e-9);
  const double idle = 1 - load_;
  const double idle_raised = 1 - load_ - margin;
  // All is computed before it is chosen from: then the compiler does two splits at once.
  for (size_t s = 0; s < kSplits; ++s) {
    const double load = sum[s];
    const double slowest = terms.slowest[s];
    const double raised = load * raise;
    const double left = 1 - load;
    const double left_raised = 1 - raised;
    const bool shared = load <= load_;
    const bool stands = raised < kLayoutSideLoadMax - kNear;
    double above = raised < kLayoutSideLoadMax + kNear ? kNan : kUnboundedInflation;
    above = stands ? idle_raised : above;
    above = shared ? idle : above;
    above = load < 1 ? above : kInfinity;
    above = slowest > 0 ? above : kInfinity;  // unstable, and then no load counts
    double below = stands ? left_raised : 1.0;
    below = shared ? left : below;
    loads.load[s] = load;
    loads.above[s] = above;
    loads.below[s] = below;
  }
  return loads;
}

SplitEffect Evaluation::EffectAt(const KernelTerms& terms, const SplitLoads& loads,
                                 size_t split) const {
  SplitEffect effect;
  effect.load = effect.judged_load = load_;
  effect.be_side = terms.be_side[split];
  effect.lc_side = terms.lc_side[split];
  effect.slowest = terms.slowest[split];
  effect.split_load = effect.judged_split_load = loads.load[split];
  effect.stable = effect.slowest > 0 && effect.split_load < 1;
  return effect;
}

// Whether the LC apps keep the limit, by split: as AllKeepBounds() says, but by two comparisons
// where it is not so near the limit that rounding decides.
Evaluation::Verdicts Evaluation::JudgeSplits(const BeTerm& be, const KernelTerms& terms,
                                             const SplitLoads& loads, const InflationLimit& limit,
                                             const KernelTerms::Speeds& speeds,
                                             int64_t blocking_ns) const {
  constexpr double kNear = 1e-6;
  const bool limited = limit.app >= 0 && limit.inflation > 0;
  const double under = limited ? limit.inflation * (1 - kNear) : 0;
  const double over = limited ? limit.inflation * (1 + kNear) + kNear : 0;
  std::array<double, kSplits> keeps_by;
  std::array<double, kSplits> misses_by;
  for (size_t s = 0; s < kSplits; ++s) {
    keeps_by[s] = under * terms.slowest[s] * loads.below[s] - loads.above[s];
    misses_by[s] = loads.above[s] - over * speeds[s] * loads.below[s];
  }
  Verdicts keeps{};
  for (int32_t split = question_.first_split; split < question_.splits; ++split) {
    const auto s = static_cast<size_t>(split);
    if (limited && (keeps_by[s] > 0 || misses_by[s] > 0)) {
      keeps[s] = keeps_by[s] > 0;
    } else {
      keeps[s] =
          AllKeepBounds(EffectAt(terms, loads, s), be.kernel, split, Speeds::kPlanned, blocking_ns);
    }
  }
  return keeps;
}

void Evaluation::PlanSplits(const BeTerm& be, const KernelTerms& terms, const AppLoads* apps,
                            PlannedSplits& out) const {
  out.values.fill(0);
  out.sides.fill(Sides::kNone);
  if (!terms.judged) return;
  const SplitLoads loads = LoadsOf(terms, apps);
  const Verdicts beside = JudgeSplits(be, terms, loads, unblocked_, terms.unblocked_speed, 0);
  Verdicts both{};
  if (be.fits) {
    both = be.blocking_ns == 0
               ? beside
               : JudgeSplits(be, terms, loads, terms.blocked, terms.blocked_speed, be.blocking_ns);
  }
  std::array<double, kSplits> on_be_side;
  std::array<double, kSplits> on_both;
  const double most = be.most;
  const double returns = returns_;
  for (size_t s = 0; s < kSplits; ++s) {  // ValueOf()
    const double be_side = terms.be_side[s];
    const double sum = terms.lc_side[s] + be_side;
    const double left = 1 - loads.load[s] - returns;
    const double idle = left > 0 ? left : 0;
    const double one = be_side < most ? be_side : most;
    const double two = sum < most ? sum : most;
    on_be_side[s] = one;
    on_both[s] = idle * two + (1 - idle) * one;
  }
  const auto& value_of_both = be.evictable && !be.confined ? on_both : on_be_side;
  for (size_t s = 0; s < kSplits; ++s) {
    if (!beside[s]) continue;
    out.values[s] = both[s] ? value_of_both[s] : on_be_side[s];
    out.sides[s] = both[s] ? Sides::kBoth : Sides::kBeSide;
    if (be.segment_ns > 0) out.values[s] = ValueOf(EffectAt(terms, loads, s), out.sides[s], be);
  }
}

Sides Evaluation::AllowedSides(const BeTerm& be, const SplitEffect& effect, int32_t split,
                               Mechanism mechanism, Speeds speeds) const {
  if (!AllKeepBounds(effect, be.kernel, split, speeds, 0)) return Sides::kNone;
  if (mechanism == Mechanism::kPartition || !be.fits) return Sides::kBeSide;
  if (be.blocking_ns == 0) return Sides::kBoth;  // judged already
  return AllKeepBounds(effect, be.kernel, split, speeds, be.blocking_ns) ? Sides::kBoth
                                                                         : Sides::kBeSide;
}

Sides Evaluation::ForcedSides(const BeTerm& be, Mechanism mechanism) {
  return mechanism == Mechanism::kElastic && (be.evictable || be.fits) ? Sides::kBoth
                                                                       : Sides::kBeSide;
}

double Evaluation::ValueOf(const SplitEffect& effect, Sides sides, const BeTerm& be) const {
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
double Evaluation::ReturnCost(const SplitEffect& effect, const BeTerm& be) const {
  if (be.segment_ns <= 0 || !(effect.be_side > 0)) return 0;
  const double left_ns = kSegmentsLeft * static_cast<double>(be.segment_ns);
  return queries_per_ns_ * (1 - effect.split_load) * left_ns *
         std::max(0.0, 1 / effect.be_side - 1);
}

}  // namespace gpushare::core
