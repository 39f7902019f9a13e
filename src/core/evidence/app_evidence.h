// What the queries of one LC app have shown.
//
// The learn stage writes it through the calls of evidence.h. Others read it, and BeginApp resets it
// when the app's slot gets an app. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_EVIDENCE_APP_EVIDENCE_H_
#define GPUSHARE_SRC_CORE_EVIDENCE_APP_EVIDENCE_H_

#include <cstdint>

#include "src/core/base/recent_latencies.h"
#include "src/core/base/types.h"
#include "src/core/evidence/be_duty.h"
#include "src/core/evidence/latency_tail.h"
#include "src/core/evidence/lc_load.h"
#include "src/core/evidence/main_kernel.h"
#include "src/core/evidence/shadow.h"
#include "src/core/evidence/tail_account.h"
#include "src/core/evidence/target_tail.h"
#include "src/core/promise/promise.h"

namespace gpushare::core {

struct AppEvidence {
  LcLoad load;
  int64_t query_solo_ns = 0;  // of one query alone: stated at first, then smoothed
  int32_t queries = 0;        // begun and not ended
  MainKernel main_kernel;
  TailAccount account;
  TargetTail target;
  BeDuty duty;
  Shadow shadow;
  int64_t late_not_alone = 0;  // queries that were late, and in the shadow were not
  LatencyTail tail;            // of queries that met no task on credit
  RecentLatencies delivered;   // of all queries
};

// The app is new. `solo_ns`: as it states, 0: unknown.
inline void BeginApp(AppEvidence& app, int64_t solo_ns, const Promise& promise, TimeNs now_ns) {
  app.load = LcLoad{.updated_ns = now_ns, .idle_since_ns = now_ns};
  app.query_solo_ns = solo_ns;
  app.queries = 0;
  app.main_kernel = MainKernel();
  app.account = TailAccount{.arrival_ns = now_ns};
  app.target = TargetTailAtFirst(promise);
  app.duty = BeDuty();
  app.shadow = Shadow();
  app.late_not_alone = 0;
  app.tail.Clear();
  app.delivered.Clear();
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_EVIDENCE_APP_EVIDENCE_H_
