// The tuned constants of the core: one table, each with its unit, its reason and the range that
// simulation may draw it from. Bounds are in limits.h, the simulated device's constants in
// src/sim/physics/tuning.h.
//
// First what the flow uses, then what the policies use.

#ifndef GPUSHARE_SRC_CORE_BASE_TUNING_H_
#define GPUSHARE_SRC_CORE_BASE_TUNING_H_

#include <cstdint>

namespace gpushare::core {

// Window of the smoothed LC load. Long against a query (0.5-1 ms), short against a change of load
// in a day's trace. Range 50 ms to 2 s.
inline constexpr double kLoadWindowNs = 500e6;
// Windows after which an older load counts as forgotten: 0.7 % of it is left. Range 3 to 10.
inline constexpr double kLoadWindowsKept = 5;

// The newest query has weight 2^-shift in an app's smoothed solo time: 1/16. Range 2 to 6.
inline constexpr int64_t kQuerySoloShift = 4;

// An eviction that takes longer than factor x its predicted p99 + floor was blocked: with 16 busy
// streams the write waited for whole kernels (docs/hardware.md). Ranges 2 to 8, 0.2 to 5 ms.
inline constexpr int64_t kBlockedEvictionFactor = 4;
inline constexpr int64_t kBlockedEvictionFloorNs = 1000 * 1000;

// Looks at a claim counter of a launch that seems to hang, which must stay without an answer before
// the launch counts as hung, beside another hang limit of time. The first look starts the copy and
// the second may find it under way. Range 2 to 10.
inline constexpr int32_t kClaimsLooksMin = 3;

// How far, ns, a replayed device looks ahead for the lane that was given up when it is asked what
// was claimed: recorded devices answered within this time. Range 1 to 1,000 ms.
inline constexpr int64_t kReplayedAnswerNs = 100 * 1000 * 1000;

// Time, ns, between two looks for that answer. Range 0.1 to 10 ms.
inline constexpr int64_t kClaimsLookNs = 1000 * 1000;

// Least time, ns, between two looks for queries and regions that are idle for too long: each walks
// over all active queries. Range 0.1 to 10 ms.
inline constexpr int64_t kIdleLookNs = 1000 * 1000;

// Time, ns, without a new task after which a kernel's row in a full table of the planner may go to
// another kernel of its own app. Long against a task, so that an app with more kernels than rows
// does not have rows computed with each task. Range 10 ms to 10 s.
inline constexpr int64_t kRowKeptNs = 100 * 1000 * 1000;

// Length of a segment of a BE graph, ns. With two outstanding, an eviction waits for at most two,
// and the cuts cost 2 % of the graph at 95 us (docs/hardware.md). Range 25,000 to 1,000,000.
inline constexpr int64_t kSegmentNs = 100 * 1000;

// Segments of one launch that are on the device at a time. One costs 8 % at 100 us: the device
// idles while the host sees the end and launches the next (docs/hardware.md). Range 1 to 3.
inline constexpr int kSegmentsOutstanding = 2;

// Time after the last work, ns, during which the scheduler's thread spins before it parks. To wake
// it costs the submitter a system call and the query some 50 us. Spin mode: longer than the gaps
// between the queries of a loaded LC app. Balanced: longer than a caller takes to answer a
// completion with a submit, and 1 % of a core at 100 queries a second. Ranges 0 to 100 ms and 0 to
// 1 ms.
inline constexpr int64_t kSpinIdleNs = 10 * 1000 * 1000;
inline constexpr int64_t kBalancedIdleNs = 100 * 1000;

// How the scheduler's thread waits for the device in balanced mode (flow/waiting/next_look.h). It
// spins for at least this share of an LC launch's duration before the predicted end, because one
// sleep in a hundred ends 160 to 330 us late on a virtual machine, and the next query waits for it.
// At 100 launches of 0.7 ms a second this is 2.6 % of a core. Range 0 to 0.5.
inline constexpr double kLcEarlyShare = 0.375;
// And until this share of its duration, and at least this time, after it: neighbours that nobody
// measured slow LC work by 5 to 25 %. Ranges 2 to 16 and 50 to 1,000 us.
inline constexpr int64_t kLcSpinShare = 4;
inline constexpr int64_t kLcSpinNs = 200 * 1000;
// The same of a BE launch, before and after: a 1/32 each is at most 6 % of a core. Range 16 to 128.
inline constexpr int64_t kBeSpinShare = 32;
// Time from one look to the next where the end is overdue or a guess, as a share of the time that
// the launch has taken: 1 / 64 adds 1.6 % to an LC latency. Ranges 16 to 128 and 8 to 64.
inline constexpr int64_t kLcLookShare = 64;
inline constexpr int64_t kBeLookShare = 16;
// Longest time, ns, between two looks: work that takes less than predicted is found by then, and so
// is the loss of the device. A look costs 5 us. Ranges 0.2 to 5 ms and 1 to 50 ms.
inline constexpr int64_t kLcLookNsMax = 1000 * 1000;
inline constexpr int64_t kBeLookNsMax = 10 * 1000 * 1000;
// The same while a query of several launches is on the device: a device may report the ends of its
// launches together, but not later than this (src/cuda marks them after 200 us).
inline constexpr int64_t kQueryLookNs = 200 * 1000;
// Shortest sleep, ns. A shorter one ends later than a spin would and costs as much. Range 10 to 100
// us.
inline constexpr int64_t kNapNsMin = 30 * 1000;
// How late a timed sleep ends, ns: the bounds of what the thread measures of its own sleeps. Sleeps
// of an idle core end 12 to 35 us late on a virtual machine, one in a thousand 500 us. Ranges 20 to
// 200 us and 0.1 to 2 ms.
inline constexpr int64_t kWakeLatencyNsMin = 60 * 1000;
inline constexpr int64_t kWakeLatencyNsMax = 1000 * 1000;
// A late sleep counts for about so many more: it is what a p99 is made of. Range 32 to 512.
inline constexpr int64_t kWakeLatencyMemory = 128;

// Time before the deadline of a shutdown at which BE work is evicted, ns: several block tasks
// (27 us, and 200 us for attention). At most half of the time that the shutdown has. Range 0.5 to
// 20 ms.
inline constexpr int64_t kShutdownEvictionNs = 2 * 1000 * 1000;

// Device time, ns, that a BE app with work may catch up on after it was kept out while others ran,
// for example by its long kernels. Without a bound it would then have the device to itself for
// seconds. Long against a task (2-8 ms). Range 10 ms to 1 s.
inline constexpr double kFairCreditNs = 100e6;

// Tasks of a BE kernel that are measured by themselves where there are several BE apps
// (evidence/solo_runs.h), and how often that is tried. Ranges 4 to 64 and 16 to 255.
inline constexpr uint8_t kSoloRunsMeasured = 16;
inline constexpr uint8_t kSoloRunsAsked = 64;
// The longest task, ns, as predicted, of which that is asked: it keeps others from sharing SMs with
// it. Range 1e6 to 1e8.
inline constexpr int64_t kSoloRunNsMax = 10'000'000;

// A smaller weight of a BE app counts as this: a tag is a time over a weight, and a double resolves
// a microsecond of it for a day. Range 1e-9 to 1e-3.
inline constexpr double kFairWeightMin = 1e-6;

// How far a BE head's start tag may be above another app's before it leaves that app the next place
// in the window: this share of its own duration, and at most so many ns, over its weight. Errors of
// predictions then do not empty the window between apps that are alike, and shares move by less
// than a task. Ranges 0 to 0.5 and 0.1 to 10 ms.
inline constexpr double kFairSlack = 0.125;
inline constexpr double kFairSlackNsMax = 1e6;

// Longest time, ns, that a BE app has nothing on the device and a ready head, while apps of larger
// weights run; then it goes next. By weight alone 1 of 1e6 with tasks of 10 ms would run every
// three hours. Long against a round of ten apps with tasks of 100 ms, whose shares it must not
// touch. Range 1 to 60 s.
inline constexpr int64_t kBeWaitNsMax = int64_t{10} * 1000 * 1000 * 1000;

// Shortest time, ns, from a plan of an application's policy to the next one that it asks for. About
// the time that a plan takes, so that planning never fills the scheduler's thread in virtual time.
// Range 100 to 100,000.
inline constexpr int64_t kUserReplanNsMin = 1000;

// Longest time, ns, that ready BE work waits for what a fused launch needs: a few block tasks until
// a lane is empty. A fused launch saves a fraction of a task, so a wait longer than a task (2-8 ms)
// cannot pay. Range 0.1 to 2 ms.
inline constexpr int64_t kFusedWaitNs = 1000 * 1000;

// An LC app with a target and no known p99: factor on the estimate of its p99 (queue_tail.h). It
// starts above 1, because the load is unknown at first, and late queries raise it.
inline constexpr double kTargetTailStart = 2;
// Bounds of the factor. Regular arrivals have a shorter tail than random ones, bursts a longer one.
// Ranges 0.25 to 1 and 2 to 8.
inline constexpr double kTargetTailMin = 0.5;
inline constexpr double kTargetTailMax = 4;
// The factor rises by this share with a late query. Range 0.02 to 0.3.
inline constexpr double kTargetTailStep = 0.1;
// Late queries at which the factor rests: the p99, less what the steps overshoot. Range 0.004 to
// 0.01.
inline constexpr double kTargetLateShare = 0.008;
// Share of an absolute target that a split may use up by its predicted p99. VGG-16 at 80 % of its
// peak had a p99 of up to 1.07 times the target where all of it was planned with (H100, 600
// queries): a split's speed is known within 2 %, and the queue amplifies the error. Range 0.8 to 1.
inline constexpr double kTargetPlanned = 0.9;
// The LC side of a split must carry the app's peak load, and at least this: a burst on a
// side that is too small costs lag before its queries leave it. Range 0.3 to 0.8.
inline constexpr double kTargetLoadFloor = 0.5;
// The peak load starts at 1, where the p99 alone is stated at kTargetLoadFloor. Time constant of
// its fall to the present load, ns. Range 0.5 to 10 s.
inline constexpr double kTargetPeakNs = 2e9;
// Weight that a smoothed load needs to raise the peak, of the 1 that it has in the end: half of it
// is there after 0.7 kLoadWindowNs. Range 0.2 to 0.9.
inline constexpr double kPeakWeightMin = 0.5;
// Highest load of the LC side at the app's peak load. Range 0.8 to 0.98.
inline constexpr double kTargetSideLoadMax = 0.9;
// The factor is rounded up to 1 / steps before a layout is chosen. Range 8 to 64.
inline constexpr double kTargetTailSteps = 16;

// Shares of the slack of a p99 bound, bound - 1, that a plan may use: on a split, by its slowdown
// and its eviction together, and on the whole device by waits. The rest is for errors. VGG-19 and
// BERT-base at loads of 0.3 and 0.5 beside training steps and sgemm (H200, 20 rows): a mean p99
// of 1.045 and BE of 0.577 with all of it, 1.031 and 0.557 with these shares and
// kTailCreditMin, 1.042 and 0.537 with 0.8 for both and no least credit. Ranges 0.6 to 1.
inline constexpr double kBoundShareOfSplit = 0.8;
inline constexpr double kBoundShareOfWait = 0.9;
// A queue that left a split by its lag comes back when the lag is below this share of what made it
// leave, or when it is empty: a queue that has just caught up would leave again. Range 0 to 0.5.
inline constexpr double kLagReturn = 0.25;
// The largest slowdown of a side is rounded down to 1 / steps, so that the p99 of a shadow, which
// moves all the time, seldom asks a new question. Range 64 to 1,024.
inline constexpr double kSlowdownSteps = 256;
// The most that is left of a wide bound, as a share of the p99 alone. Range 0.01 to 0.1.
inline constexpr double kBoundMarginMax = 0.02;

// The tail of an LC app's latencies (latency_tail.h). Queries before which its rate is not
// estimated from them: two of them lie above the 99th percentile. Range 200 to 4,000.
inline constexpr int32_t kTailQueriesMin = 200;
// The tail of an app is taken for at most this much steeper than that of random arrivals, unless
// it shows otherwise. Range 1 to 2.
inline constexpr double kPoissonTailMargin = 1.25;
// Spread of an estimated tail rate times 1 - load (TailSpread, queue_tail.h), and its most. Range
// 0.3 to 0.6, and 2 to 4.
inline constexpr double kTailSpread = 0.45;
inline constexpr double kTailSpreadMax = 3;
// Queries between two estimates: one takes some 2 us. Range 16 to 512.
inline constexpr int64_t kTailQueriesStep = 64;
// The 95th and the 99th percentile of a queue are at least this share of the 99th apart: 0.23 to
// 0.35 in an M/D/1 queue of any load from 0.05 on. Closer ones show no queue. Range 0.05 to 0.2.
inline constexpr double kTailSpanMin = 0.125;

// Least share of idle periods (shift.h) in which BE work runs beyond the bounds. Less is left
// to the tail account. Range 0.01 to 0.2.
inline constexpr double kIdleShareMin = 0.04;
// The share is rounded down to 1 / steps before a layout is chosen. Range 8 to 64.
inline constexpr double kIdleShareSteps = 32;

// The tail account of an LC app (tail_account.h). Share of its queries that may be late: the p99,
// less 10 % for what starts delay beyond their estimates. Range 0.005 to 0.01.
inline constexpr double kTailShare = 0.009;
// The least share of its queries that it leaves to tasks on credit, so that these go on where its
// own queue, or a layout, makes as many late as may be. It costs ln(0.0102 / 0.01) / eta, or 0.3 %
// of the p99, where eta x p99 is 6, as in M/D/1 queues of any load. Range 0.0001 to 0.001.
inline constexpr double kTailShareMin = 0.0002;
// The same where nobody knows its p99, and every query that met a task counts as late: 1.6 % of the
// p99, if all of them are. Range 0.0002 to 0.002.
inline constexpr double kTailShareUnknown = 0.001;
// The share of late queries that is assumed at first, and how many queries this counts as. Queries
// are late in bursts, so a good start of few queries says little. Ranges 0.01 to 0.02 and 500 to
// 8,000.
inline constexpr double kTailShareStart = 0.01;
inline constexpr int64_t kTailShareQueries = 2'000;
// Queries over which the share of late ones is smoothed. Late ones come some eight at once, so 160
// of 16,000 err by a fifth; what is earned while the share seems low is not paid back. Range 4,000
// to 65,536.
inline constexpr int64_t kTailShareWindow = 16'384;
// Least credit, queries, at which a task on credit starts: what one late query spends. Less let a
// training step start on 0.05, and late queries come several at once. Of the rows of
// kBoundShareOfSplit, those at load 0.3 had a mean p99 of 1.052, and 1.044 with this alone (10
// rows, about one standard error). A new account earns it in some 1,000 queries. An app without a
// load has no queue in which several are late. Range 0.25 to 8.
inline constexpr double kTailCreditMin = 1;
// Most credit, queries: the late ones of 10,000. A task that is likely to delay more starts at a
// full account. Range 10 to 1,000.
inline constexpr double kTailCreditMax = 100;
// Most debt, queries: what it takes to delay a thousand. A service of 100 queries a second that
// leaves 0.009 of them earns it in 19 minutes; one task of ten minutes would take hours. Range 100
// to 10,000.
inline constexpr double kTailDebtMax = 10 * kTailCreditMax;
// Arrivals that the mean gap between them is taken from. Range 32 to 4,096.
inline constexpr int64_t kTailGaps = 256;
// Time without a query, ns, that still belongs to a load, and the least time that a rate is taken
// over: after it the load counts as forgotten.
inline constexpr double kTailPauseNs = kLoadWindowsKept * kLoadWindowNs;
// Time, ns, after which an app that never sent a query counts as silent; also the gap of one that
// shows none yet. An app that serves sends its first query soon. Range 10 ms to 1 s.
inline constexpr double kTailSilentNs = 100e6;
// Largest load that the time until a queue is empty again is computed with. Range 0.8 to 0.95.
inline constexpr double kTailLoadMax = 0.9;

// Claims of a worker (claim_batch.h). Largest overhead of the worker form, as a share: 2 %. Range
// 0.005 to 0.05.
inline constexpr double kClaimOverheadMax = 0.02;
// Longest execution of one claim, ns: an evicted worker executes all that it has claimed, and a
// query waits for it. Range 10 to 500 us.
inline constexpr double kClaimCapNs = 50'000;
// What a claim adds to a worker's time, ns. The SM's other workers run on meanwhile, so it is less
// than the claim's latency of about 1 us. Range 50 to 300.
inline constexpr double kClaimCostNs = 100;
// Batches whose measured overheads differ by less than this share are alike; the smallest of them
// is evicted soonest. Range 0 to 0.005.
inline constexpr double kClaimOverheadSlack = 0.002;
// Least number of claims of a worker over a whole task, so that the last claims do not make a long
// tail. Range 4 to 32.
inline constexpr int64_t kClaimsPerWorker = 8;

// BE tasks of one app issued ahead when no LC app states a target: one runs and one hides the
// launch latency (4.5 us). Range 1 to 4.
inline constexpr int32_t kBeWindowPerApp = 2;

// Live BE launches on one place: the workers of one fill it, the second hides the launch latency
// between tasks of different queues. Range 1 to 2.
inline constexpr int32_t kBeWindowPerPlace = 2;

// Live BE launches on the whole device where quotas keep each to some of the SMs, and BE lanes for
// them: one a launch. Four busy streams delay nobody, and eight block other streams
// (docs/hardware.md, "Eviction signal"). Range 2 to 4.
inline constexpr int32_t kQuotaLanes = 4;

// What one return to the LC side and one eviction cost BE, ns: hysteresis, launch call and latency
// (2.0 + 2.8 + 4.5), and half of the eviction write (2.0). Range 5,000 to 30,000.
inline constexpr int64_t kReturnGapNs = 11'000;

// Segments of a graph that are on the device, on average, when it leaves a place: half of the one
// that runs, and the one behind it (device.h, kSegmentsOutstanding). Beside BERT-base queries on an
// H200 a training step of 80 us segments got 0.68 on a split of 64 and 68 SMs and 0.45 on one of
// 100 and 32, where it got 0.51 on the whole device; predicted so: 0.67 and 0.38. Range 1 to 2.
inline constexpr double kSegmentsLeft = 1.5;

// tacker: at least so many tasks of an LC app, and so much predicted time of its last query, ns,
// are on the device before its next task waits for a BE partner: one runs, one is next, and
// together they outlast the time from a completion to the launch that follows it (some 20 us).
// Ranges 2 to 8 and 20,000 to 200,000.
inline constexpr int32_t kTackerTasksAhead = 2;
inline constexpr int64_t kTackerAheadNs = 50'000;
// Headroom, ns, at which a query is launched at once and meets no new BE work: next to none, as one
// decision a task may cost it some 10 us. Range 10,000 to 200,000.
inline constexpr int64_t kTackerHeadroomNsMin = 50'000;
// Time, ns, after which it looks again whether a kernel behind a fused launch can go: short against
// a kernel, long against a plan. Range 1,000 to 20,000.
inline constexpr int64_t kTackerReplanNs = 5'000;

// kernelet: time, ns, from the end of a kernel's slice to the start of its next one, through the
// host. Range 5,000 to 30,000.
inline constexpr double kSliceGapNs = 10'000;
// adaptive: the least gain for which two BE kernels share SMs, share of the device. When one of
// them ends, the other runs below its speed for the time of a launch. Range 0.02 to 0.2.
inline constexpr double kBePairGainMin = 0.05;
// adaptive: shortest LC query, ns, whose grids may wait for empty SMs (empty_sms.h). An H200 showed
// a gain for kernels of 2 ms and more (bfs took 1.5 times as long without), and none for nn, which
// takes 0.7 ms. Range 5e5 to 5e6.
inline constexpr int64_t kEmptySmsQueryNs = 1'500'000;
// adaptive: longest wait, an eviction's p99, share of the query. The kernel that gained least,
// pathfinder, took 1.085 times as long without. Range 0.02 to 0.1.
inline constexpr double kEmptySmsWaitMax = 0.08;
// adaptive: what BE grids beside queries gain, share of LC's time: 0.05 to 0.13, 0.09 on the mean,
// of eleven pairs on an H200. Range 0.02 to 0.1.
inline constexpr double kGridGain = 0.09;
// adaptive: the load from which this gain is worth the longer queries. Range 0.1 to 0.5.
inline constexpr double kGridLoadMin = 0.3;
// adaptive: share of a target that stays unused beside grids, for errors of predictions. Range 0.05
// to 0.3.
inline constexpr double kGridReserve = 0.1;
// adaptive: grids or segments on the device beside queries; a third gained nothing. Range 1 to 4.
inline constexpr int32_t kGridsMost = 2;
// What segments gain beside queries, before it was measured (evidence/segment_gain.h): 0.11 to
// 0.64, 0.39 on the mean, of 35 pairs on an H200 under baymax. Too high a guess costs BE some 4 %,
// where a split is better, until it is measured. Too low a one is never found out, and costs 7 to
// 23 %. Its weight, in ns of LC work: that of twenty queries of 1 ms measured too little, and a
// split with 0.1 of the device less was kept. Ranges 0.3 to 0.7, 3e7 to 3e8.
inline constexpr double kSegmentGain = 0.6;
inline constexpr double kSegmentGainFirstNs = 80e6;
// LC work, ns, that a measured gain remembers, and the time, ns, after which one that is not
// measured again has faded. Ranges 3e8 to 3e9 and 3e9 to 1e11.
inline constexpr double kSegmentGainMemoryNs = 1e9;
inline constexpr double kSegmentGainFadesNs = 30e9;
// Time, ns, for which segments on a split are not measured after the change to it: a short stay
// would count the change, and miss the part that still runs at its end. Range 5e6 to 1e8.
inline constexpr int64_t kSegmentGainSettleNs = 20'000'000;
// The duty of BE work (evidence/be_duty.h): the part of a bound's slack that queries made slower by
// earlier BE work may take. Range 0.5 to 0.9.
inline constexpr double kDutyShareOfBound = 0.6;
// The period, ns, of which BE work has the first share; the least share, and by what factor the
// share grows at most in one judgement. Ranges 3e7 to 1e9, 0.01 to 0.2, 1.1 to 2.
inline constexpr int64_t kDutyPeriodNs = 100'000'000;
inline constexpr double kDutyShareMin = 0.05;
inline constexpr double kDutyShareGrows = 1.25;
// Queries in one judgement. A quarter or half of them decides where it leaves no doubt: with whole
// batches a prefill beside fft at a load of 0.3 needed 2.5 s until it had its share. Range 16 to
// 128.
inline constexpr double kDutyBatch = 32;
// Quiet queries that are remembered, and the fewest that a judgement needs. Ranges 32 to 1000 and 4
// to 32.
inline constexpr double kDutyQuietMemory = 128;
inline constexpr double kDutyQuietLeast = 8;
// Time, ns, after BE work from which a query is quiet: an H200's clock needs some 200 ms to rise
// again. The longest pause for quiet ones, and the time from one to the next. Ranges 5e7 to 1e9,
// 2e8 to 2e9, 1e9 to 1e12.
inline constexpr int64_t kDutyQuietNs = 200'000'000;
inline constexpr int64_t kDutyPauseNs = 600'000'000;
inline constexpr int64_t kDutyPausesEveryNs = 30'000'000'000;
// adaptive: longest time, ns, for which heads that pair with what runs pass over a head that is
// next by weight and pairs with nothing. Range 1e6 to 1e9.
inline constexpr int64_t kBePassedNsMax = 10'000'000;
// kernelet: what the gaps between slices (kSliceGapNs) may cost a kernel that runs by itself
// (Kernelet's p): 2 %. Range 0.005 to 0.1.
inline constexpr double kSliceOverheadMax = 0.02;

// Least gain in predicted throughput for a change of the layout, share of the device. Range 0 to
// 0.1.
inline constexpr double kLayoutHysteresis = 0.02;

// Added to a smoothed load before the queue of a split is judged: this many of its standard
// deviations, and at least this share of the device. An uncuttable task keeps the split for up to
// its whole length, 33 times as long on 4 of 132 SMs, so an error lasts. Ranges 2 to 4 and 0.02 to
// 0.1.
inline constexpr double kLayoutLoadErrors = 3;
inline constexpr double kLayoutLoadMargin = 0.05;
// Highest load of the LC side of a split, as judged. Nearer to 1 the queue's length is anyone's
// guess. Range 0.8 to 0.98.
inline constexpr double kLayoutSideLoadMax = 0.95;

// An (LC app, BE kernel, split) that nobody measured (evidence/pair_trial.h). Queries of one trial:
// a pair is known after 4 samples, and a query that meets two kernels gives none. Range 4 to 32.
inline constexpr int32_t kTrialQueries = 8;
// Time, ns, after which a trial ends without a verdict: too few queries met the kernel. Eight
// queries of an app that sends one a second fit. Range 1 to 60 s.
inline constexpr int64_t kTrialTimeNs = 10'000'000'000;
// Trials make this share of all queries late at most. A p99 leaves a hundredth, of which an app's
// own queue needs some. Range 0.001 to 0.008.
inline constexpr double kTrialShare = 0.004;
// What a trial must promise above the best layout that is known, share of the device: more than
// kLayoutHysteresis, so that what is kept is also chosen. Range 0.02 to 0.2.
inline constexpr double kTrialGain = 0.05;
// Speed of an LC app beside a kernel that nobody measured, as a share of its speed on that side
// alone: that of decode beside streaming (docs/hardware.md, "Spatial overlap"). Range 0.1 to 0.8.
inline constexpr double kUnknownPairSpeed = 0.47;
// Error bars by which a predicted neighbour is planned worse than predicted: about the worst of
// twenty. With one, chain1 stayed beside spmv on an H200 (docs/results/services.md). Range 1 to 3.
inline constexpr float kUnmetErrorBars = 2;

// Executing a graph to measure it: the longest that one run may take, ns, after which registering
// it fails or it runs whole; and how long the places of one graph may take together, beyond which
// the others are interpolated. Ranges 1 to 60 s and 0.1 to 5 s.
inline constexpr int64_t kTimedRunMaxNs = 10'000'000'000;
inline constexpr int64_t kMeasurePlacesNs = 1'000'000'000;
// Of how many instances of such a graph a place keeps the fastest. A third of twelve of one graph
// were 3 to 6 % slower than the others, so that one in 81 places has only slow ones. Range 1 to 8.
inline constexpr int32_t kInstancesTried = 4;

// Inflation of its latency that an LC app without bound and target still keeps to, as a factor: the
// 5 % that the library promises. Range 1 to 1.2.
inline constexpr double kUnstatedInflation = 1.05;

// Loads are rounded to 1 / kLoadSteps before a layout is chosen: small changes of a smoothed load
// then ask the same question, whose answer is remembered. Range 16 to 256.
inline constexpr int32_t kLoadSteps = 64;

// Largest load that the queueing factor 1 / (1 - load) is computed with; a measured load above it
// is noise or overload. Range 0.9 to 0.99.
inline constexpr double kLoadMax = 0.98;

// A running task gets a part on another place only with at least this much left, ns: the launch of
// a part takes 7.3 us to call and to start. Range 0 to 100,000.
inline constexpr int64_t kElasticPartNsMin = 20'000;

// The smallest piece of a copy, bytes. Alone it takes 8.4 us, 7.2 us of them latency
// (docs/hardware.md): a smaller piece only adds latency. Range 16,384 to 1,048,576.
inline constexpr int64_t kCopyPieceBytesMin = 65'536;

// A BE copy's piece takes this share of the smallest blocking budget, in a direction that LC apps
// use: half of it between queries, an eighth while a query is active. Then every further query of
// the busy period may meet a piece (copies.json: p99 1.25 x alone with the whole budget). Ranges 1
// to 4 and 4 to 16.
inline constexpr int64_t kIdlePieceDivisor = 2;
inline constexpr int64_t kActivePieceDivisor = 8;

// Longest piece of a copy of pageable memory beside LC apps, ns: 1 MB at 10 GB/s. Shorter ones lose
// throughput to the launch of each, some 10 us. Range 30,000 to 300,000.
inline constexpr int64_t kPageablePieceNs = 100'000;

// Longest piece of a BE copy of pageable memory under every policy, bytes, where the launch returns
// when the copy has ended: 0.4 ms of the scheduler's thread at 10 GB/s. A piece costs some 20 us
// more than its bytes. Range 1 to 64 MB.
inline constexpr int64_t kPageablePieceBytesMax = int64_t{4} << 20;

// Pieces of a copy end on pages, bytes. Range 512 to 65,536.
inline constexpr int64_t kCopyPieceAlignment = 4'096;

// While an LC app's load fades, BE work that a layout keeps out is judged again after this time,
// ns: the load changes without any event. Short against kLoadWindowNs. Range 1 to 100 ms.
inline constexpr int64_t kLoadLookNs = 10'000'000;

// Places other than the whole device that exist at a time: a BE side for each quota of another size
// (15 on an H200), and a few arrangements beside them. With them 43 to 58 of 64 lanes are taken.
// Range 8 to 30.
inline constexpr int kLivePlacesMax = 20;
// A place that no plan wanted for so long ends, ns. Long beside a change of load, because making
// one costs milliseconds. Range 1 s to 10 min.
inline constexpr int64_t kPlaceIdleNs = int64_t{30} * 1000 * 1000 * 1000;
// A place that the device refused is asked for again after this time, ns. Range 1 s to 1 min.
inline constexpr int64_t kPlaceAgainNs = int64_t{5} * 1000 * 1000 * 1000;
// A place waits so long for a moment without LC work, ns; an app whose load never leaves one gets
// it then. Range 10 ms to 10 s.
inline constexpr int64_t kPlaceQuietNs = int64_t{1000} * 1000 * 1000;
// How often idle places are looked for in real time, ns. Range 0.1 s to kPlaceIdleNs.
inline constexpr int64_t kPlaceLookNs = int64_t{2} * 1000 * 1000 * 1000;

// A choice that does not change is logged again after this time, ns: a trace that begins later has
// it. Long, so that the log stays small. Range 10 ms to 1 s.
inline constexpr int64_t kChoiceLogNs = 10'000'000;

// Layout choices that are remembered; a smoothed load moves over a few steps. Range 1 to 64.
inline constexpr int32_t kLayoutsRemembered = 8;

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_TUNING_H_
