// The evidence of one scheduler: what queries, BE parts and plans have shown, of all apps.
//
// An AppEvidence has what one LC app's queries show; this has what belongs to the device, to graphs
// and to kernels. The learn stage alone makes the calls, and passes facts: no estimator looks at a
// task or at a table.
//
//   QueryBegan(app, ...)     a query became active
//   BePartBegan(...)         a BE launch was accepted by the device
//   BePartEnded(...)         it has ended
//   QueryEnded(app, ...)     the query's last task is complete
//   View(...)                what the snapshot of a plan has of it
//   PlanMade(...)            the policy's answer: its arrangement is in force until the next plan
//
// Nothing allocates. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_EVIDENCE_EVIDENCE_H_
#define GPUSHARE_SRC_CORE_EVIDENCE_EVIDENCE_H_

#include <cstdint>

#include "absl/types/span.h"
#include "src/core/base/types.h"
#include "src/core/evidence/app_evidence.h"
#include "src/core/evidence/lc_load.h"
#include "src/core/evidence/pair_trial.h"
#include "src/core/evidence/segment_gain.h"
#include "src/core/evidence/serial_headroom.h"
#include "src/core/evidence/solo_runs.h"
#include "src/core/evidence/tuning.h"
#include "src/core/promise/promise.h"
#include "src/core/seams/cost_model.h"
#include "src/core/seams/kernel.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {

struct BegunQuery {
  TimeNs now_ns = 0;
  TimeNs arrival_ns = 0;
  TimeNs since_ns = 0;        // when the device got its first task; now: it has none yet
  int64_t sized_ns = 0;       // predicted from its input size; 0: unknown
  bool meets_credit = false;  // a BE task on credit is on the device (tail_account.h)
};

struct EndedQuery {
  TimeNs now_ns = 0;
  TimeNs arrival_ns = 0;
  TimeNs ended_ns = 0;  // its last task, on the device; now: it had none there
  ShadowQuery shadow = {};
  int64_t solo_ns = 0;      // predicted, all its tasks and the gaps between them; 0: unknown
  int64_t done_ns = 0;      // measured, likewise
  bool disturbed = false;   // a task of it did not run alone on the whole device, or failed
  bool waited = false;      // it began behind another one of its app
  bool dropped = false;     // it was too late, and was dropped before it began: it counts as late
  Promise promise = {};     // of its app
  bool only_waits = false;  // all queries of the app, this one included, wait for tickets
  bool last = false;        // no other query of the app was begun or submitted
  bool bounds_tokens = false;  // the app's bound counts distances between tokens, not queries
  int64_t distance_ns = 0;     // the longest one that its tasks end; 0: none
  // Whether it is a sample of what the bound counts.
  bool IsJudged() const { return !bounds_tokens || distance_ns > 0; }
  int64_t next_within_ns = 0;  // what it stated of the next one (steps.h)
  bool be_runs = false;        // BE compute work is on the device
  int32_t app_slot = 0;
  int32_t trial_kernel = -1;  // the BE kernel beside which it was on trial; -1: none (pair_trial.h)
};

struct BegunBePart {
  KernelId kernel = {};
  bool asks_for_solo_run = false;  // (solo_runs.h)
  bool begins_credit = false;      // its task runs on credit of the tail accounts from now on
  int64_t charge_ns = 0;           // what its task, which begins, takes of serial headrooms
};

struct EndedBePart {
  TimeNs now_ns = 0;
  TimeNs launched_ns = 0;
  double work_ns = 0;                  // what it did would have taken alone, as predicted
  const KernelDesc* kernel = nullptr;  // null: opaque work
  bool in_segments = false;
  bool measured_alone = false;  // its task ran in one launch with nothing beside it
  // Other graphs that run in segments now.
  absl::Span<const KernelDesc* const> graphs_beside = {};
};

