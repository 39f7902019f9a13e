// What each call adds to the estimators. See evidence.h.

#include "src/core/evidence/evidence.h"

#include <algorithm>
#include <utility>

#include "src/core/evidence/tuning.h"

namespace gpushare::core {
namespace {

// `yielded_ns`: the part of it that does not count. A query that was dropped before its deadline
// missed it all the same.
int64_t LatencyOf(const EndedQuery& end, int64_t yielded_ns) {
  const int64_t latency_ns = end.now_ns - end.arrival_ns - yielded_ns;
  return end.dropped ? std::max(latency_ns, end.promise.target_ns + 1) : latency_ns;
}

// What the query takes alone. A query without a prediction takes what it took; nothing if it was
// dropped, or ended before it arrived.
int64_t LoadOf(const EndedQuery& end, int64_t latency_ns) {
  if (end.dropped) return 0;
  return end.solo_ns > 0 ? end.solo_ns : std::max<int64_t>(0, latency_ns);
}

}  // namespace

void Evidence::QueryBegan(AppEvidence& app, const BegunQuery& begin, ShadowQuery& shadow) {
  const int64_t predicted_ns = begin.sized_ns > 0 ? begin.sized_ns : app.query_solo_ns;
  const int64_t yielded_ns = YieldedNs(app, begin.now_ns);
  app.shadow.Begin(begin.arrival_ns - yielded_ns, predicted_ns, begin.since_ns - yielded_ns,
                   shadow);
  shadow.yielded_ns = yielded_ns;
  if (app.queries == 0 && !IsQuiet(app.account, begin.now_ns)) {
    SaveIdleTime(app.vacation, app.load.idle_since_ns, begin.now_ns);
  }
  NoteArrival(app.account, begin.now_ns);
  app.arrivals.Add(begin.now_ns);
  app.steps.Begin(app.queries == 0, app.query_solo_ns, begin.since_ns, begin.now_ns);
  busy_on_credit = busy_on_credit || begin.meets_credit;
  // One that arrived before the last one ended goes on with its busy period: the host was late.
  if (queries++ == 0 && begin.arrival_ns > ended_ns_) busy_since_ns_ = begin.now_ns;
  if (app.queries++ == 0) ++apps_with_queries;
  BeginBusy(app.load, load_decay, begin.now_ns);
}

void Evidence::QueryEnded(AppEvidence& app, const EndedQuery& end) {
  const int64_t delivered_ns = LatencyOf(end, 0);
  const int64_t latency_ns = LatencyOf(end, YieldedNs(app, end.now_ns) - end.shadow.yielded_ns);
  const bool met_credit = busy_on_credit || (end.bounds_tokens && app.since_token.met_credit);
  if (--app.queries == 0) --apps_with_queries;
  if (--queries == 0) busy_on_credit = false;
  // What the bound counts. Where that is tokens, a query that gives none is no sample.
  const int64_t judged_ns = end.bounds_tokens ? end.distance_ns : latency_ns;
  const bool judged = end.IsJudged();
  if (!met_credit && judged) app.tail.Add(judged_ns);
  app.delivered.Add(delivered_ns, delivered_ns > end.promise.LatencyLimit());
  const Promise promise = PromiseOfLateness(app, end.promise);
  if (judged) NoteQuery(app.account, promise, app.query_solo_ns, judged_ns, met_credit);
  LearnLateness(app.target, end.promise, latency_ns);
  NoteShadow(app, end, latency_ns, judged_ns, met_credit);
  if (judged) NoteTrial(end, promise.LatencyLimit(), judged_ns);
  if (end.solo_ns > 0) {
    app.query_solo_ns =
        app.query_solo_ns == 0
            ? end.solo_ns
            : app.query_solo_ns + ((end.solo_ns - app.query_solo_ns) >> kQuerySoloShift);
  }
  if (!end.bounds_tokens) NoteBoundLost(app, end.promise, end.now_ns);
  NoteTargetLost(app, end.promise, end.now_ns);
  AddSolo(app.load, LoadOf(end, latency_ns));
  if (end.done_ns > 0) NoteLcWork(segment_gains, end.solo_ns);
  NoteDuty(app, end);
  if (!end.last) {
    if (app.queries == 1) {
      app.steps.EndSeenLate(end.next_within_ns, app.query_solo_ns, end.ended_ns);
    }
    return;
  }
  EndBusyPeriod(app.load, load_decay, end.now_ns);
  app.steps.End(end.next_within_ns, end.now_ns);
}

void Evidence::QueryLeft(AppEvidence& app, const ShadowQuery& shadow, bool last, TimeNs now_ns) {
  if (--app.queries == 0) --apps_with_queries;
  if (--queries == 0) busy_on_credit = false;
  app.shadow.Leave(shadow, now_ns - YieldedNs(app, now_ns));
  if (!last) return;
  EndBusyPeriod(app.load, load_decay, now_ns);
  app.steps.End(0, now_ns);
}

void Evidence::QueryReturned(AppEvidence& app, const ShadowQuery& shadow, TimeNs now_ns) {
  if (queries++ == 0) busy_since_ns_ = now_ns;
  if (app.queries++ == 0) ++apps_with_queries;
  app.steps.Return();
  app.shadow.Return(shadow, now_ns - YieldedNs(app, now_ns));
  BeginBusy(app.load, load_decay, now_ns);
}

// At most. A query that had the whole device once BE work had left it waited no longer than that
// work stayed: a host that stalls delays queries for longer.
int64_t Evidence::DelayByBe(const EndedQuery& end) const {
  if (!end.be_runs && be_left_ns < busy_since_ns_) return 0;
  if (end.disturbed || end.be_runs) return kNever;
  return be_left_ns - busy_since_ns_;
}

// What nothing disturbed took what it takes alone. Else its tasks were predicted. A query that was
// dropped takes nothing in the shadow either, and was late there if its wait left it too little.
void Evidence::NoteShadow(AppEvidence& app, const EndedQuery& end, int64_t latency_ns,
                          int64_t judged_ns, bool met_credit) {
  const bool alone = end.dropped || (!end.disturbed && end.done_ns > 0);
  const int64_t alone_ns = alone || end.solo_ns <= 0 ? end.done_ns : end.solo_ns;
  const TimeNs ended_ns = end.ended_ns - YieldedNs(app, end.now_ns);
  const int64_t shadow_ns =
      app.shadow.End(end.shadow, alone_ns, ended_ns) + (end.dropped ? end.solo_ns : 0);
  const int64_t slow_ns = app.shadow.slow_ns();
  const bool is_slow = slow_ns > 0 ? shadow_ns >= slow_ns : end.waited;
  NoteDelay(app.eviction, is_slow && !end.dropped, ended_ns - end.shadow.arrival_ns - shadow_ns);
  const int64_t limit_ns = end.promise.LatencyLimit();
  const SinceToken since = NoteSinceToken(app, end, latency_ns - shadow_ns, met_credit);
  // BE work made a distance longer by no more than the queries in it.
  const bool late_alone = judged_ns - since.delay_ns > limit_ns;
  const bool late = judged_ns > limit_ns;
  app.late_not_alone += late && !late_alone ? 1 : 0;
  if (limit_ns == kNever || !end.IsJudged()) return;
  const int64_t missing_ns = judged_ns - limit_ns - since.by_be_ns;
  const bool for_be = late && !late_alone && (met_credit || missing_ns <= DelayByBe(end));
  NoteLateness(app.slack, end.promise, app.query_solo_ns, for_be && !met_credit,
               late_alone || (late && !for_be));
}

// Returns the delays of what is judged, this query's included; by_be_ns is that of the others.
SinceToken Evidence::NoteSinceToken(AppEvidence& app, const EndedQuery& end, int64_t lag_ns,
                                    bool met_credit) const {
  if (!end.bounds_tokens) return {.delay_ns = lag_ns};
  SinceToken since = app.since_token;
  const int64_t own_ns = lag_ns - (end.waited ? since.lag_ns : 0);
  since.delay_ns += own_ns;
  app.since_token = {.lag_ns = lag_ns};
  if (end.IsJudged()) return since;
  const int64_t own_by_be_ns = std::min(std::max<int64_t>(0, own_ns), DelayByBe(end));
  app.since_token = {.delay_ns = since.delay_ns,
                     .by_be_ns = since.by_be_ns + own_by_be_ns,
                     .lag_ns = lag_ns,
                     .met_credit = met_credit};
  return since;
}

void Evidence::NoteTrial(const EndedQuery& end, int64_t limit_ns, int64_t judged_ns) {
  EarnTrialCredit(trial);
  if (end.trial_kernel < 0) return;
  const bool on_time = limit_ns != kNever && judged_ns <= limit_ns;
  NoteTrialQuery(trial, end.app_slot, end.trial_kernel, on_time);
}

// A query of an app that states a bound has ended. If it began where the app's last one ended, with
// the whole device to itself, its time counts for the duty of BE work.
void Evidence::NoteDuty(AppEvidence& app, const EndedQuery& end) {
  const AppEvidence* const last = std::exchange(ended_app_, &app);
  const TimeNs began_ns = std::exchange(ended_ns_, end.now_ns);
  if (!end.promise.BoundsP99() || last != &app || end.arrival_ns > began_ns) return;
  const TimeNs without_be_ns = end.be_runs ? kNever : be_left_ns;
  if (end.disturbed || end.done_ns <= 0 || without_be_ns > began_ns) return;
  const bool others = apps_with_queries > (app.queries > 0 ? 1 : 0);
  if (others) return;
  const double load = LoadAt(app.load, load_decay, end.only_waits, end.now_ns);
  NoteServiceTime(app.duty, end.now_ns - began_ns, without_be_ns <= began_ns - kDutyQuietNs,
                  end.promise.ToleratedLonger(load), app.query_solo_ns, end.now_ns);
}

void Evidence::BePartBegan(const BegunBePart& begin) {
  if (begin.asks_for_solo_run) NoteSoloAsked(solo_runs, begin.kernel);
  if (serial.kept) serial.charged_ns += begin.charge_ns;
  // Queries that are active now meet the task too.
  if (begin.begins_credit && queries > 0) busy_on_credit = true;
}

void Evidence::BePartEnded(const EndedBePart& end) {
  be_left_ns = end.now_ns;
  NoteGain(end);
  if (end.measured_alone && end.kernel != nullptr) NoteSoloMeasured(solo_runs, end.kernel->id);
}

// What the part did beside queries counts for all graphs in segments on the device. Without a known
// duration nobody can tell how much it did.
void Evidence::NoteGain(const EndedBePart& end) {
  NoteBePart(segment_gains, end.launched_ns, end.work_ns, end.now_ns);
  if (!end.in_segments) return;
  if (!HasKnownDuration(solo_runs, *end.kernel)) return BeginAnew(segment_gains, end.now_ns);
  CreditInterval(segment_gains, end.kernel->id, end.now_ns);
  for (const KernelDesc* const graph : end.graphs_beside) {
    if (HasKnownDuration(solo_runs, *graph)) {
      CreditInterval(segment_gains, graph->id, end.now_ns);
    }
  }
  BeginInterval(segment_gains, end.now_ns);
}

void Evidence::PlanMade(const Plan& plan, TimeNs now_ns) {
  in_force = plan.arrangement;
  FollowPlan(trial, in_force.TriedSplit(), in_force.trial_kernel, now_ns);
  FollowPlan(segment_gains, in_force.segments, now_ns);
}

void Evidence::TrialEnded(TimeNs now_ns) {
  in_force.trial_kernel = ArrangementInForce::kNoTrial;
  FollowPlan(trial, kNoSplit, ArrangementInForce::kNoTrial, now_ns);
}

}  // namespace gpushare::core
