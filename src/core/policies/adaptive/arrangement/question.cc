// Terms and rounding of the question (question.h).

#include "src/core/policies/adaptive/arrangement/question.h"

#include <algorithm>
#include <bit>
#include <bitset>
#include <cmath>

#include "src/core/policies/parts/be_quota.h"
#include "src/core/policies/parts/blocking.h"
#include "src/core/policies/parts/bounds.h"
#include "src/core/policies/parts/eviction.h"
#include "src/core/policies/parts/launch_form.h"
#include "src/core/policies/parts/same_work.h"
#include "src/core/seams/graph_cut.h"

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

// What a head would block on the whole device, or in its home there; as an eviction.
int64_t HeadBlocking(const Snapshot& snapshot, const Budgets& budgets, const BeQuotas& quotas,
                     const HeadView& head) {
  if (head.app_class != AppClass::kBestEffort) return 0;
  if (CanBeEvicted(snapshot, head)) return head.eviction_ns;
  const PlaceIndex home = quotas.IsConfined(head) ? quotas.HomeOf(head) : kWholeDevice;
  return budgets.AsEviction(BlockingOn(snapshot, head, std::max(home, kWholeDevice)));
}

// Without eviction a running task's blocking time shrinks as it runs, and the arrangement must not
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

double RoundLoad(double load) {
  if (!(load > 0)) return 0;
  if (load >= kLoadMax + 1) return kLoadMax;
  // As std::round, which is a call for each app of each plan.
  const double steps = load * kLoadSteps;
  const auto whole = static_cast<double>(static_cast<int64_t>(steps));
  return std::min((steps - whole >= 0.5 ? whole + 1 : whole) / kLoadSteps, kLoadMax);
}

double LoadMargin(const Snapshot& snapshot) {
  double variance = 0;
  for (const LcAppView& app : snapshot.lc_apps) variance += app.load_error * app.load_error;
  const double steps = std::ceil(kLayoutLoadErrors * std::sqrt(variance) * kLoadSteps);
  return std::clamp(steps / kLoadSteps, kLayoutLoadMargin, 1.0);
}

// The factor on a query's time at which two queries spend the slack that the app's lag has.
double SlowdownMax(const LcAppView& app) {
  const int64_t slack_ns = app.promise.LagSlack(app.solo_ns, app.shadow_p99_ns);
  if (app.solo_ns <= 0 || slack_ns == kNever) return kUnboundedInflation;
  const double most = 1 + static_cast<double>(slack_ns) / (2.0 * static_cast<double>(app.solo_ns));
  return std::min(kUnboundedInflation, std::floor(most * kSlowdownSteps) / kSlowdownSteps);
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
  return pairs_version == other.pairs_version && favoured == other.favoured &&
         load_margin == other.load_margin && beside == other.beside && splits == other.splits &&
         first_split == other.first_split && trials_open == other.trials_open &&
         tried_split == other.tried_split && lc_count == other.lc_count &&
         be_count == other.be_count &&
         std::equal(lc.begin(), lc.begin() + lc_count, other.lc.begin()) &&
         std::equal(be.begin(), be.begin() + be_count, other.be.begin());
}

void Question::CopyFrom(const Question& other) {
  pairs_version = other.pairs_version;
  favoured = other.favoured;
  load_margin = other.load_margin;
  beside = other.beside;
  splits = other.splits;
  first_split = other.first_split;
  trials_open = other.trials_open;
  tried_split = other.tried_split;
  lc_count = other.lc_count;
  be_count = other.be_count;
  std::copy_n(other.lc.begin(), lc_count, lc.begin());
  std::copy_n(other.be.begin(), be_count, be.begin());
}

const Question& QuestionBuilder::Ask(const Snapshot& snapshot, IdleShares& idle_shares) {
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
  AddBeTerms(snapshot, idle_shares);
  return question_;
}

void QuestionBuilder::AddBeTerms(const Snapshot& snapshot, IdleShares& idle_shares) {
  const Budgets budgets(snapshot);
  const BeQuotas quotas(snapshot, kNoSplit);
  const int32_t kernels = std::min(snapshot.pairs.kernels, kMaxKernels);
  std::array<uint64_t, kMaxKernels / 64> present;
  const size_t words = (static_cast<size_t>(kernels) + 63) / 64;
  std::fill_n(present.begin(), words, 0);
  const bool quiet = std::all_of(snapshot.lc_apps.begin(), snapshot.lc_apps.end(),
                                 [](const LcAppView& app) { return RoundLoad(app.load) == 0; });
  std::bitset<kMaxApps> bounded;  // apps whose quota leaves SMs to others
  bool all_bounded = true;
  const auto note_quota = [&](const HeadView& task) {
    if (!IsBeCompute(task)) return;
    all_bounded = all_bounded && quotas.any() && quotas.BoundsWorkers(task);
    bounded.set(static_cast<size_t>(task.app));
  };
  const auto add = [&](const HeadView& task, int64_t blocking_ns) {  // as an eviction
    note_quota(task);
    if (task.app_class != AppClass::kBestEffort || task.kernel_index < 0 ||
        task.kernel_index >= kernels || !task.confinable) {
      return;
    }
    const size_t k = static_cast<size_t>(task.kernel_index);
    BeTerm& term = by_kernel_[k].term;
    const bool first = (present[k / 64] >> (k % 64) & 1) == 0;
    const TermSource source = {quotas.any() ? task.app : -1,
                               snapshot.be_apps[static_cast<size_t>(task.app)].weight,
                               CanBeEvicted(snapshot, task), blocking_ns};
    if (!first && source == by_kernel_[k].last) return;
    by_kernel_[k].last = source;
    // On credit, while no LC app has a load: beside one, credit is for a task now and then, and a
    // arrangement for all of them.
    const bool on_credit = quiet && blocking_ns > budgets.eviction_ns &&
                           AskTailAccounts(snapshot, budgets.AsUncuttable(blocking_ns)).covered;
    if (on_credit) blocking_ns = 0;
    const bool fits = blocking_ns <= budgets.eviction_ns;
    const BeTerm one = {task.kernel_index,
                        fits,
                        fits ? 1 : RoundDown(idle_shares.Of(blocking_ns, 0)),
                        source.evictable,
                        fits ? blocking_ns : 0,
                        source.weight,
                        MostOf(snapshot, quotas, task),
                        quotas.IsConfined(task),
                        RunsInSegments(snapshot, task) ? SegmentNsOf(*task.kernel) : 0};
    present[k / 64] |= uint64_t{1} << (k % 64);
    if (first) {
      term = one;
    } else {
      AddTo(term, one);
    }
  };
  ForEachWork(snapshot.heads, [&](const HeadView& head) {
    add(head, HeadBlocking(snapshot, budgets, quotas, head));
  });
  for (const RunningView& running : snapshot.running) {
    add(running.task, RunningBlocking(snapshot, budgets, running));
  }
  const auto apps = static_cast<int32_t>(bounded.count());
  question_.beside = all_bounded ? std::clamp(apps, 1, kQuotaLanes) : 1;
  TakeTerms({present.data(), words});
}

void QuestionBuilder::TakeTerms(absl::Span<const uint64_t> present) {
  for (size_t word = 0; word < present.size(); ++word) {
    for (uint64_t bits = present[word]; bits != 0; bits &= bits - 1) {
      const size_t k = word * 64 + static_cast<size_t>(std::countr_zero(bits));
      BeTerm& term = question_.be[static_cast<size_t>(question_.be_count++)];
      term = by_kernel_[k].term;
      term.blocking_ns = RoundUp(term.blocking_ns);
    }
  }
}

}  // namespace gpushare::core