// An LC app of a view.
struct LcAppFacts {
  AppEvidence* evidence = nullptr;
  bool only_waits = false;  // all its active queries wait for tickets
};

// Of the device.
struct EvidenceView {
  ArrangementInForce in_force;
  bool trials_open = false;
  TimeNs be_paused_until_ns = 0;  // the duty of BE work
  TimeNs be_pauses_at_ns = kNever;
  double tail_rate = 0;  // the steepest of the LC apps that limit BE work; 0: one is unknown
};

struct Evidence {
  // `shadow`: the query's own, for QueryEnded.
  void QueryBegan(AppEvidence& app, const BegunQuery& begin, ShadowQuery& shadow);
  void QueryEnded(AppEvidence& app, const EndedQuery& end);
  // A query counts as no load from now on, and says nothing of latencies. `last`: as of EndedQuery.
  void QueryLeft(AppEvidence& app, const ShadowQuery& shadow, bool last, TimeNs now_ns);
  // It counts as load again.
  void QueryReturned(AppEvidence& app, const ShadowQuery& shadow, TimeNs now_ns);
  void BePartBegan(const BegunBePart& begin);
  // A task that blocks the app so long starts on credit of its account.
  static void CreditBegan(AppEvidence& app, int64_t blocking_ns, TimeNs now_ns) {
    PutAside(app.account, blocking_ns, app.query_solo_ns, now_ns);
  }
  // BE work that ran for `took_ns`, not on credit, has ended (vacation_account.h).
  static void BeRan(AppEvidence& app, int64_t fixed_ns, int64_t uniform_ns, int64_t took_ns,
                    TimeNs now_ns) {
    if (!IsQuiet(app.account, now_ns)) TakeVacation(app.vacation, fixed_ns, uniform_ns, took_ns);
  }
  // Not of a copy.
  void BePartEnded(const EndedBePart& end);
  // Parts were dropped without an end, as a lane was given up.
  void PartsLost(TimeNs now_ns) { BeginAnew(segment_gains, now_ns); }

  // Fills the views of LC apps, in which the identity, the promise and the activity of each stand.
  EvidenceView View(absl::Span<const LcAppFacts> apps, const CostModel& model, TimeNs now_ns,
                    absl::Span<LcAppView> views);
  // Fills what a graph in segments gains.
  void ViewGraph(KernelId graph, TimeNs now_ns, HeadView& view) const;
  void PlanMade(const Plan& plan, TimeNs now_ns);
  // The trial has all that it asked for, or its time is over: its split may stay in force.
  void TrialEnded(TimeNs now_ns);

  ArrangementInForce in_force;
  LoadDecay load_decay;  // of the apps' loads
  PairTrial trial;
  SegmentGains segment_gains;
  SoloRuns solo_runs;
  SerialBook serial;
  TimeNs be_left_ns = -kDutyQuietNs;  // when BE compute work last left the device
  int32_t queries = 0;                // begun and not ended, of all apps
  int32_t apps_with_queries = 0;
  // The busy period of all apps met a task on credit: so did each of its queries that is active.
  bool busy_on_credit = false;

 private:
  void NoteTrial(const EndedQuery& end, int64_t limit_ns, int64_t judged_ns);
  void NoteDuty(AppEvidence& app, const EndedQuery& end);
  void NoteShadow(AppEvidence& app, const EndedQuery& end, int64_t latency_ns, int64_t judged_ns,
                  bool met_credit);
  SinceToken NoteSinceToken(AppEvidence& app, const EndedQuery& end, int64_t lag_ns,
                            bool met_credit) const;
  int64_t DelayByBe(const EndedQuery& end) const;
  void NoteGain(const EndedBePart& end);

  TimeNs busy_since_ns_ = 0;                // the present busy period of all apps, or the last one
  const AppEvidence* ended_app_ = nullptr;  // of the query that ended last, and when
  TimeNs ended_ns_ = 0;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_EVIDENCE_EVIDENCE_H_
