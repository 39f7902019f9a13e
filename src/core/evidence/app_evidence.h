// What the queries of one LC app have shown.
//
// The learn stage writes it through the calls of evidence.h. Others read it. BeginApp resets it
// when the app's slot gets an app, and UpdateApp a part of it when the app states another promise.
// Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_EVIDENCE_APP_EVIDENCE_H_
#define GPUSHARE_SRC_CORE_EVIDENCE_APP_EVIDENCE_H_

#include <algorithm>
#include <cstdint>

#include "src/core/base/recent_latencies.h"
#include "src/core/base/types.h"
#include "src/core/evidence/be_duty.h"
#include "src/core/evidence/eviction_delay.h"
#include "src/core/evidence/latency_tail.h"
#include "src/core/evidence/lc_load.h"
#include "src/core/evidence/main_kernel.h"
#include "src/core/evidence/recent_arrivals.h"
#include "src/core/evidence/shadow.h"
#include "src/core/evidence/slack_share.h"
#include "src/core/evidence/steps.h"
#include "src/core/evidence/tail_account.h"
#include "src/core/evidence/target_tail.h"
#include "src/core/evidence/vacation_account.h"
#include "src/core/promise/promise.h"

namespace gpushare::core {

// What happened since the query that ended the app's last distance between tokens: queries that
// give no token, as prefills of other requests, make the next distance longer.
struct SinceToken {
  int64_t delay_ns = 0;     // how much longer the queries took than in the shadow
  int64_t by_be_ns = 0;     // of that, by BE work at most
  int64_t lag_ns = 0;       // the last query's, which one that waits behind it inherits
  bool met_credit = false;  // one of them did
};

struct AppEvidence {
  LcLoad load;
  int64_t query_solo_ns = 0;   // of one query alone: stated at first, then smoothed
  int64_t launch_gap_ns = -1;  // between two launches of a query, with nothing beside; smoothed
  int32_t queries = 0;         // begun and not ended
  MainKernel main_kernel;
  RecentArrivals arrivals;
  Steps steps;
  TailAccount account;
  VacationAccount vacation;
  TargetTail target;
  BeDuty duty;
  Shadow shadow;
  EvictionDelay eviction;
  SlackShare slack;
  bool bound_lost = false;          // the bound is missed even alone (Promise::BoundIsLost)
  bool target_lost = false;         // the target is (Promise::TargetIsLost)
  int64_t late_not_alone = 0;       // queries that were late, and in the shadow were not
  LatencyTail tail;                 // of queries that met no task on credit
  RecentLatencies delivered;        // of all queries
  RecentLatencies first_tokens;     // from arrival to the first mark of a stream (token_streams.h)
  RecentLatencies token_distances;  // between two marks of a stream
  SinceToken since_token;           // of an app whose bound counts tokens
  // Its time stands still while it yields to LC apps of higher priority: that is no delay by BE
  // work, nor one that it would not have alone with those apps. So latencies, the shadow and its
  // lag are without it; `delivered` and loads are as the clock has them.
  int64_t yielded_ns = 0;
  TimeNs yielded_as_of_ns = 0;
  bool stands_still = false;  // as of yielded_as_of_ns
};

inline int64_t YieldedNs(const AppEvidence& app, TimeNs now_ns) {
  return app.yielded_ns + (app.stands_still ? now_ns - app.yielded_as_of_ns : 0);
}

// Whether its time stands still from now on. `from_ns`: since when, where that was not known;
// kNever: it does not.
inline void Yield(AppEvidence& app, bool stands_still, TimeNs from_ns, TimeNs now_ns) {
  const TimeNs since_ns = app.stands_still
                              ? app.yielded_as_of_ns
                              : std::max(std::min(from_ns, now_ns), app.yielded_as_of_ns);
  app.yielded_ns += now_ns - since_ns;
  app.yielded_as_of_ns = now_ns;
  app.stands_still = stands_still;
}

// The app is new. `solo_ns`: as it states, 0: unknown.
inline void BeginApp(AppEvidence& app, int64_t solo_ns, const Promise& promise, TimeNs now_ns) {
  app.load = LcLoad{.updated_ns = now_ns, .idle_since_ns = now_ns};
  app.query_solo_ns = solo_ns;
  app.launch_gap_ns = -1;
  app.queries = 0;
  app.main_kernel = MainKernel();
  app.arrivals = RecentArrivals();
  app.steps = Steps();
  app.account = TailAccount{.arrival_ns = now_ns};
  app.vacation = VacationAccount{.counted_ns = now_ns};
  app.target = TargetTailAtFirst(promise);
  app.duty = BeDuty();
  app.shadow = Shadow();
  app.eviction = EvictionDelay();
  app.slack = SlackShare();
  app.bound_lost = app.target_lost = false;
  app.late_not_alone = 0;
  app.tail.Clear();
  app.delivered.Clear();
  app.first_tokens.Clear();
  app.token_distances.Clear();
  app.since_token = SinceToken();
  app.yielded_ns = app.yielded_as_of_ns = 0;
  app.stands_still = false;
}

inline void NoteLaunchGap(AppEvidence& app, int64_t gap_ns) {
  const int64_t before_ns = app.launch_gap_ns;
  app.launch_gap_ns =
      before_ns < 0 ? gap_ns : before_ns + ((gap_ns - before_ns) >> kQuerySoloShift);
}

// What a query of so many launches takes longer than all of them.
inline int64_t GapsOf(const AppEvidence& app, int32_t launches) {
  return std::max<int64_t>(0, app.launch_gap_ns) * std::max(launches - 1, 0);
}

// The app serves another model: neither the latencies of the old one count, nor what was judged by
// them.
inline void ServeAnotherModel(AppEvidence& app, TimeNs now_ns) {
  BeginAnew(app.account, now_ns);
  app.vacation = VacationAccount{.counted_ns = now_ns};
  app.slack = SlackShare();
  app.tail.Clear();
  app.shadow.ForgetLatencies();
  app.duty = BeDuty();
}

// What BE work is held for. Where the bound is lost, the p99 alone that counts is the shadow's, or
// unknown.
inline Promise PromiseInForce(const AppEvidence& app, const Promise& stated) {
  Promise promise = stated;
  if (app.bound_lost) promise.p99_alone_ns = app.shadow.p99_ns();
  promise.slack_share = PartOf(app.slack);
  return promise;
}

// By what a query is late for BE work. A target that is lost says nothing of that.
inline Promise PromiseOfLateness(const AppEvidence& app, const Promise& stated) {
  const Promise promise = PromiseInForce(app, stated);
  return app.target_lost ? promise.WithoutTarget(app.shadow.p99_ns()) : promise;
}

// A target is lost from where a query alone takes as long as the target, until it takes clearly
// less.
inline void NoteTargetLost(AppEvidence& app, const Promise& stated, TimeNs now_ns) {
  const int64_t margin_ns =
      static_cast<int64_t>(RecentLatencies::kResolution * static_cast<double>(stated.target_ns));
  const bool lost = stated.TargetIsLost(app.query_solo_ns + (app.target_lost ? margin_ns : 0));
  if (lost == app.target_lost) return;
  app.target_lost = lost;
  BeginAnew(app.account, now_ns);
  app.vacation = VacationAccount{.counted_ns = now_ns};
}

// A bound is lost from where a query alone takes longer than the bound allows until it takes no
// longer than the stated p99 alone. Not of an app whose bound counts tokens: of a distance nobody
// knows what it is alone.
inline void NoteBoundLost(AppEvidence& app, const Promise& stated, TimeNs now_ns) {
  const bool stays = app.bound_lost && app.query_solo_ns > stated.p99_alone_ns;
  const bool lost = stays || stated.BoundIsLost(app.query_solo_ns);
  if (lost == app.bound_lost) return;
  app.bound_lost = lost;
  ServeAnotherModel(app, now_ns);
}

// The app states another promise than `before`.
//
// Kept: load, arrivals, durations, the shadow's queue, and counts since the app was created. Begun
// anew is what was judged by the old promise: the tail account, the window of what was delivered,
// the factor of late queries. An app whose p99 alone was known and is another one now serves
// another model: the latencies of the old one begin anew too, and the duty that they asked for.
inline void UpdateApp(AppEvidence& app, const Promise& before, const Promise& now, TimeNs now_ns) {
  if (now.LatencyLimit() != before.LatencyLimit()) {
    BeginAnew(app.account, now_ns);
    app.vacation = VacationAccount{.counted_ns = now_ns};
    app.slack = SlackShare();
  }
  const bool other_p99 = now.p99_alone_ns != before.p99_alone_ns;
  const bool stated = before.p99_alone_ns > 0 && now.p99_alone_ns > 0;
  if (other_p99 || now.LatencyLimit() != before.LatencyLimit()) {
    app.delivered.Clear();
    app.token_distances.Clear();
  }
  if (now.target_ns != before.target_ns || (other_p99 && !stated)) {
    app.target.factor = TargetTailAtFirst(now).factor;
  }
  if (other_p99 && stated) ServeAnotherModel(app, now_ns);
  app.bound_lost = app.bound_lost && now.BoundIsLost(app.query_solo_ns);
  app.target_lost = app.target_lost && now.TargetIsLost(app.query_solo_ns);
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_EVIDENCE_APP_EVIDENCE_H_
