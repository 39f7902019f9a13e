// The load of an LC app: the share of time in which it would have active queries if they ran alone
// on the whole device, smoothed over kLoadWindowNs.
//
// A busy period counts in full while it lasts, without the time in which every query waits for a
// ticket. When it ends it is corrected to what its queries take alone. Otherwise a layout that
// slows LC would make the app seem loaded, and the planner would leave that layout again.
//
// Sequence: BeginBusy at a query's begin, AddSolo at its end, EndBusyPeriod at the end of the last
// one, LoadAt in plan. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_EVIDENCE_LC_LOAD_H_
#define GPUSHARE_SRC_CORE_EVIDENCE_LC_LOAD_H_

#include <cmath>
#include <cstdint>

#include "src/core/base/types.h"
#include "src/core/evidence/tuning.h"

namespace gpushare::core {

// What a load keeps over a time. Most apps ask for the time since the last plan, so the last answer
// is kept.
class LoadDecay {
 public:
  double KeepOver(int64_t elapsed_ns) {
    if (elapsed_ns != elapsed_ns_) {
      elapsed_ns_ = elapsed_ns;
      keep_ = std::exp(-static_cast<double>(elapsed_ns) / kLoadWindowNs);
    }
    return keep_;
  }

 private:
  int64_t elapsed_ns_ = 0;
  double keep_ = 1;
};

struct LcLoad {
  TimeNs updated_ns = 0;
  TimeNs idle_since_ns = 0;  // the end of the last busy period; at first when the app was created
  bool busy = false;         // a busy period is under way
  // As of the last plan: every active query waits for a ticket. Such time is no load: the BE work
  // that the query may wait for would be held for it.
  bool only_waits = false;
  double sum = 0;     // exponentially weighted busy time
  double weight = 0;  // and its weight, so that the first samples are not biased to 0
  // Of the current busy period: its part of `sum`, its length, and the solo time of its queries.
  double busy_sum = 0;
  int64_t busy_ns = 0;
  int64_t busy_solo_ns = 0;
};

// A query begins.
void BeginBusy(LcLoad& load, LoadDecay& decay, TimeNs now_ns);

// A query of the busy period has ended that takes so long alone.
inline void AddSolo(LcLoad& load, int64_t solo_ns) { load.busy_solo_ns += solo_ns; }

void EndBusyPeriod(LcLoad& load, LoadDecay& decay, TimeNs now_ns);

// The load now. `only_waits`: every active query waits for a ticket.
double LoadAt(LcLoad& load, LoadDecay& decay, bool only_waits, TimeNs now_ns);

// The load as of the last plan.
inline double LoadSeen(const LcLoad& load) { return load.weight > 0 ? load.sum / load.weight : 0; }

// Standard deviation of a load, where queries of `query_ns` arrive at random: n queries in the
// window leave an error of sqrt(n) queries. The window begins with the first query.
double LoadError(double load, int64_t query_ns, TimeNs first_arrival_ns, TimeNs now_ns);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_EVIDENCE_LC_LOAD_H_
