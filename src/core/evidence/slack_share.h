// The part of a bound's slack that plans may use, as late queries have shown it.
//
// A budget and the lag of a split are judged by models: of a steady load, of a tail that falls
// exponentially, of speeds. The shadow says which queries were late that would not have been alone.
// Of them an app may have what its own queue leaves of the queries that may be late. A lull shows
// few late ones of its own, so what a stated p99 lets expect counts too.
//
// The part falls with each such query and rises with each query's allowance, so that it rests where
// as many are late as may be. Queries that met a task on credit are the tail account's
// (tail_account.h). No model of the load is needed: a load that moves makes more queries late than
// a budget says, and the budget follows. Threads: the one that runs Tick.

#ifndef GPUSHARE_SRC_CORE_EVIDENCE_SLACK_SHARE_H_
#define GPUSHARE_SRC_CORE_EVIDENCE_SLACK_SHARE_H_

#include <algorithm>
#include <cstdint>

#include "src/core/evidence/tuning.h"
#include "src/core/promise/promise.h"
#include "src/core/promise/tuning.h"

namespace gpushare::core {

struct SlackShare {
  double share = 1;
  double late_alone = 0;  // share of queries that are late in the shadow
  int64_t queries = 0;
};

// What an app's own queue leaves of the queries that may be late. `late_alone`: the share that was
// seen to be late, and not for BE work.
inline double LeftOfLate(double most, double late_alone, const Promise& promise, int64_t solo_ns) {
  return std::max(most - std::max(late_alone, promise.LateAlone(solo_ns)), kTailShareMin);
}

// A query of a known limit has ended. `for_be`: it was late, in the shadow it was not, and it met
// no task on credit.
inline void NoteLateness(SlackShare& slack, const Promise& promise, int64_t solo_ns, bool for_be,
                         bool late_alone) {
  ++slack.queries;
  const auto weight =
      static_cast<double>(std::min(slack.queries + kTailShareQueries, kTailShareWindow));
  slack.late_alone += ((late_alone ? 1.0 : 0.0) - slack.late_alone) / weight;
  // Twice what may be: the bound is missed without BE work too, and BE work is not held for it.
  const bool lost = slack.late_alone > 2 * kLateOfP99;
  const double left =
      lost ? kLateShare : LeftOfLate(kLateShare, slack.late_alone, promise, solo_ns);
  slack.share *= 1 - kKeptForErrors * ((for_be ? 1.0 : 0.0) - left);
  slack.share = std::clamp(slack.share, kGainMin, 1.0);
}

// In steps: what plans remember of a promise stays as it is between them.
inline double PartOf(const SlackShare& slack) {
  return std::max(static_cast<double>(static_cast<int>(slack.share * kLoadSteps)) / kLoadSteps,
                  kGainMin);
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_EVIDENCE_SLACK_SHARE_H_
