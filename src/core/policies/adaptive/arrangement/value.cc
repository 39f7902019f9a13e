// Predicted latencies and throughputs of all splits at once (value.h).

#include "src/core/policies/adaptive/arrangement/value.h"

#include <algorithm>
#include <limits>

#include "absl/base/attributes.h"
#include "src/core/policies/adaptive/arrangement/tuning.h"
#include "src/core/promise/tuning.h"
#include "src/core/queueing/queue_tail.h"

namespace gpushare::core {
namespace {

constexpr size_t kSplits = kMaxSplits;

double JudgedLoad(const LcTerm& lc) {
  return lc.promise.target_tail > 0 && !lc.promise.bare ? std::max(lc.load, lc.peak_load) : lc.load;
}

double LcSpeed(const PairTable& pairs, int32_t app, int32_t kernel, int32_t split, Speeds speeds) {
  const PairOption& option = pairs.at(app, kernel, split);
  if (speeds == Speeds::kAlone) return option.lc_speed_alone;
  const float hoped = speeds == Speeds::kHoped ? pairs.HopedAt(app, kernel, split) : 0;
  return hoped > 0 ? hoped : option.lc_speed;
}

// The parts of loops over LC apps that look at all splits. Inlined there, the compiler unrolls them
// before it could vectorise them.
ABSL_ATTRIBUTE_NOINLINE void AddProducts(double factor, const BySplit& by, BySplit& sum) {
  for (size_t s = 0; s < kSplits; ++s) sum[s] += factor * by[s];
}

ABSL_ATTRIBUTE_NOINLINE void RaiseExcess(const BySplit& queueing, const BySplit& slowdown,
                                         double most_slowdown, double most_inflation,
                                         BySplit& excess) {
  for (size_t s = 0; s < kSplits; ++s) {
    const double above = slowdown[s] - most_slowdown;
    const double inflation = queueing[s] * slowdown[s];
    excess[s] = std::max(excess[s], std::max(above, inflation - most_inflation));
  }
}

Sides ForcedSides(const BeTerm& be, Mechanism mechanism) {
  return mechanism == Mechanism::kElastic && (be.evictable || be.fits) ? Sides::kBoth
                                                                       : Sides::kBeSide;
}

}  // namespace

LatencyShift ShiftOf(const PlannedPromise::Closest& worst) {
  if (!(worst.limit_ns > 0)) return {};
  return {static_cast<int64_t>(worst.value_ns - worst.alone_ns),
          static_cast<int64_t>(std::max(0.0, worst.limit_ns - worst.alone_ns))};
}

SplitValues::SplitValues()
    : kept_(kMaxPairKernels), slowdowns_(size_t{kMaxPairKernels} * kMaxApps) {}

void SplitValues::Ask(const Question& question, const PairTable& pairs) {
  const bool new_table = splits_ < 0 || pairs_version_ != question.pairs_version;
  const bool same_rows = SameRows(question);
  const bool same_apps = same_rows && SameApps(question);
  question_ = &question;
  pairs_ = &pairs;
  if (new_table) {  // without an exit the compiler looks at several at once
    any_unknown_ = false;
    for (const float hope : pairs.hoped) any_unknown_ |= hope > 0;
  }
  weight_sum_ = 0;
  for (int32_t b = 0; b < question.be_count; ++b) {
    weight_sum_ += question.be[static_cast<size_t>(b)].weight;
  }
  if (!(weight_sum_ > 0)) weight_sum_ = 1;
  if (same_apps) return;
  for (Kept& kept : kept_) {
    kept.known = kept.has_loads = false;
    kept.has_row = kept.has_row && same_rows;
  }
  pairs_version_ = question.pairs_version;
  splits_ = question.splits;
  first_split_ = question.first_split;
  load_margin_ = question.load_margin;
  lc_count_ = question.lc_count;
  std::copy_n(question.lc.begin(), lc_count_, lc_.begin());
  SumLcApps();
}

void SplitValues::SumLcApps() {
  load_ = judged_load_ = whole_service_ns_ = queries_per_ns_ = 0;
  targets_ = false;
  for (int32_t a = 0; a < lc_count_; ++a) {
    const LcTerm& lc = lc_[static_cast<size_t>(a)];
    const auto solo_ns = static_cast<double>(lc.promise.solo_ns);
    InflationLimit& limit = limits_[static_cast<size_t>(a)];
    limit = lc.promise.target_tail > 0 ? InflationLimit() : lc.promise.MostInflation();
    load_ += lc.load;
    judged_load_ += JudgedLoad(lc);
    targets_ = targets_ || lc.promise.target_tail > 0;
    whole_service_ns_ += lc.load * solo_ns;
    if (solo_ns > 0) queries_per_ns_ += lc.load / solo_ns;
  }
  if (load_ > 0) whole_service_ns_ /= load_;
  load_ = std::min(load_, kLoadMax);
  judged_load_ = std::min(judged_load_, kLoadMax);
  returns_ = queries_per_ns_ * (1 - load_) * kReturnGapNs;
}

// Whether the kept speeds are those of the question's LC apps.
bool SplitValues::SameRows(const Question& question) const {
  const auto same = [](const LcTerm& a, const LcTerm& b) { return a.silent == b.silent; };
  return pairs_version_ == question.pairs_version && splits_ == question.splits &&
         lc_count_ == question.lc_count &&
         std::equal(lc_.begin(), lc_.begin() + lc_count_, question.lc.begin(), same);
}

bool SplitValues::SameApps(const Question& question) const {
  return load_margin_ == question.load_margin && first_split_ == question.first_split &&
         std::equal(lc_.begin(), lc_.begin() + lc_count_, question.lc.begin());
}

double SplitValues::Whole() const {
  double fitting = 0;
  for (int32_t b = 0; b < question_->be_count; ++b) {
    const BeTerm& be = question_->be[static_cast<size_t>(b)];
    fitting += be.weight * be.share * std::min(be.most, 1.0);
  }
  const double idle = std::max(0.0, 1 - load_ - returns_);
  return std::min(idle, question_->beside * fitting * idle / weight_sum_);
}

BySplit SplitValues::Planned() {
  BySplit values{};
  for (int32_t b = 0; b < question_->be_count; ++b) {
    const BeTerm& be = question_->be[static_cast<size_t>(b)];
    const BySplit& added = PlannedOf(be).values;
    for (size_t s = 0; s < kSplits; ++s) values[s] += be.weight * added[s];
  }
  for (double& value : values) value /= weight_sum_;
  return values;
}

const PlannedSplits& SplitValues::PlannedOf(const BeTerm& be) {
  if (be.kernel >= kMaxPairKernels) {
    Judge(be, Mechanism::kBest, Speeds::kPlanned, unkept_);
    return unkept_;
  }
  Kept& kept = WithLoads(be.kernel);
  if (kept.known && kept.term == be) return kept.splits;
  kept.known = true;
  kept.term = be;
  Judge(be, kept.row, kept.loads, SlowdownsOf(be.kernel), Mechanism::kBest, kept.splits);
  return kept.splits;
}

void SplitValues::FillSides(Arrangement& arrangement) {
  for (int32_t b = 0; b < question_->be_count; ++b) {
    const BeTerm& be = question_->be[static_cast<size_t>(b)];
    arrangement.sides[static_cast<size_t>(be.kernel)] =
        PlannedOf(be).sides[static_cast<size_t>(arrangement.split)];
  }
}

BySplit SplitValues::Under(Mechanism mechanism, Speeds speeds) {
  BySplit values{};
  for (int32_t b = 0; b < question_->be_count; ++b) {
    const BeTerm& be = question_->be[static_cast<size_t>(b)];
    PlannedSplits added;
    Judge(be, mechanism, speeds, added);
    for (size_t s = 0; s < kSplits; ++s) values[s] += be.weight * added.values[s];
  }
  for (double& value : values) value /= weight_sum_;
  return values;
}

double SplitValues::Fill(int32_t split, Mechanism mechanism, Speeds speeds,
                         Arrangement& arrangement) {
  double value = 0;
  for (int32_t b = 0; b < question_->be_count; ++b) {
    const BeTerm& be = question_->be[static_cast<size_t>(b)];
    PlannedSplits added;
    Judge(be, mechanism, speeds, added);
    value += be.weight * added.values[static_cast<size_t>(split)];
    arrangement.sides[static_cast<size_t>(be.kernel)] =
        mechanism == Mechanism::kBest ? added.sides[static_cast<size_t>(split)]
                                      : ForcedSides(be, mechanism);
  }
  return value / weight_sum_;
}

int32_t SplitValues::UnknownOn(int32_t split) const {
  for (int32_t b = 0; b < question_->be_count; ++b) {
    const int32_t kernel = question_->be[static_cast<size_t>(b)].kernel;
    for (int32_t a = 0; a < lc_count_; ++a) {
      if (pairs_->HopedAt(a, kernel, split) > 0) return kernel;
    }
  }
  return -1;
}

double SplitValues::Knee(int32_t split) const {
  if (question_->be_count == 0) return 0;
  double slowest = std::numeric_limits<double>::infinity();
  for (int32_t a = 0; a < lc_count_; ++a) {
    if (lc_[static_cast<size_t>(a)].silent) continue;
    const double speed = LcSpeed(*pairs_, a, question_->be[0].kernel, split, Speeds::kAlone);
    slowest = std::min(slowest, speed);
  }
  return slowest == std::numeric_limits<double>::infinity() ? 0 : slowest;
}

// The planned speeds, which each new pair table asks for, are read in a loop without a branch.
void SplitValues::ReadRow(int32_t kernel, Speeds speeds, Slowdowns* apps, Row& row) const {
  row.judged = false;
  std::array<float, kSplits> be_side;
  std::array<float, kSplits> lc_side;
  be_side.fill(static_cast<float>(kUnboundedInflation));
  lc_side.fill(static_cast<float>(kUnboundedInflation));
  const auto splits = static_cast<size_t>(std::min(splits_, kMaxSplits));
  for (int32_t a = 0; a < lc_count_; ++a) {
    apps[a].fill(1 / kTie);
    if (lc_[static_cast<size_t>(a)].silent) continue;
    row.judged = true;
    const PairOption* const options = &pairs_->at(a, kernel, 0);
    for (size_t s = 0; s < splits; ++s) {
      be_side[s] = std::min(be_side[s], options[s].be_speed_be_side);
      lc_side[s] = std::min(lc_side[s], options[s].be_speed_lc_side);
      apps[a][s] = 1 / std::max<double>(options[s].lc_speed, kTie);
    }
    for (size_t s = 0; s < splits && speeds != Speeds::kPlanned; ++s) {
      const double speed = LcSpeed(*pairs_, a, kernel, static_cast<int32_t>(s), speeds);
      apps[a][s] = 1 / std::max(speed, kTie);
    }
  }
  std::copy(be_side.begin(), be_side.end(), row.be_side.begin());
  std::copy(lc_side.begin(), lc_side.end(), row.lc_side.begin());
}

void SplitValues::Judge(const BeTerm& be, Mechanism mechanism, Speeds speeds, PlannedSplits& out) {
  if (speeds == Speeds::kPlanned && be.kernel < kMaxPairKernels) {
    const Kept& kept = WithLoads(be.kernel);
    return Judge(be, kept.row, kept.loads, SlowdownsOf(be.kernel), mechanism, out);
  }
  std::array<Slowdowns, kMaxApps> apps;
  Row row;
  ReadRow(be.kernel, speeds, apps.data(), row);
  SideLoads loads;
  FindLoads(apps.data(), loads);
  Judge(be, row, loads, apps.data(), mechanism, out);
}

SplitValues::Kept& SplitValues::WithLoads(int32_t kernel) {
  Kept& kept = kept_[static_cast<size_t>(kernel)];
  if (!kept.has_row) ReadRow(kernel, Speeds::kPlanned, SlowdownsOf(kernel), kept.row);
  if (!kept.has_loads) FindLoads(SlowdownsOf(kernel), kept.loads);
  kept.has_row = kept.has_loads = true;
  return kept;
}

// Loads at which promises are judged, and mean service times: only of apps with targets do they
// differ from the loads.
void SplitValues::AddTargetLoads(const Slowdowns* apps, SideLoads& on_side, BySplit& peak) const {
  on_side.judged.fill(0);
  on_side.service.fill(0);
  for (int32_t a = 0; a < lc_count_; ++a) {
    const LcTerm& lc = lc_[static_cast<size_t>(a)];
    if (lc.silent) continue;
    const double judged = JudgedLoad(lc);
    const double service = lc.load * static_cast<double>(lc.promise.solo_ns);
    for (size_t s = 0; s < kSplits; ++s) {
      on_side.judged[s] += judged * apps[a][s];
      on_side.service[s] += service * apps[a][s] * apps[a][s];
      peak[s] += lc.peak_load * apps[a][s];
    }
  }
}

void SplitValues::FindLoads(const Slowdowns* apps, SideLoads& on_side) const {
  BySplit peak{};
  if (targets_) AddTargetLoads(apps, on_side, peak);
  on_side.load.fill(0);
  for (int32_t a = 0; a < lc_count_; ++a) {
    const LcTerm& lc = lc_[static_cast<size_t>(a)];
    AddProducts(lc.silent ? 0 : lc.load, apps[a], on_side.load);
  }
  if (!targets_) on_side.judged = on_side.load;
  for (size_t s = 0; s < kSplits && targets_; ++s) {
    if (on_side.load[s] > 0) on_side.service[s] /= on_side.load[s];
  }
  SetQueueing(peak, on_side);
}

// Queueing(), with one division a split. No operation may stand behind a condition, so that the
// loops vectorise: a factor is chosen, not a product, and the quotient before it is known to count.
void SplitValues::SetQueueing(const BySplit& peak, SideLoads& on_side) const {
  const double load = judged_load_;
  const double raise = (load + load_margin_) / std::max(load, kTie);
  const double idle = 1 - load;
  const double idle_raised = idle - load_margin_;
  for (size_t s = 0; s < kSplits; ++s) {
    const double judged = on_side.judged[s];
    const double below = 1 - judged * (judged <= load ? 1 : raise);
    on_side.queueing[s] = (judged <= load ? idle : idle_raised) / below;
  }
  for (size_t s = 0; s < kSplits; ++s) {
    const double judged = on_side.judged[s];
    const double raised = judged * (judged <= load ? 0 : raise);
    double queueing = on_side.queueing[s];
    queueing = on_side.load[s] < 1 ? queueing : kUnboundedInflation;
    queueing = judged < 1 ? queueing : kUnboundedInflation;
    queueing = peak[s] <= kQueueLoadMax ? queueing : kUnboundedInflation;
    on_side.queueing[s] = raised < kLoadMax ? queueing : kUnboundedInflation;
  }
}

void SplitValues::FindExcess(const SideLoads& loads, const Slowdowns* apps, int64_t blocking_ns,
                             BySplit& excess) const {
  excess.fill(-1);
  const auto delay_ns = static_cast<double>(blocking_ns);
  for (int32_t a = 0; a < lc_count_; ++a) {
    const LcTerm& lc = lc_[static_cast<size_t>(a)];
    if (lc.silent) continue;
    RaiseExcess(loads.queueing, apps[a], lc.slowdown_max,
                limits_[static_cast<size_t>(a)].At(delay_ns) + kTie, excess);
    for (size_t s = 0; s < kSplits && lc.promise.target_tail > 0; ++s) {
      if (!KeepsTarget(lc, loads, s, apps[a][s], blocking_ns)) excess[s] = 1;
    }
  }
}

bool SplitValues::KeepsTarget(const LcTerm& lc, const SideLoads& loads, size_t split,
                              double slowdown, int64_t blocking_ns) const {
  if (loads.queueing[split] >= kUnboundedInflation) return false;
  return lc.promise.Keeps(EffectOn(lc, loads, split, slowdown), blocking_ns);
}

QueueEffect SplitValues::EffectOnWhole(const LcTerm& lc) const {
  QueueEffect effect;
  if (lc.promise.target_ns <= 0) return effect;  // only a target asks for tails
  effect.whole_p99_ns =
      QueueP99(static_cast<double>(lc.promise.solo_ns), whole_service_ns_, judged_load_);
  effect.tail_p99_ns = effect.whole_p99_ns;
  return effect;
}

QueueEffect SplitValues::EffectOn(const LcTerm& lc, const SideLoads& loads, size_t split,
                                  double slowdown) const {
  QueueEffect effect = EffectOnWhole(lc);
  effect.inflation = loads.queueing[split] * slowdown;
  if (lc.promise.target_ns <= 0) return effect;
  effect.tail_p99_ns = QueueP99(static_cast<double>(lc.promise.solo_ns) * slowdown,
                                loads.service[split], loads.judged[split]);
  return effect;
}

PlannedPromise::Closest SplitValues::ClosestBeside(int64_t delay_ns, const SideLoads& loads,
                                                   const Slowdowns* apps, size_t split) const {
  PlannedPromise::Closest worst;
  for (int32_t a = 0; a < lc_count_; ++a) {
    const LcTerm& lc = lc_[static_cast<size_t>(a)];
    if (lc.silent) continue;
    const QueueEffect effect = EffectOn(lc, loads, split, apps[a][split]);
    const PlannedPromise::Closest closest =
        lc.promise.Worst(effect, effect.inflation < kUnboundedInflation, delay_ns);
    if (closest.ratio() > worst.ratio()) worst = closest;
  }
  return worst;
}

// A kernel that the pair table lacks, or that may not run there, brings none closer.
PlannedPromise::Closest SplitValues::ClosestPlanned(const BeTerm& be, int32_t split) {
  if (be.kernel >= kMaxPairKernels) return {};
  const auto s = static_cast<size_t>(split);
  const Sides sides = PlannedOf(be).sides[s];
  if (sides == Sides::kNone) return {};
  return ClosestBeside(sides == Sides::kBoth ? be.shift_ns : 0, WithLoads(be.kernel).loads,
                       SlowdownsOf(be.kernel), s);
}

// There the kernels differ in their delays alone, and the longest brings an app closest.
PlannedPromise::Closest SplitValues::ClosestOnWhole() const {
  int64_t shift_ns = 0;
  for (int32_t b = 0; b < question_->be_count; ++b) {
    shift_ns = std::max(shift_ns, question_->be[static_cast<size_t>(b)].shift_ns);
  }
  PlannedPromise::Closest worst;
  for (int32_t a = 0; a < lc_count_ && question_->be_count > 0; ++a) {
    const LcTerm& lc = lc_[static_cast<size_t>(a)];
    if (lc.silent) continue;
    const PlannedPromise::Closest closest = lc.promise.Worst(EffectOnWhole(lc), true, shift_ns);
    if (closest.ratio() > worst.ratio()) worst = closest;
  }
  return worst;
}

LatencyShift SplitValues::ShiftOn(int32_t split) {
  PlannedPromise::Closest worst;
  if (split == kNoSplit) worst = ClosestOnWhole();
  for (int32_t b = 0; b < question_->be_count && split != kNoSplit; ++b) {
    const PlannedPromise::Closest closest =
        ClosestPlanned(question_->be[static_cast<size_t>(b)], split);
    if (closest.ratio() > worst.ratio()) worst = closest;
  }
  return ShiftOf(worst);
}

// BE work stays on its side, where it delays no query.
LatencyShift SplitValues::ShiftOnTrial(int32_t split) const {
  PlannedPromise::Closest worst;
  const auto s = static_cast<size_t>(split);
  std::array<Slowdowns, kMaxApps> apps;
  for (int32_t b = 0; b < question_->be_count; ++b) {
    const BeTerm& be = question_->be[static_cast<size_t>(b)];
    Row row;
    ReadRow(be.kernel, Speeds::kHoped, apps.data(), row);
    SideLoads loads;
    FindLoads(apps.data(), loads);
    PlannedSplits hoped;
    Judge(be, row, loads, apps.data(), Mechanism::kBest, hoped);
    if (hoped.sides[s] == Sides::kNone) continue;
    const PlannedPromise::Closest closest = ClosestBeside(0, loads, apps.data(), s);
    if (closest.ratio() > worst.ratio()) worst = closest;
  }
  return ShiftOf(worst);
}

void SplitValues::Judge(const BeTerm& be, const Row& row, const SideLoads& loads,
                        const Slowdowns* apps, Mechanism mechanism, PlannedSplits& out) const {
  out.values.fill(0);
  out.sides.fill(Sides::kNone);
  if (!row.judged) return;
  BySplit beside;
  FindExcess(loads, apps, 0, beside);
  const bool may_return = be.fits && mechanism != Mechanism::kPartition;
  BySplit returning;  // work on the LC side delays a query
  if (may_return) FindExcess(loads, apps, be.shift_ns, returning);
  const int32_t splits = std::min(splits_, kMaxSplits);
  for (int32_t split = first_split_; split < splits; ++split) {
    const auto s = static_cast<size_t>(split);
    if (beside[s] > 0) continue;
    out.sides[s] = may_return && returning[s] <= 0 ? Sides::kBoth : Sides::kBeSide;
  }
  AddValues(be, row, loads, out);
}

// A task that nothing evicts has one launch: its two sides do not add up.
void SplitValues::AddValues(const BeTerm& be, const Row& row, const SideLoads& loads,
                            PlannedSplits& out) const {
  BySplit on_be_side;
  BySplit gain;  // of the LC side, while no query is active
  for (size_t s = 0; s < kSplits; ++s) {
    const double one = std::min(row.be_side[s], be.most);
    const double two = std::min(row.lc_side[s] + row.be_side[s], be.most);
    on_be_side[s] = one;
    gain[s] = std::max(0.0, 1 - loads.load[s] - returns_) * (two - one);
  }
  if (be.segment_ns > 0) SubtractReturns(be, row, loads, gain);
  const bool adds_up = be.evictable && !be.confined;
  for (size_t s = 0; s < kSplits; ++s) {
    const bool returns = adds_up && out.sides[s] == Sides::kBoth;
    const double value = on_be_side[s] + (returns ? gain[s] : 0);
    out.values[s] = out.sides[s] == Sides::kNone ? 0 : value;
  }
}

// What a graph in segments loses when it leaves the BE side for the whole device, after each busy
// period: the segments on the device end at the BE side's speed.
void SplitValues::SubtractReturns(const BeTerm& be, const Row& row, const SideLoads& loads,
                                  BySplit& gain) const {
  const double left_ns = kSegmentsLeft * static_cast<double>(be.segment_ns);
  for (size_t s = 0; s < kSplits; ++s) {
    const double slower = row.be_side[s] > 0 ? std::max(0.0, 1 / row.be_side[s] - 1) : 0;
    const double cost = queries_per_ns_ * (1 - loads.load[s]) * left_ns * slower;
    gain[s] -= std::min(cost, std::max(0.0, gain[s]));
  }
}

}  // namespace gpushare::core
