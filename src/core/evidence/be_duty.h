// The duty of BE work: the share of time in which it may run, where it makes later queries slower.
//
// A device at its power limit lowers its clock. Queries then take longer though all BE work has
// left: 12 % longer after fft on an H200, for a prefill at half load. No eviction helps; less BE
// work does.
//
// A query that begins where the app's last one ended has neither a launch nor an eviction in its
// time. The mean of such times, over that of quiet ones, without BE work of late, says how much
// longer queries take. An app with a p99 bound tolerates what lengthens its queue by a part of the
// slack. BE work has the first `share` of each period:
//
//   queries take longer than tolerated    share x tolerated / measured
//   less long                             a quarter more, at most 1
//
// either by more than two standard errors. It is judged once a batch of queries has ended, or a
// quarter or half of it leaves no doubt. After a change, queries count once the clock has followed.
// Where no quiet times are known, and queries take more than is tolerated longer than one alone is
// predicted to, BE work pauses for some; a pause that brings too few leaves it all time. While BE
// work has less, quiet times that have become old are renewed so. A share that no query has
// confirmed for as long is over.
//
// Where in the flow: NoteServiceTime at a query's end, DutyAt in plan. Threads: the one that runs
// Tick.

#ifndef GPUSHARE_SRC_CORE_EVIDENCE_BE_DUTY_H_
#define GPUSHARE_SRC_CORE_EVIDENCE_BE_DUTY_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "src/core/base/types.h"
#include "src/core/evidence/tuning.h"

namespace gpushare::core {

struct MeanTime {
  double mean_ns = 0;
  double variance = 0;
  double count = 0;  // at most the memory

  void Add(double time_ns, double memory) {
    count = std::min(count + 1, memory);
    const double off = time_ns - mean_ns;
    mean_ns += off / count;
    variance += (off * off * (1 - 1 / count) - variance) / count;
  }
  double SquaredError() const { return count > 0 ? variance / count : 0; }
};

// Of one LC app.
struct BeDuty {
  double share = 1;
  MeanTime quiet;             // without BE work of late
  MeanTime batch;             // of all queries, since the share was last judged
  TimeNs pause_until_ns = 0;  // for quiet queries
  TimeNs next_pause_ns = 0;
  TimeNs noted_ns = 0;    // the last query that counted
  TimeNs settled_ns = 0;  // when the clock has followed the last change of the share
};

inline void JudgeShare(BeDuty& duty, double tolerated) {
  const double longer = duty.batch.mean_ns / duty.quiet.mean_ns - 1;
  const double error =
      2 * std::sqrt(duty.batch.SquaredError() + duty.quiet.SquaredError()) / duty.quiet.mean_ns;
  if (longer - error > tolerated) {
    duty.share = std::max(kDutyShareMin, duty.share * tolerated / longer);
  } else if (longer + error < tolerated) {
    duty.share = std::min(1.0, duty.share * kDutyShareGrows);
  }
}

// Whether a part of a batch is enough to judge: its queries take longer than tolerated by three
// standard errors. `usual`: quiet queries, or the predicted time of one.
inline bool IsClear(const MeanTime& batch, const MeanTime& usual, double tolerated) {
  if (batch.count != kDutyBatch / 4 && batch.count != kDutyBatch / 2) return false;
  const double error_ns = 3 * std::sqrt(batch.SquaredError() + usual.SquaredError());
  return usual.mean_ns > 0 && batch.mean_ns - error_ns > (1 + tolerated) * usual.mean_ns;
}

// A query took this time after the app's last one. `solo_ns`: as predicted, 0: unknown.
inline void NoteServiceTime(BeDuty& duty, int64_t service_ns, bool is_quiet, double tolerated,
                            int64_t solo_ns, TimeNs now_ns) {
  const auto time_ns = static_cast<double>(service_ns);
  duty.noted_ns = now_ns;
  if (is_quiet) duty.quiet.Add(time_ns, kDutyQuietMemory);
  const bool comparable = duty.quiet.count >= kDutyQuietLeast;
  if (comparable && is_quiet) {
    duty.pause_until_ns = std::min(duty.pause_until_ns, now_ns);
    duty.next_pause_ns = now_ns + kMeasuredFadesNs;
  }
  if (now_ns < duty.pause_until_ns || now_ns < duty.settled_ns) return;
  duty.batch.Add(time_ns, kDutyBatch);
  const MeanTime predicted{.mean_ns = static_cast<double>(solo_ns)};
  const MeanTime& usual = comparable ? duty.quiet : predicted;
  if (duty.batch.count < kDutyBatch && !IsClear(duty.batch, usual, tolerated)) return;
  const bool longer = solo_ns > 0 && duty.batch.mean_ns > (1 + tolerated) * predicted.mean_ns;
  const double share_before = duty.share;
  if (comparable) {
    JudgeShare(duty, tolerated);
  } else {
    duty.share = 1;
  }
  duty.batch = MeanTime();
  if (duty.share != share_before) duty.settled_ns = now_ns + kDutyQuietNs;
  const bool asks = comparable ? duty.share < 1 : longer;
  if (!asks || now_ns < duty.next_pause_ns) return;
  duty.quiet = MeanTime();
  duty.pause_until_ns = now_ns + kDutyPauseNs;
  duty.next_pause_ns = now_ns + kMeasuredFadesNs;
}

struct DutyWindow {
  TimeNs paused_until_ns = 0;    // BE work may not run before
  TimeNs pauses_at_ns = kNever;  // when it must pause again
};
inline DutyWindow DutyAt(const BeDuty& duty, TimeNs now_ns) {
  if (now_ns < duty.pause_until_ns) return {.paused_until_ns = duty.pause_until_ns};
  if (duty.share >= 1 || now_ns - duty.noted_ns > kMeasuredFadesNs) return {};
  const TimeNs begin_ns = now_ns - now_ns % kDutyPeriodNs;
  const TimeNs pauses_ns =
      begin_ns + static_cast<int64_t>(duty.share * static_cast<double>(kDutyPeriodNs));
  if (now_ns < pauses_ns) return {.pauses_at_ns = pauses_ns};
  return {.paused_until_ns = begin_ns + kDutyPeriodNs};
}

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_EVIDENCE_BE_DUTY_H_
