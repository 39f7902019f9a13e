// Terms and rounding of the question (question.h).

#include "src/core/policies/adaptive/arrangement/question.h"

#include <algorithm>
#include <bit>
#include <bitset>
#include <cmath>

#include "src/core/policies/adaptive/arrangement/tuning.h"
#include "src/core/policies/parts/be_quota.h"
#include "src/core/policies/parts/blocking.h"
#include "src/core/policies/parts/bounds.h"
#include "src/core/policies/parts/eviction.h"
#include "src/core/policies/parts/fewer_workers.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/policies/parts/same_work.h"
#include "src/core/promise/tuning.h"
#include "src/core/seams/graph_cut.h"

namespace gpushare::core {
namespace {

// Rounds up to steps of the next power of two, at most 6 % of the time, so that a small change of a
// prediction asks the same question.
int64_t RoundUp(int64_t ns) {
  if (ns <= 0) return 0;
  const auto magnitude = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(ns)));
  const int64_t step = magnitude / (kIdleShareSteps / 2);
  if (step == 0 || ns > kMaxDurationNs) return ns;
  return (ns + step - 1) / step * step;
}

bool PairsUsable(const Snapshot& snapshot) {
  const size_t size = snapshot.lc_apps.size() * static_cast<size_t>(snapshot.pairs.kernels) *
                      static_cast<size_t>(snapshot.pairs.splits);
  return size > 0 && snapshot.pairs.options.size() >= size;
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
double RoundDown(double share) {
  return static_cast<double>(static_cast<int64_t>(share * kIdleShareSteps)) / kIdleShareSteps;
}

// The first split whose LC side holds the reservations.
int32_t FirstSplit(const Snapshot& snapshot, int32_t splits) {
  const int32_t reserved = ReservedCapSms(snapshot);
  int32_t first = 0;
  while (first < splits && snapshot.splits[static_cast<size_t>(first)].lc_sms < reserved) ++first;
  return first;
}

// What a query would wait for on the whole device, or in the head's home there.
Delay DelayOf(const Snapshot& snapshot, const BeQuotas& quotas, const HeadView& head) {
  if (CanBeEvicted(snapshot, head)) return {.eviction_ns = head.eviction_ns};
  const PlaceIndex home = quotas.IsConfined(head) ? quotas.HomeOf(head) : kWholeDevice;
  return {.uncuttable_ns = BlockingOn(snapshot, head, std::max(home, kWholeDevice))};
}

// Without eviction a running task's blocking time shrinks as it runs, and the arrangement must not
// follow that. On a BE side the task counts as when it was launched; elsewhere it fitted then.
Delay DelayOf(const Snapshot& snapshot, const RunningView& running) {
  const HeadView& task = running.task;
  if (CanBeEvicted(snapshot, task)) return {.eviction_ns = task.eviction_ns};
  if ((running.places & PlaceBit(kWholeDevice)) != 0) return {};
  return {.uncuttable_ns =
              SumNs(BlockingOn(snapshot, task, kWholeDevice), SpentOn(snapshot, running))};
}

// Whether quotas leave SMs to others, so that several apps run side by side on the whole device.
class SideBySide {
 public:
  explicit SideBySide(const BeQuotas& quotas) : quotas_(quotas) {}
  void Note(const HeadView& task) {
    if (!IsBeCompute(task)) return;
    all_bounded_ = all_bounded_ && quotas_.any() && quotas_.BoundsWorkers(task);
    apps_.set(static_cast<size_t>(task.app));
  }
  int32_t apps() const {
    return all_bounded_ ? std::clamp(static_cast<int32_t>(apps_.count()), 1, kQuotaLanes) : 1;
  }

 private:
  const BeQuotas& quotas_;
  std::bitset<kMaxApps> apps_;
  bool all_bounded_ = true;
};

// Another task of the same kernel.
void AddTo(BeTerm& term, const BeTerm& other) {
  term.fits = term.fits && other.fits;
  term.share = std::min(term.share, other.share);
  term.evictable = term.evictable && other.evictable;
  term.shift_ns = term.fits ? std::max(term.shift_ns, other.shift_ns) : 0;
  term.stays_ns = std::max(term.stays_ns, other.stays_ns);
  term.weight = std::max(term.weight, other.weight);
  term.most = std::max(term.most, other.most);
  term.confined = term.confined && other.confined;
}

// The factor on a query's time at which two queries spend the slack that the app's lag has.
double SlowdownMax(const LcAppView& app) {
  const int64_t slack_ns = app.promise.LagSlack(app.solo_ns, app.shadow_p99_ns);
  if (app.solo_ns <= 0 || slack_ns == kNever) return kUnboundedInflation;
  const double most = 1 + static_cast<double>(slack_ns) / (2.0 * static_cast<double>(app.solo_ns));
  return std::min(kUnboundedInflation, std::floor(most * kSlowdownSteps) / kSlowdownSteps);
}

}  // namespace

