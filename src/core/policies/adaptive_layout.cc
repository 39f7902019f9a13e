// The value and feasibility of each layout, and the memory of the last answers (adaptive_layout.h).

#include "src/core/policies/adaptive_layout.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "src/core/policies/be_quota.h"
#include "src/core/policies/blocking.h"
#include "src/core/policies/bounds.h"
#include "src/core/policies/eviction.h"
#include "src/core/policies/idle_share.h"
#include "src/core/seams/queue_tail.h"

namespace gpushare::core {
namespace {

// Rounds up to five significant bits (3 %), so that a small change of a prediction asks the same
// question.
int64_t RoundUp(int64_t ns) {
  if (ns <= 0) return 0;
  const int bits = 64 - std::countl_zero(static_cast<uint64_t>(ns));
  if (bits <= 5 || bits > 60) return ns;
  const int64_t step = int64_t{1} << (bits - 5);
  return (ns + step - 1) / step * step;
}

double RoundLoad(double load) {
  if (!(load > 0)) return 0;
  const double rounded = std::round(load * kLoadSteps) / kLoadSteps;
  return std::min(rounded, kLoadMax);
}

// What a layout does to one LC app.
struct LcEffect {
  double inflation = 1;    // of a p99 that is known
  double tail_p99_ns = 0;  // the p99 that the queue on its side gives
};

// p99 of an app with a bare target; beyond the target while nothing is known of its queries.
double TailP99(const LcTerm& lc, double tail_p99_ns) {
  if (lc.solo_ns <= 0) return kTargetTailMax * static_cast<double>(lc.target_ns);
  return lc.target_tail * tail_p99_ns;
}

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

// How much higher than measured the load of all LC apps may be, rounded up.
double LoadMargin(const Snapshot& snapshot) {
  double variance = 0;
  for (const LcAppView& app : snapshot.lc_apps) variance += app.load_error * app.load_error;
  const double steps = std::ceil(kLayoutLoadErrors * std::sqrt(variance) * kLoadSteps);
  return std::clamp(steps / kLoadSteps, kLayoutLoadMargin, 1.0);
}

// The factor on the p99 of a queue whose load rises from `load` to `split_load`. The smoothed load
// errs, and near a load of 1 a small error is a long queue: both are taken as higher by `margin`.
double Queueing(double load, double split_load, double margin) {
  if (split_load <= load) return (1 - load) / (1 - split_load);
  const double raised = split_load / std::max(load, 1e-9) * (load + margin);
  return raised < kLayoutSideLoadMax ? (1 - load - margin) / (1 - raised) : kUnboundedInflation;
}

// Predicted speeds and loads while one BE kernel runs beside all LC apps on one split.
struct SplitEffect {
  double load = 0;        // rho of all LC apps on the whole device
  double split_load = 0;  // rho' on the LC side
  double service_ns = 0;  // mean there, weighted by load
  double peak_load = 0;   // there, of apps with bare targets
  double be_side = 0;     // BE speeds, the worst over LC apps
  double lc_side = 0;
  double slowest = 1;  // the least LC speed
  bool stable = true;
};

// Which LC speed counts: with the BE side busy, busy and as a trial hopes, or empty.
enum class Speeds : uint8_t { kPlanned, kHoped, kAlone };

float LcSpeed(const PairTable& pairs, int32_t app, int32_t kernel, int32_t split, Speeds speeds) {
  const PairOption& option = pairs.at(app, kernel, split);
  if (speeds == Speeds::kAlone) return option.lc_speed_alone;
  const float hoped = speeds == Speeds::kHoped ? pairs.HopedAt(app, kernel, split) : 0;
  return hoped > 0 ? hoped : option.lc_speed;
}

class Evaluation {
 public:
  Evaluation(const LayoutQuestion& question, const PairTable& pairs)
      : question_(question), pairs_(pairs) {
    for (int32_t a = 0; a < question.lc_count; ++a) {
      const LcTerm& lc = question.lc[static_cast<size_t>(a)];
      load_ += lc.load;
      bare_targets_ = bare_targets_ || lc.target_tail > 0;
      if (lc.solo_ns > 0) queries_per_ns_ += lc.load / static_cast<double>(lc.solo_ns);
    }
    load_ = std::min(load_, kLoadMax);
  }

