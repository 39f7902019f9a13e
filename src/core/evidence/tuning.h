// The tuned constants of the estimators: each with its unit, its reason and the range that
// simulation may draw it from.

#ifndef GPUSHARE_SRC_CORE_EVIDENCE_TUNING_H_
#define GPUSHARE_SRC_CORE_EVIDENCE_TUNING_H_

#include <bit>
#include <cstdint>

#include "src/core/promise/tuning.h"
#include "src/core/queueing/queue_tail.h"

namespace gpushare::core {

// --- how many samples make a mean ---------------------------------------------------------------

// The fewest of which a mean is trusted where it is compared with a much different one: of a trial,
// of quiet queries. A pair is known after 4 samples, and a query that meets two kernels gives none.
// Range 4 to 32.
inline constexpr int32_t kSamplesMin = 8;
// Of which a mean is kept: the solo time of an app's queries, of which the newest weighs 2^-shift,
// and a kernel's runs alone.
inline constexpr int32_t kSamples = 2 * kSamplesMin;
inline constexpr int64_t kQuerySoloShift = std::bit_width(uint32_t{kSamples}) - 1;

// --- the load (lc_load.h) -----------------------------------------------------------------------

// Window of the smoothed LC load. Long against a query (0.5-1 ms), short against a change of load
// in a day's trace. Range 50 ms to 2 s.
inline constexpr double kLoadWindowNs = 500e6;
// Windows after which an older load counts as forgotten: 0.7 % of it is left. Range 3 to 10.
inline constexpr double kLoadWindowsKept = 5;
// Time without a query, ns, that still belongs to a load; the least time that a rate is taken over;
// and the time constant with which a peak load falls to the present one.
inline constexpr double kLoadForgottenNs = kLoadWindowsKept * kLoadWindowNs;
// Weight that a smoothed load needs to raise the peak, of the 1 that it has in the end: half of it
// is there after 0.7 kLoadWindowNs. Range 0.2 to 0.9.
inline constexpr double kPeakWeightMin = 0.5;

// --- the tail of latencies (latency_tail.h, shadow.h) -------------------------------------------

// Queries before which a tail is not estimated from them: two of them lie above the 99th
// percentile.
inline constexpr int32_t kTailQueriesMin = static_cast<int32_t>(2 / kLateOfP99);
// The tail of an app is taken for at most this much steeper than that of random arrivals, unless
// it shows otherwise: its error is that of a split's bound. With 1 the true tail is steeper than
// the estimate in 44 of 100 windows at a load of 0.5, with 1.25 in at most 6.
inline constexpr double kPoissonTailMargin = 1 / kBoundShareOfSplit;
// Queries between two estimates: one takes some 2 us. Range 16 to 512.
inline constexpr int64_t kTailQueriesStep = 64;
// The 95th and the 99th percentile of a queue are at least this share of the 99th apart: 0.23 to
// 0.35 in an M/D/1 queue of any load from 0.05 on. Closer ones show no queue. Range 0.05 to 0.2.
inline constexpr double kTailSpanMin = 0.125;
static_assert(kTailQueriesStep < kTailQueriesMin);

// --- the vacation account (vacation_account.h) --------------------------------------------------

// Idle time, ns, of which it keeps what was saved: long against a launch, of which one of 5 ms may
// need all of it, and short enough that a burst of long launches meets few of the queries that a
// p99 is counted over. Range 0.1 to 5 s.
inline constexpr double kVacationSavedNs = 2 * kLoadWindowNs;

// --- the tail account and the factor of a target (tail_account.h, target_tail.h) ----------------

// Share of an app's queries that may be late: the p99, less what starts delay beyond their
// estimates.
inline constexpr double kTailShare = kPlannedShare * kLateOfP99;
// Share of them at which the part of the slack that plans use rests (slack_share.h): half of what
// the account keeps, because what is counted needs less.
inline constexpr double kLateShare = (kTailShare + kLateOfP99) / 2;
// Late queries at which the factor of a target rests: the p99, less as much again for what the
// steps overshoot. With kTailShare instead, three of 40 rows with copies missed their limits.
inline constexpr double kTargetLateShare = kBoundShareOfSplit * kLateOfP99;
// The factor rises by this share with a late query. Range 0.02 to 0.3.
inline constexpr double kTargetTailStep = 0.1;
// The least share of its queries that an app leaves to tasks on credit, so that these go on where
// its own queue, or a split, makes as many late as may be. It costs ln(0.0102 / 0.01) / eta, or 0.3
// % of the p99, where eta x p99 is 6, as in M/D/1 queues of any load. Range 0.0001 to 0.001.
inline constexpr double kTailShareMin = 0.0002;
// The same where nobody knows its p99, and every query that met a task counts as late: 1.6 % of the
// p99, if all of them are.
inline constexpr double kTailShareUnknown = kKeptForErrors * kLateOfP99;
static_assert(kTailShareMin < kTailShare && kTailShare < kLateOfP99);
static_assert(kTargetLateShare < kLateOfP99);
// Queries over which the share of late ones is smoothed. Late ones come some eight at once, so 160
// of 16,000 err by a fifth; what is earned while the share seems low is not paid back. Range 4,000
// to 65,536.
inline constexpr int64_t kTailShareWindow = 16'384;
// How many queries the share that is assumed at first, kLateOfP99, counts as. Queries are late in
// bursts, so a good start of few queries says little.
inline constexpr int64_t kTailShareQueries = kTailShareWindow / kSamples;
// Most debt, queries. A service of 100 queries a second that leaves 0.009 of them earns it in four
// minutes; one task of ten minutes would take hours.
inline constexpr double kTailDebtMax = 2 * kTailCreditMax;
// Arrivals that the mean gap between them is taken from. Range 32 to 4,096.
inline constexpr int64_t kTailGaps = 256;
// Time, ns, after which an app that never sent a query counts as silent; also the gap of one that
// shows none yet. An app that serves sends its first query soon. Range 10 ms to 1 s.
inline constexpr double kTailSilentNs = 100e6;

// --- gaps and silences (steps.h) ----------------------------------------------------------------

// Pauses that are remembered. A busy period of an engine has some hundred steps, so that a silence
// is as rare.
inline constexpr int64_t kStepsRemembered = kTailGaps * kSamples;
// A gap is no longer than so many queries. Random arrivals with most pauses so short have a load at
// which queries often meet.
inline constexpr int64_t kGapQueriesMax = kSamplesMin / 2;
// How many silences must be seen before they are distinguished from gaps, and how many ranges, of
// which each is twice as long, must lie between a gap and a silence.
inline constexpr int32_t kSilencesMin = kSamplesMin / 2;
inline constexpr int kMuchLongerRanges = std::bit_width(uint32_t{kSamplesMin}) - 1;

// --- gains of segments (segment_gain.h) ---------------------------------------------------------

// What segments gain beside queries, before it was measured (evidence/segment_gain.h): 0.11 to
// 0.64, 0.39 on the mean, of 35 pairs on an H200 under baymax. Too high a guess costs BE some 4 %,
// where a split is better, until it is measured. Too low a one is never found out, and costs 7 to
// 23 %. Its weight, in ns of LC work: that of twenty queries of 1 ms measured too little, and a
// split with 0.1 of the device less was kept. Ranges 0.3 to 0.7, 3e7 to 3e8.
inline constexpr double kSegmentGain = 0.6;
inline constexpr double kSegmentGainFirstNs = 80e6;
// LC work, ns, that a measured gain remembers: two windows of a full load.
inline constexpr double kSegmentGainMemoryNs = 2 * kLoadWindowNs;
static_assert(kSegmentGainFirstNs < kSegmentGainMemoryNs, "what is measured outweighs the guess");
// Time, ns, for which segments on a split are not measured after the change to it: a short stay
// would count the change, and miss the part that still runs at its end. Range 5e6 to 1e8.
inline constexpr int64_t kSegmentGainSettleNs = 20'000'000;
// Time, ns, after which a measured gain that was not measured again has faded, and after which
// quiet queries are old (be_duty.h). Range 3e9 to 1e11.
inline constexpr int64_t kMeasuredFadesNs = 30'000'000'000;

// --- the duty of BE work (be_duty.h) ------------------------------------------------------------

// The least share.
inline constexpr double kDutyShareMin = kGainMin;
// By what factor the share grows at most in one judgement. Range 1.1 to 2.
inline constexpr double kDutyShareGrows = 1.25;
// Queries in one judgement. A quarter or half of them decides where it leaves no doubt: with whole
// batches a prefill beside fft at a load of 0.3 needed 2.5 s until it had its share.
inline constexpr double kDutyBatch = 2 * kSamples;
// Quiet queries that are remembered, and the fewest that a judgement needs.
inline constexpr double kDutyQuietMemory = 2 * kDutyBatch;
inline constexpr double kDutyQuietLeast = kSamplesMin;
// Time, ns, after BE work from which a query is quiet: an H200's clock needs some 200 ms to rise
// again. Range 5e7 to 1e9.
inline constexpr int64_t kDutyQuietNs = 200'000'000;
// The period, ns, of which BE work has the first share: the clock does not rise in what is left.
inline constexpr int64_t kDutyPeriodNs = kDutyQuietNs / 2;
// The longest pause for quiet queries, ns: they come in the two thirds behind the first
// kDutyQuietNs.
inline constexpr int64_t kDutyPauseNs = kDutyQuietNs + 2 * kDutyQuietNs;
static_assert(kDutyPauseNs < kMeasuredFadesNs, "pauses are rare");

// --- trials and runs alone (pair_trial.h, solo_runs.h) ------------------------------------------

// An (LC app, BE kernel, split) that nobody measured. Queries of one trial.
inline constexpr int32_t kTrialQueries = kSamplesMin;
// Time, ns, after which a trial ends without a verdict: too few queries met the kernel. Eight
// queries of an app that sends one a second fit.
inline constexpr int64_t kTrialTimeNs = kMeasuredFadesNs;
// Trials make this share of all queries late at most: half of what the factor of a target leaves.
// An app's own queue needs some of it.
inline constexpr double kTrialShare = kTargetLateShare / 2;
static_assert(kTrialShare < kTailShare);
// Tasks of a BE kernel that are measured by themselves where there are several BE apps, and how
// often that is tried.
inline constexpr uint8_t kSoloRunsMeasured = kSamples;
inline constexpr uint8_t kSoloRunsAsked = 2 * kSoloRunsMeasured;
// The longest task, ns, as predicted, of which that is asked: it keeps others from sharing SMs with
// it.
inline constexpr int64_t kSoloRunNsMax = kBePassedNsMax;

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_EVIDENCE_TUNING_H_