double RoundLoad(double load) {
  if (!(load > 0)) return 0;
  if (load >= kLoadMax + 1) return kLoadMax;
  // As std::round, which is a call for each app of each plan.
  const double steps = load * kLoadSteps;
  const auto whole = static_cast<double>(static_cast<int64_t>(steps));
  return std::min((2 * (steps - whole) >= 1 ? whole + 1 : whole) / kLoadSteps, kLoadMax);
}

double LoadMargin(const Snapshot& snapshot) {
  double variance = 0;
  for (const LcAppView& app : snapshot.lc_apps) variance += app.load_error * app.load_error;
  const double steps = std::ceil(kLayoutLoadErrors * std::sqrt(variance) * kLoadSteps);
  return std::clamp(steps / kLoadSteps, kLayoutLoadMargin, 1.0);
}

LcTerm MakeLcTerm(const LcAppView& app) {
  LcTerm term;
  term.load = RoundLoad(app.load);
  term.silent = app.main_kernel.value == 0 && term.load == 0;
  const double tail =
      app.target_tail > 0 ? std::ceil(app.target_tail * kTargetTailSteps) / kTargetTailSteps : 0;
  term.promise = app.promise.Planned(app.solo_ns, tail);
  term.promise.solo_ns = RoundUp(app.solo_ns);
  term.slowdown_max = SlowdownMax(app);
  if (tail > 0) {
    term.peak_load =
        std::max(RoundLoad(app.peak_load), term.promise.bare ? kTargetLoadFloor : term.load);
  }
  return term;
}

int32_t FavouredSplit(const Snapshot& snapshot) {
  const bool any =
      std::any_of(snapshot.running.begin(), snapshot.running.end(),
                  [](const RunningView& running) { return IsBeCompute(running.task); });
  return any ? snapshot.in_force.split : kNoSplit;
}

bool Question::operator==(const Question& other) const {
  return QuestionFrame::operator==(other) &&
         std::equal(lc.begin(), lc.begin() + lc_count, other.lc.begin()) &&
         std::equal(be.begin(), be.begin() + be_count, other.be.begin());
}

void Question::CopyFrom(const Question& other) {
  static_cast<QuestionFrame&>(*this) = other;
  std::copy_n(other.lc.begin(), lc_count, lc.begin());
  std::copy_n(other.be.begin(), be_count, be.begin());
}

const Question& QuestionBuilder::Ask(const Snapshot& snapshot, uint32_t offered, Shifts& shifts) {
  question_.offered = offered;
  question_.pairs_version = snapshot.pairs.version;
  question_.favoured = FavouredSplit(snapshot);
  question_.load_margin = LoadMargin(snapshot);
  question_.splits =
      snapshot.partitions_available && PairsUsable(snapshot)
          ? std::min<int32_t>(snapshot.pairs.splits, static_cast<int32_t>(snapshot.splits.size()))
          : 0;
  question_.lc_count = question_.be_count = 0;
  question_.beside = 1;
  question_.trials_open = snapshot.trials_open;
  question_.tried_split = snapshot.in_force.TriedSplit();
  if (question_.splits == 0) return question_;  // the answer is the whole device
  question_.first_split = FirstSplit(snapshot, question_.splits);
  for (const LcAppView& app : snapshot.lc_apps) {
    question_.lc[static_cast<size_t>(question_.lc_count++)] = MakeLcTerm(app);
  }
  AddBeTerms(snapshot, shifts);
  return question_;
}