  // Share of time in which no query is active and BE is back: a busy period begins with an eviction
  // and ends with a return.
  double IdleShare(double load) const {
    const double idle = 1 - load;
    const double returns = queries_per_ns_ * (1 - load_) * kReturnGapNs;
    return std::max(0.0, idle - returns);
  }

  double WholeValue() const {
    double fitting = 0;
    for (int32_t b = 0; b < question_.be_count; ++b) {
      const BeTerm& be = question_.be[static_cast<size_t>(b)];
      fitting += be.weight * be.share * std::min(be.most, 1.0);
    }
    return fitting * IdleShare(load_) / WeightSum();
  }

  // A forced mechanism runs every kernel, but a kernel adds to the value only where the LC apps
  // keep their bounds beside it (kAlone: beside an empty BE side).
  double SplitValue(int32_t split, Mechanism mechanism, Speeds speeds, Layout* layout) const {
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

  // A BE kernel that nobody measured beside an LC app on the split; -1: none.
  int32_t UnknownOn(int32_t split) const {
    for (int32_t b = 0; b < question_.be_count; ++b) {
      const int32_t kernel = question_.be[static_cast<size_t>(b)].kernel;
      for (int32_t a = 0; a < question_.lc_count; ++a) {
        if (pairs_.HopedAt(a, kernel, split) > 0) return kernel;
      }
    }
    return -1;
  }

  // The least LC speed on the split with the BE side empty.
  double Knee(int32_t split) const {
    return question_.be_count == 0
               ? 0
               : EffectOf(question_.be[0].kernel, split, Speeds::kAlone).slowest;
  }

 private:
  SplitEffect EffectOf(int32_t kernel, int32_t split, Speeds speeds) const {
    SplitEffect effect;
    effect.load = load_;
    effect.be_side = effect.lc_side = effect.slowest = 1e9;
    for (int32_t a = 0; a < question_.lc_count; ++a) {
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
    if (bare_targets_ && effect.split_load > 0) effect.service_ns /= effect.split_load;
    if (!(effect.split_load < 1)) effect.stable = false;
    return effect;
  }

  bool AllKeepBounds(const SplitEffect& effect, int32_t kernel, int32_t split, Speeds speeds,
                     int64_t blocking_ns) const {
    if (!effect.stable || effect.peak_load > kTargetSideLoadMax) return false;
    const double queueing = Queueing(effect.load, effect.split_load, question_.load_margin);
    for (int32_t a = 0; a < question_.lc_count; ++a) {
      const double speed = LcSpeed(pairs_, a, kernel, split, speeds);
      const LcTerm& lc = question_.lc[static_cast<size_t>(a)];
      LcEffect on_split = {.inflation = queueing / speed};
      if (lc.target_tail > 0) {
        on_split.tail_p99_ns =
            QueueP99(static_cast<double>(lc.solo_ns) / speed, effect.service_ns, effect.split_load);
      }
      if (!KeepsBound(lc, on_split, blocking_ns)) return false;
    }
    return true;
  }

  Sides AllowedSides(const BeTerm& be, const SplitEffect& effect, int32_t split,
                     Mechanism mechanism, Speeds speeds) const {
    if (!AllKeepBounds(effect, be.kernel, split, speeds, 0)) return Sides::kNone;
    if (mechanism == Mechanism::kPartition || !be.fits) return Sides::kBeSide;
    return AllKeepBounds(effect, be.kernel, split, speeds, be.blocking_ns) ? Sides::kBoth
                                                                           : Sides::kBeSide;
  }

  static Sides ForcedSides(const BeTerm& be, Mechanism mechanism) {
    return mechanism == Mechanism::kElastic && (be.evictable || be.fits) ? Sides::kBoth
                                                                         : Sides::kBeSide;
  }

  // A task that nothing evicts has one launch: its two sides do not add up.
  double ValueOf(const SplitEffect& effect, Sides sides, const BeTerm& be) const {
    if (sides == Sides::kNone) return 0;
    const double be_side = std::min(effect.be_side, be.most);
    if (sides == Sides::kBeSide || !be.evictable || be.confined) return be_side;
    const double idle = IdleShare(effect.split_load);
    return idle * std::min(effect.lc_side + effect.be_side, be.most) + (1 - idle) * be_side;
  }

  double WeightSum() const {
    double sum = 0;
    for (int32_t b = 0; b < question_.be_count; ++b) {
      sum += question_.be[static_cast<size_t>(b)].weight;
    }
    return sum > 0 ? sum : 1;
  }

  const LayoutQuestion& question_;
  const PairTable& pairs_;
  double load_ = 0;
  double queries_per_ns_ = 0;
  bool bare_targets_ = false;
};

struct Choice {
  int32_t split = kWholeLayout;
  double value = 0;
};

// The layout of the largest predicted throughput. Near a tie the layout in force wins, else the
// whole device, where LC is fastest.
Choice BestLayout(const LayoutQuestion& question, const Evaluation& evaluation) {
  const int32_t current = std::max(question.current, kWholeLayout);  // unknown: the whole device
  if (question.be_count == 0) return {current, 0};
  const auto bonus = [&](int32_t split) { return split == current ? kLayoutHysteresis : 0.0; };
  Choice best = {kWholeLayout, evaluation.WholeValue()};
  best.value += best.value > 0 ? bonus(kWholeLayout) : 0;
  // From the largest LC side on: a quota makes BE sides equally good.
  for (int32_t split = question.splits - 1; split >= question.first_split; --split) {
    double value = evaluation.SplitValue(split, Mechanism::kBest, Speeds::kPlanned, nullptr);
    value += value > 0 ? bonus(split) : 0;
    if (value > best.value + 1e-9) best = {split, value};
  }
  return best;
}

// The split to try instead of `known`, the best layout without a trial: by the hoped speeds it is
// better by kTrialGain.
Choice BestTrial(const LayoutQuestion& question, const Evaluation& evaluation,
                 const Choice& known) {
  Choice best = {kWholeLayout, known.value + kTrialGain};
  for (int32_t split = question.splits - 1; split >= question.first_split; --split) {
    if (question.trial.split >= 0 && question.trial.split != split) continue;
    if (evaluation.UnknownOn(split) < 0) continue;
    const double value = evaluation.SplitValue(split, Mechanism::kBest, Speeds::kHoped, nullptr);
    if (value > best.value + 1e-9) best = {split, value};
  }
  return best;
}

// The best split for a forced mechanism: the split of the largest value. Where no split keeps the
// LC bounds, the value counts as if the BE side were empty (the knee); failing that, the split
// where LC is fastest.
int32_t ForcedSplit(const LayoutQuestion& question, Mechanism mechanism,
                    const Evaluation& evaluation) {
  if (question.be_count == 0) return std::max(question.current, kWholeLayout);
  int32_t best = kWholeLayout;
  double best_value = 0;
  const auto take = [&](int32_t split, double value) {
    if (value > 0 && split == question.current) value += kLayoutHysteresis;
    if (value > best_value + 1e-9) {
      best = split;
      best_value = value;
    }
  };
  for (const Speeds speeds : {Speeds::kPlanned, Speeds::kAlone}) {
    for (int32_t split = question.splits - 1; split >= question.first_split; --split) {
      take(split, evaluation.SplitValue(split, mechanism, speeds, nullptr));
    }
    if (best != kWholeLayout) return best;
  }
  for (int32_t split = question.first_split; split < question.splits; ++split) {
    take(split, evaluation.Knee(split));
  }
  return best;
}

// BE stays on its side.
void AnswerTrial(const LayoutQuestion& question, const Evaluation& evaluation, int32_t split,
                 Layout& layout) {
  layout.split = split;
  layout.trial_kernel = evaluation.UnknownOn(split);
  evaluation.SplitValue(split, Mechanism::kBest, Speeds::kHoped, &layout);
  for (int32_t b = 0; b < question.be_count; ++b) {
    Sides& sides = layout.sides[static_cast<size_t>(question.be[static_cast<size_t>(b)].kernel)];
    sides = std::min(sides, Sides::kBeSide);
  }
}

void Answer(const LayoutQuestion& question, const PairTable& pairs, Mechanism mechanism,
            Layout& layout) {
  const Evaluation evaluation(question, pairs);
  layout.trial_kernel = -1;
  if (mechanism == Mechanism::kEvict || question.splits == 0) {
    layout.split = kWholeLayout;
  } else if (mechanism == Mechanism::kBest) {
    const Choice known = BestLayout(question, evaluation);
    layout.split = known.split;
    if (question.trial.open) {
      const Choice trial = BestTrial(question, evaluation, known);
      if (trial.split >= 0) return AnswerTrial(question, evaluation, trial.split, layout);
    }
  } else {
    layout.split = ForcedSplit(question, mechanism, evaluation);
  }
  if (layout.split >= 0) evaluation.SplitValue(layout.split, mechanism, Speeds::kPlanned, &layout);
}

bool PairsUsable(const Snapshot& snapshot) {
  const size_t size = snapshot.lc_apps.size() * static_cast<size_t>(snapshot.pairs.kernels) *
                      static_cast<size_t>(snapshot.pairs.splits);
  return size > 0 && snapshot.pairs.options.size() >= size;
}

int32_t SplitOf(const Snapshot& snapshot, PlaceIndex place) {
  for (size_t s = 0; s < snapshot.splits.size(); ++s) {
    if (snapshot.splits[s].lc_place == place || snapshot.splits[s].be_place == place) {
      return static_cast<int32_t>(s);
    }
  }
  return kWholeLayout;
}

LcTerm MakeLcTerm(const LcAppView& app) {
  LcTerm term = {RoundLoad(app.load), app.p99_bound,
                 app.p50_bound,       app.p99_alone_ns > 0 ? app.p99_alone_ns : app.solo_ns,
                 app.target_ns,       RoundUp(app.solo_ns)};
  if (app.target_tail > 0) {
    term.target_tail = std::ceil(app.target_tail * kTargetTailSteps) / kTargetTailSteps;
    term.peak_load = std::max(RoundLoad(app.peak_load), kTargetLoadFloor);
  }
  return term;
}

// What a running task has done so far, as time on the whole device.
int64_t SpentOn(const Snapshot& snapshot, const RunningView& running) {
  double spent_ns = 0;
  for (const PartView& part : running.parts) {
    if (part.place < 0) continue;
    const double sms = snapshot.places[static_cast<size_t>(part.place)].sms;
    spent_ns += static_cast<double>(snapshot.now_ns - part.launched_ns) * sms /
                std::max(snapshot.sm_count, 1);
  }
  return static_cast<int64_t>(std::clamp(spent_ns, 0.0, static_cast<double>(kMaxDurationNs)));
}

// The share of the device that quotas and reservations leave to a task.
double MostOf(const Snapshot& snapshot, const BeQuotas& quotas, const HeadView& task) {
  int32_t sms = quotas.any() ? quotas.LimitOf(task) : snapshot.sm_count;
  if (sms >= snapshot.sm_count) return BeTerm::kUnbounded;
  if (quotas.IsConfined(task)) {
    sms = snapshot.places[static_cast<size_t>(quotas.HomeOf(task))].sms;
  }
  return static_cast<double>(sms) / std::max(snapshot.sm_count, 1);
}

// A share in steps, so that the question stays the same while a tail is estimated anew.
double RoundDown(double share) { return std::floor(share * kIdleShareSteps) / kIdleShareSteps; }

// The first split whose LC side holds the reservations.
int32_t FirstSplit(const Snapshot& snapshot, int32_t splits) {
  const int32_t reserved = ReservedCapSms(snapshot);
  int32_t first = 0;
  while (first < splits && snapshot.splits[static_cast<size_t>(first)].lc_sms < reserved) ++first;
  return first;
}

// What a head would block on the whole device, or in its home there; as an eviction.
int64_t HeadBlocking(const Snapshot& snapshot, const Budgets& budgets, const BeQuotas& quotas,
                     const HeadView& head) {
  if (head.app_class != AppClass::kBestEffort) return 0;
  if (CanBeEvicted(snapshot, head)) return head.eviction_ns;
  const PlaceIndex home = quotas.IsConfined(head) ? quotas.HomeOf(head) : kWholeDevice;
  return budgets.AsEviction(BlockingOn(snapshot, head, std::max(home, kWholeDevice)));
}

// Without eviction a running task's blocking time shrinks as it runs, and the layout must not
// follow that. On a BE side the task counts as when it was launched; elsewhere it fitted then.
int64_t RunningBlocking(const Snapshot& snapshot, const Budgets& budgets,
                        const RunningView& running) {
  const HeadView& task = running.task;
  if (CanBeEvicted(snapshot, task)) return task.eviction_ns;
  if ((running.places & PlaceBit(kWholeDevice)) != 0) return 0;
  return budgets.AsEviction(
      SumNs(BlockingOn(snapshot, task, kWholeDevice), SpentOn(snapshot, running)));
}

// Another task of the same kernel.
void AddTo(BeTerm& term, const BeTerm& other) {
  term.fits = term.fits && other.fits;
  term.share = std::min(term.share, other.share);
  term.evictable = term.evictable && other.evictable;
  term.blocking_ns = term.fits ? std::max(term.blocking_ns, other.blocking_ns) : 0;
  term.weight = std::max(term.weight, other.weight);
  term.most = std::max(term.most, other.most);
  term.confined = term.confined && other.confined;
}

}  // namespace

bool LayoutQuestion::operator==(const LayoutQuestion& other) const {
  return pairs_version == other.pairs_version && current == other.current &&
         load_margin == other.load_margin && splits == other.splits &&
         first_split == other.first_split && trial == other.trial && lc_count == other.lc_count &&
         be_count == other.be_count &&
         std::equal(lc.begin(), lc.begin() + lc_count, other.lc.begin()) &&
         std::equal(be.begin(), be.begin() + be_count, other.be.begin());
}

void LayoutQuestion::CopyFrom(const LayoutQuestion& other) {
  pairs_version = other.pairs_version;
  current = other.current;
  load_margin = other.load_margin;
  splits = other.splits;
  first_split = other.first_split;
  trial = other.trial;
  lc_count = other.lc_count;
  be_count = other.be_count;
  std::copy_n(other.lc.begin(), lc_count, lc.begin());
  std::copy_n(other.be.begin(), be_count, be.begin());
}

LayoutChooser::LayoutChooser(Mechanism mechanism)
    : mechanism_(mechanism), remembered_(kLayoutsRemembered) {}

void LayoutChooser::Ask(const Snapshot& snapshot, int32_t current) {
  question_.pairs_version = snapshot.pairs.version;
  question_.current = current;
  question_.load_margin = LoadMargin(snapshot);
  question_.splits =
      snapshot.partitions_available && PairsUsable(snapshot)
          ? std::min<int32_t>(snapshot.pairs.splits, static_cast<int32_t>(snapshot.splits.size()))
          : 0;
  question_.lc_count = question_.be_count = 0;
  question_.trial = snapshot.trial;
  if (question_.splits == 0) return;  // the answer is the whole device
  question_.first_split = FirstSplit(snapshot, question_.splits);
  for (const LcAppView& app : snapshot.lc_apps) {
    question_.lc[static_cast<size_t>(question_.lc_count++)] = MakeLcTerm(app);
  }

  const Budgets budgets(snapshot);
  const BeQuotas quotas(snapshot, kWholeLayout);
  const int32_t kernels = std::min(snapshot.pairs.kernels, kMaxKernels);
  std::array<uint64_t, kMaxKernels / 64> present{};
  const bool quiet = std::all_of(snapshot.lc_apps.begin(), snapshot.lc_apps.end(),
                                 [](const LcAppView& app) { return RoundLoad(app.load) == 0; });
  const auto add = [&](const HeadView& task, int64_t blocking_ns) {  // as an eviction
    if (task.app_class != AppClass::kBestEffort || task.kernel_index < 0 ||
        task.kernel_index >= kernels || !task.confinable) {
      return;
    }
    const size_t k = static_cast<size_t>(task.kernel_index);
    BeTerm& term = by_kernel_[k];
    // On credit, while no LC app has a load: beside one, credit is for a task now and then, and a
    // layout for all of them.
    const bool on_credit = quiet && blocking_ns > budgets.eviction_ns &&
                           AskTailAccounts(snapshot, budgets.AsUncuttable(blocking_ns)).covered;
    if (on_credit) blocking_ns = 0;
    const bool fits = blocking_ns <= budgets.eviction_ns;
    const BeTerm one = {task.kernel_index,
                        fits,
                        fits ? 1 : RoundDown(IdleShare(snapshot, blocking_ns, 0)),
                        CanBeEvicted(snapshot, task),
                        fits ? blocking_ns : 0,
                        snapshot.be_apps[static_cast<size_t>(task.app)].weight,
                        MostOf(snapshot, quotas, task),
                        quotas.IsConfined(task)};
    const bool first = (present[k / 64] >> (k % 64) & 1) == 0;
    present[k / 64] |= uint64_t{1} << (k % 64);
    if (first) {
      term = one;
    } else {
      AddTo(term, one);
    }
  };
  for (const HeadView& head : snapshot.heads) {
    add(head, HeadBlocking(snapshot, budgets, quotas, head));
  }
  for (const RunningView& running : snapshot.running) {
    add(running.task, RunningBlocking(snapshot, budgets, running));
  }
  for (size_t word = 0; word < present.size(); ++word) {
    for (uint64_t bits = present[word]; bits != 0; bits &= bits - 1) {
      const size_t k = word * 64 + static_cast<size_t>(std::countr_zero(bits));
      BeTerm& term = question_.be[static_cast<size_t>(question_.be_count++)];
      term = by_kernel_[k];
      term.blocking_ns = RoundUp(term.blocking_ns);
    }
  }
}

const Layout& LayoutChooser::Choose(const Snapshot& snapshot, int32_t current) {
  Ask(snapshot, current);
  for (const Remembered& entry : remembered_) {
    if (entry.used && entry.question == question_) return entry.answer;
  }
  Remembered& entry = remembered_[next_];
  next_ = (next_ + 1) % remembered_.size();
  entry.used = true;
  entry.question.CopyFrom(question_);
  Answer(question_, snapshot.pairs, mechanism_, entry.answer);
  return entry.answer;
}

int32_t CurrentLayout(const Snapshot& snapshot) {
  int32_t by_lc = kUnknownLayout;
  int32_t by_leaving = kUnknownLayout;
  for (const RunningView& running : snapshot.running) {
    if (running.task.kind == TaskKind::kMemcpy || !running.task.confinable) continue;
    for (const PartView& part : running.parts) {
      if (part.place < 0) continue;
      const int32_t split = SplitOf(snapshot, part.place);
      if (running.task.app_class == AppClass::kLatencyCritical) {
        by_lc = split;
      } else if (part.evicting) {
        by_leaving = split;
      } else {
        return split;
      }
    }
  }
  return by_leaving != kUnknownLayout ? by_leaving : by_lc;
}

LatencyEstimate WorstLatency(const Snapshot& snapshot, int32_t kernel, int32_t split) {
  double load = 0;
  double split_load = 0;
  double service_ns = 0;
  for (size_t a = 0; a < snapshot.lc_apps.size(); ++a) {
    const double rho = RoundLoad(snapshot.lc_apps[a].load);
    const double speed = snapshot.pairs.at(static_cast<int32_t>(a), kernel, split).lc_speed;
    load += rho;
    split_load += speed > 0 ? rho / speed : 1;
    if (speed > 0) {
      service_ns += rho / speed * static_cast<double>(snapshot.lc_apps[a].solo_ns) / speed;
    }
  }
  if (split_load > 0) service_ns /= split_load;
  const double margin = LoadMargin(snapshot);
  LatencyEstimate worst;
  double worst_ratio = 0;
  for (size_t a = 0; a < snapshot.lc_apps.size(); ++a) {
    const LcTerm lc = MakeLcTerm(snapshot.lc_apps[a]);
    const double speed = snapshot.pairs.at(static_cast<int32_t>(a), kernel, split).lc_speed;
    const bool stable = speed > 0 && split_load < 1;
    const auto consider = [&](double value, double limit) {
      if (!stable) value = static_cast<double>(kMaxDurationNs);  // the queue grows without end
      if (value / limit <= worst_ratio) return;
      worst_ratio = value / limit;
      worst = {static_cast<int64_t>(value), static_cast<int64_t>(limit)};
    };
    const double p99 = static_cast<double>(std::max<int64_t>(lc.p99_ns, 1));
    const bool bare = lc.target_tail > 0;
    double limit = lc.target_ns > 0 && !bare ? static_cast<double>(lc.target_ns) : 0;
    if (lc.p99_bound > 0 && (limit == 0 || lc.p99_bound * p99 < limit)) limit = lc.p99_bound * p99;
    if (limit > 0) {
      consider(p99 / speed * Queueing(std::min(load, kLoadMax), split_load, margin), limit);
    }
    if (lc.p50_bound > 0 && lc.solo_ns > 0) {
      const double solo = static_cast<double>(lc.solo_ns);
      consider(solo / speed * Queueing(std::min(load, kLoadMax), split_load, margin),
               lc.p50_bound * solo);
    }
    if (bare) {
      const double tail_p99_ns =
          QueueP99(static_cast<double>(lc.solo_ns) / speed, service_ns, split_load);
      consider(TailP99(lc, tail_p99_ns), static_cast<double>(lc.target_ns));
    }
  }
  return worst;
}

}  // namespace gpushare::core
