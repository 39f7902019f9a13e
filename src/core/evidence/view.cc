// What the evidence says to a plan. See evidence.h.

#include <algorithm>
#include <cmath>

#include "src/core/evidence/evidence.h"
#include "src/core/promise/tuning.h"
#include "src/core/queueing/queue_tail.h"
#include "src/core/queueing/vacation.h"

namespace gpushare::core {
namespace {

// The load of all LC apps, and the mean service time of their queries, weighted by load.
struct LcQueue {
  double load = 0;
  double mean_service_ns = 0;
  LoadTail tail;   // of both
  double now = 0;  // the load by the last few queries, at most
};

// The loads are in the views.
LcQueue LcQueueOf(absl::Span<const LcAppView> views) {
  LcQueue queue;
  for (const LcAppView& view : views) {
    queue.load += view.load;
    queue.mean_service_ns += view.load * static_cast<double>(view.solo_ns);
  }
  if (queue.load > 0) queue.mean_service_ns /= queue.load;
  queue.tail = {PoissonTailRate(queue.load, queue.mean_service_ns), TailSpread(queue.load)};
  return queue;
}

// What the app's target leaves; kNever without a target.
int64_t BudgetOfTarget(const AppEvidence& app, const LcAppView& view, const LcQueue& queue) {
  if (!view.promise.HasTarget()) return kNever;
  const double p99_ns = view.solo_ns == 0 ? 0
                                          : QueueP99(static_cast<double>(view.solo_ns),
                                                     queue.mean_service_ns, queue.load);
  return view.promise.TargetSlack(p99_ns, app.target.factor);
}

// In a lull the p99 of the whole load is far away: a delay makes hardly a query of it late. Of the
// load that ends it 19 of 20 queries are on time behind it too; the others take from the part of
// the slack.
int64_t LullDelay(const AppEvidence& app, const LcAppView& view, const LcQueue& queue) {
  const int64_t limit_ns = view.promise.LatencyLimit();
  if (limit_ns == kNever || view.solo_ns <= 0 || !(queue.now < kQueueLoadMax)) return 0;
  const double latency_ns = QueueQuantile(static_cast<double>(view.solo_ns), queue.mean_service_ns,
                                          queue.now, kKeptOfSplit * kLateOfP99);
  const double before_ns = std::max(latency_ns, static_cast<double>(app.shadow.slow_ns()));
  const double left_ns = static_cast<double>(limit_ns) - before_ns;
  return left_ns <= 0 ? 0 : static_cast<int64_t>(view.promise.slack_share * left_ns);
}

// Of the queries behind a silence, the share that BE work may make late. They are few, so that more
// of them may be late than of all.
double FirstLateMax(const AppEvidence& app, const Promise& promise, int64_t solo_ns) {
  const double silences = app.steps.SilenceShare();
  if (silences >= 1) return 0;
  const bool known = promise.LatencyLimit() != kNever;
  const double left =
      known ? LeftOfLate(kLateShare, app.slack.late_alone, promise, solo_ns) : kTailShareUnknown;
  const double most = std::min(1.0, promise.slack_share * left / silences);
  return std::floor(most * kLoadSteps) / kLoadSteps;
}

// A bound is on the p99, so a launch may be longer than the shift that the bound allows. The median
// moves by nearly all of it.
void ViewBudgets(AppEvidence& app, const LcQueue& queue, Vacations& vacations, TimeNs now_ns,
                 LcAppView& view) {
  view.blocking_budget_ns = view.uncuttable_budget_ns = kNever;
  if (IsSilent(app.account, now_ns)) return;
  const Promise& promise = view.promise;
  const int64_t target_ns =
      std::min(BudgetOfTarget(app, view, queue), promise.MedianSlack(view.solo_ns));
  const int64_t shift_ns = promise.Slack(view.solo_ns);
  view.blocking_budget_ns = std::min(target_ns, shift_ns);
  view.uncuttable_budget_ns =
      std::min(target_ns, app.tail.LongestVacation(shift_ns, queue.tail, vacations));
  view.tail_rate = shift_ns <= target_ns ? app.tail.Rate(queue.tail) : 0;
  if (promise.BoundsP99() && shift_ns <= target_ns) {
    view.first_late_max = FirstLateMax(app, promise, view.solo_ns);
  }
  view.lull_delay_ns = std::min(LullDelay(app, view, queue), promise.MedianSlack(view.solo_ns));
  view.late_delay_ns =
      LateDelay(shift_ns, promise.p99_alone_ns, view.solo_ns, app.tail.quantiles());
}

// The budgets are in the view. Of a launch that makes half of the queries late which meet it, the
// tail is no measure: it is for the tail account.
void ViewVacation(AppEvidence& app, TimeNs now_ns, LcAppView& view) {
  const bool is_idle = view.active_queries == 0 && !IsQuiet(app.account, now_ns);
  if (is_idle) SaveIdleTime(app.vacation, app.load.idle_since_ns, now_ns);
  const bool limited = view.blocking_budget_ns != kNever;
  FollowTail(app.vacation, limited ? view.tail_rate : 0, view.blocking_budget_ns);
  const int64_t saved_ns = std::min(LongestOf(app.vacation), view.late_delay_ns);
  view.saved_vacation_ns = saved_ns > view.LongestUncuttable() ? saved_ns : 0;
}

void ViewApp(AppEvidence& app, const LcQueue& queue, const CostModel& model, Vacations& vacations,
             TimeNs now_ns, LcAppView& view) {
  view.load_error = app.account.arrivals == 0
                        ? 0
                        : LoadError(view.load, view.solo_ns, app.account.first_arrival_ns, now_ns);
  const bool has_target = view.promise.HasTarget();
  view.target_tail = has_target ? app.target.factor : 0;
  view.peak_load = has_target ? PeakLoad(app.target, view.load, app.load.weight, now_ns) : 0;
  ViewBudgets(app, queue, vacations, now_ns, view);
  const TimeNs own_ns = now_ns - YieldedNs(app, now_ns);
  view.lag_ns = app.shadow.LagNs(own_ns);
  view.shadow_p99_ns = app.shadow.p99_ns();
  view.service_age_ns = app.shadow.ServiceAgeNs(own_ns);
  view.idle_since_ns = app.load.idle_since_ns;
  ViewVacation(app, now_ns, view);
  app.steps.NoteLapse(now_ns);
  view.expected_by_ns = app.steps.ExpectedBy(now_ns);
  const KernelDesc* const kernel = app.main_kernel.kernel;
  view.main_kernel = kernel == nullptr ? KernelId{} : kernel->id;
  view.main_kernel_ns = MeanPredictedNs(app.main_kernel);
  const GraphCode* const graph = kernel == nullptr ? nullptr : kernel->graph();
  view.pieces = graph == nullptr ? absl::Span<const GraphPiece>() : graph->pieces;
  view.speed_beside_copies = SpeedsBesideCopies(app.main_kernel, model);
}

void ViewAccount(TailAccount& account, double load, TimeNs now_ns, LcAppView& view) {
  if (view.blocking_budget_ns == kNever) return;
  if (view.active_queries == 0) CreditQuietTime(account, now_ns);
  account.late_delay_ns = view.late_delay_ns == kNever ? 0 : view.late_delay_ns;
  view.tail_credit = CreditAt(account, now_ns);
  view.tail_need_per_ns = TailNeedPerNs(account, load, view.solo_ns, now_ns);
}

// The steepest tail of the LC apps that limit BE work; 0: that of one is unknown.
double SteepestTail(absl::Span<const LcAppView> views) {
  double steepest = 0;
  for (const LcAppView& view : views) {
    if (view.blocking_budget_ns == kNever) continue;
    if (!(view.tail_rate > 0)) return 0;
    steepest = std::max(steepest, view.tail_rate);
  }
  return steepest;
}

// The duty that the strictest LC app leaves; one that sends nothing leaves all.
void ViewDuty(absl::Span<const LcAppFacts> apps, absl::Span<const LcAppView> views, TimeNs now_ns,
              EvidenceView& out) {
  for (size_t a = 0; a < apps.size(); ++a) {
    if (views[a].load * kLoadSteps < 0.5) continue;
    const DutyWindow window = DutyAt(apps[a].evidence->duty, now_ns);
    out.be_paused_until_ns = std::max(out.be_paused_until_ns, window.paused_until_ns);
    out.be_pauses_at_ns = std::min(out.be_pauses_at_ns, window.pauses_at_ns);
  }
}

}  // namespace

EvidenceView Evidence::View(absl::Span<const LcAppFacts> apps, const CostModel& model,
                            TimeNs now_ns, absl::Span<LcAppView> views) {
  for (size_t a = 0; a < apps.size(); ++a) {
    AppEvidence& app = *apps[a].evidence;
    views[a].solo_ns = app.query_solo_ns;
    views[a].load = LoadAt(app.load, load_decay, apps[a].only_waits, now_ns);
  }
  LcQueue queue = LcQueueOf(views);
  for (size_t a = 0; a < apps.size(); ++a) {
    queue.now +=
        apps[a].evidence->arrivals.RateAtMost(now_ns) * static_cast<double>(views[a].solo_ns);
  }
  Vacations vacations;
  for (size_t a = 0; a < apps.size(); ++a) {
    ViewApp(*apps[a].evidence, queue, model, vacations, now_ns, views[a]);
  }
  double load = 0;
  for (const LcAppView& view : views) load += view.load;
  for (size_t a = 0; a < apps.size(); ++a) {
    ViewAccount(apps[a].evidence->account, load, now_ns, views[a]);
  }
  EvidenceView out;
  out.in_force = in_force;
  out.trials_open = AreOpen(trial);
  out.tail_rate = SteepestTail(views);
  ViewDuty(apps, views, now_ns, out);
  return out;
}

void Evidence::ViewGraph(KernelId graph, TimeNs now_ns, HeadView& view) const {
  view.segment_gain = GainOf(segment_gains, graph, now_ns);
  const SplitGain on_split = SplitGainOf(segment_gains, graph, now_ns);
  view.split_gain = on_split.gain;
  view.split_gain_known = on_split.known;
}

}  // namespace gpushare::core
