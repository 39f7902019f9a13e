// The steps of an LC app: which pauses between its queries are gaps, and which are silences.
//
// An engine submits a step soon after the last one has ended. In between the app has no query for
// the time of its host loop: a gap. When it has no work left there is a silence. BE work may start
// in a silence. In a gap only work may that each step can wait for.
//
// A step may state what follows it (TaskSpec::next_within_ns). Where it says nothing, the lengths
// of the pauses say it, in ranges that double: most are shorter than a few queries, and of those
// that are longer most are much longer. Random arrivals are not like that: where most pauses are
// that short, many queries arrive while another is active, and hardly any pause is much longer. So
// an app whose queries often meet another one has no gaps.
//
// The queries behind a silence are few. BE work in a silence delays only these, and queries that
// wait behind them, which are as many for a query behind a gap. So the share of all queries that it
// delays is the share of the pauses that are silences.
//
// Sequence: Begin when a query becomes active, End when the last active one has ended, EndSeenLate
// when another one is active by then. Threads: the
// one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_EVIDENCE_STEPS_H_
#define GPUSHARE_SRC_CORE_EVIDENCE_STEPS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/core/base/types.h"
#include "src/core/evidence/tuning.h"

namespace gpushare::core {

class Steps {
 public:
  // `stated_ns`: what the query said, as TaskSpec::next_within_ns.
  void End(int64_t stated_ns, TimeNs now_ns) {
    stated_ns_ = stated_ns;
    ended_ns_ = now_ns;
    pauses_ = true;
    lapse_seen_ = false;
  }

  // `solo_ns`: of a query alone. `alone`: no other query is active. `since_ns`: when the device got
  // it.
  void Begin(bool alone, int64_t solo_ns, TimeNs since_ns, TimeNs now_ns);
  // A query has ended on the device at `ended_ns`, and the flow hears of it after the begin of the
  // only other one that is active. If that came to an idle device, it waited for nobody.
  void EndSeenLate(int64_t stated_ns, int64_t solo_ns, TimeNs ended_ns);
  // A query that left has work again.
  void Return() { pauses_ = false; }

  // A statement that its time has passed without a query counts as lapsed.
  void NoteLapse(TimeNs now_ns) {
    if (!pauses_ || stated_ns_ <= 0 || lapse_seen_ || now_ns - ended_ns_ <= stated_ns_) return;
    lapse_seen_ = true;
    ++lapsed_;
    ++lapses_;
  }

  // Until when a query is expected, if none is active; 0: none is. Statements of which more lapse
  // than come true are not believed.
  TimeNs ExpectedBy(TimeNs now_ns) const {
    if (!pauses_ || stated_ns_ < 0) return 0;
    const bool believed = lapsed_ <= followed_ + 1;
    const int64_t gap_ns = stated_ns_ > 0 && believed ? stated_ns_ : learnt_ns_;
    return gap_ns > 0 && now_ns - ended_ns_ < gap_ns ? ended_ns_ + gap_ns : 0;
  }

  // The share of the pauses that are silences, one standard error more; 1 while nothing shows that
  // the app has gaps.
  double SilenceShare() const;

  int64_t lapses() const { return lapses_; }
  // The longest gap as learnt; 0: the app shows none.
  int64_t learnt_ns() const { return learnt_ns_; }

 private:
  // The first one begins with 0, the second one at 1 us, the last one at 2 s.
  static constexpr int kRanges = 23;
  double At(int range) const { return lengths_[static_cast<size_t>(range)]; }
  void CountPause(int64_t stated_ns, bool lapsed, int64_t pause_ns, int64_t solo_ns);
  void Learn(int64_t solo_ns);

  std::array<double, kRanges> lengths_ = {};  // of pauses of which nothing was stated
  double waited_ = 0;                         // queries that began while another was active
  double followed_ = 0;                       // stated gaps that ended in time
  double silences_ = 0;                       // stated, or behind a statement that lapsed
  double lapsed_ = 0;                         // statements
  int64_t lapses_ = 0;                        // the same, all of them
  int64_t learnt_ns_ = 0;
  int64_t stated_ns_ = 0;  // by the query that ended last
  TimeNs ended_ns_ = 0;
  TimeNs begun_ns_ = 0;      // the last query, on the device
  bool pauses_ = false;      // no query is active, and there was one
  bool lapse_seen_ = false;  // of the present pause
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_EVIDENCE_STEPS_H_