void QuestionBuilder::AddBeTerms(const Snapshot& snapshot, Shifts& shifts) {
  const BeQuotas quotas(snapshot, kNoSplit);
  SideBySide beside(quotas);
  const bool quiet = std::none_of(snapshot.lc_apps.begin(), snapshot.lc_apps.end(), HasLoad);
  const TermContext context = {snapshot, quotas, shifts, quiet};
  const int32_t kernels = std::min(snapshot.pairs.kernels, kMaxKernels);
  KernelBits present;
  std::fill_n(present.begin(), WordsOf(kernels), 0);
  const auto has_row = [&](const HeadView& task) {
    return task.app_class == AppClass::kBestEffort && task.kernel_index >= 0 &&
           task.kernel_index < kernels && task.confinable;
  };
  ForEachWork(snapshot.heads, [&](const HeadView& head) {
    beside.Note(head);
    if (has_row(head)) AddTask(context, head, DelayOf(snapshot, quotas, head), present);
  });
  for (const RunningView& running : snapshot.running) {
    beside.Note(running.task);
    if (has_row(running.task)) {
      AddTask(context, running.task, DelayOf(snapshot, running), present);
    }
  }
  question_.beside = beside.apps();
  TakeTerms({present.data(), WordsOf(kernels)});
}

void QuestionBuilder::AddTask(const TermContext& context, const HeadView& task, Delay delay,
                              KernelBits& present) {
  const size_t k = static_cast<size_t>(task.kernel_index);
  KernelScratch& scratch = by_kernel_[k];
  const bool first = (present[k / kWordBits] >> (k % kWordBits) & 1) == 0;
  // A running task counts as when it is launched again: another arrangement evicts it, and so does
  // the next query. Its own width would change the arrangement for one launch.
  const Width width =
      delay.eviction_ns > 0 && !(context.quotas.any() && context.quotas.BoundsWorkers(task))
          ? ChooseWidth(context.snapshot, task,
                        [&](int64_t ns) { return context.shifts.ShareOf({.eviction_ns = ns}); })
          : Width();
  const TermSource source = {
      .eviction_ns = EvictionOf(delay.eviction_ns, width, context.snapshot.eviction_write_ns),
      .weight = context.snapshot.be_apps[static_cast<size_t>(task.app)].weight,
      .uncuttable_ns = delay.uncuttable_ns,
      .speed = width.speed,
      .app = context.quotas.any() ? task.app : -1,
      .evictable = CanBeEvicted(context.snapshot, task)};
  if (!first && source == scratch.last) return;
  scratch.last = source;
  present[k / kWordBits] |= uint64_t{1} << (k % kWordBits);
  if (first) return FillTerm(context, task, source, scratch.term);
  BeTerm term;
  FillTerm(context, task, source, term);
  AddTo(scratch.term, term);
}

// On credit, while no LC app has a load: beside one, credit is for a task now and then, and an
// arrangement for all of them.
void QuestionBuilder::FillTerm(const TermContext& context, const HeadView& task,
                               const TermSource& source, BeTerm& term) {
  Delay delay = {source.eviction_ns, source.uncuttable_ns};
  double share = context.shifts.ShareOf(delay);
  if (share < 1 && context.quiet &&
      context.shifts.CreditOf(context.snapshot, delay.total_ns()).covered) {
    delay = {};
    share = 1;
  }
  const bool fits = share >= 1;
  term.kernel = task.kernel_index;
  term.fits = fits;
  term.share = RoundDown(share);
  term.evictable = source.evictable;
  term.shift_ns = fits ? context.shifts.ShiftOf(delay) : 0;
  term.stays_ns = source.evictable ? source.eviction_ns : 0;
  term.weight = source.weight;
  const double most = MostOf(context.snapshot, context.quotas, task);
  term.most = source.speed < 1 ? std::min(most, source.speed) : most;
  term.confined = context.quotas.IsConfined(task);
  term.segment_ns = RunsInSegments(context.snapshot, task) ? SegmentNsOf(*task.kernel) : 0;
}

void QuestionBuilder::TakeTerms(absl::Span<const uint64_t> present) {
  for (size_t word = 0; word < present.size(); ++word) {
    for (uint64_t bits = present[word]; bits != 0; bits &= bits - 1) {
      const size_t k = word * kWordBits + static_cast<size_t>(std::countr_zero(bits));
      BeTerm& term = question_.be[static_cast<size_t>(question_.be_count++)];
      term = by_kernel_[k].term;
      term.shift_ns = RoundUp(term.shift_ns);
      term.stays_ns = RoundUp(term.stays_ns);
    }
  }
}

}  // namespace gpushare::core
