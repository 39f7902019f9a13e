// The tuned constants of the core: one table, each with its unit, its reason and the range that
// simulation may draw it from. Bounds are in limits.h, the simulated device's constants in
// src/sim/physics/tuning.h.
//
// First what the flow uses, then what the policies use.

#ifndef GPUSHARE_SRC_CORE_BASE_TUNING_H_
#define GPUSHARE_SRC_CORE_BASE_TUNING_H_

#include <array>
#include <cstdint>

namespace gpushare::core {

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

// Time, ns, between two tries to begin a region whose caller waits: short against a prefill, long
// against a try. Range 10 us to 1 ms.
inline constexpr int64_t kRegionLookNs = 50'000;

// Least time, ns, between a plan and the next one that only refused BE regions ask for: the credit
// that they wait for grows with time, and a plan takes some us. Range 0.1 to 10 ms.
inline constexpr int64_t kRegionPlanNs = 1000 * 1000;

// Time, ns, for which a BE app that asked for a region is taken to want one, and the credit for it
// is kept for the app if it is next by weight. Long against the time between two tries (50 us to 1
// ms) and a busy period in which nobody asks; an app that wants no more costs others this time
// once. Range 2 to 100 ms.
inline constexpr int64_t kRegionWantedNs = 10 * 1000 * 1000;

// Time, ns, without a new task after which a kernel's row in a full table of the planner may go to
// another kernel of its own app. Long against a task, so that an app with more kernels than rows
// does not have rows computed with each task. Range 10 ms to 10 s.
inline constexpr int64_t kRowKeptNs = 100 * 1000 * 1000;

// Length of a segment of a BE graph, ns. With two outstanding, an eviction waits for at most two,
// and the cuts cost 2 % of the graph at 95 us (docs/hardware.md). Range 25,000 to 1,000,000.
inline constexpr int64_t kSegmentNs = 100 * 1000;

// Longer segments of the same graph, ns, ascending, where the waits of LC apps allow them; beside
// these the whole graph. A LoRA step, of short nodes, runs at 0.91 of its whole graph's rate in
// segments of 100 us, at 0.994 in those of 400 us and at 0.996 in those of 2 ms. Ranges 200,000 to
// 800,000 and 1,000,000 to 5,000,000.
inline constexpr std::array<int64_t, 2> kLongerSegmentsNs = {400 * 1000, 2000 * 1000};

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

// How a caller that waits for an LC task spins (flow/verbs/spin_window.h). Most time, ns, of one
// wait in balanced and in spin mode: a whole decode step of an engine is 1.5 ms, and a core that is
// given away may spin for longer. Ranges 0.2 to 10 ms and 1 to 100 ms.
inline constexpr int64_t kCallerSpinNs = 2 * 1000 * 1000;
inline constexpr int64_t kCallerSpinModeNs = 10 * 1000 * 1000;
// Balanced: it spins from the last so many ns before the predicted end, and where kLcEarlyShare of
// the duration is more, from there. A timed sleep of a caller ends 50 to 100 us late: 50 us are
// the system's slack, which is the application's to change. Range 100 us to 1 ms.
inline constexpr int64_t kCallerEarlyNs = 250 * 1000;
// While nobody has predicted the end yet it spins for about what a sleep and a wake-up cost. The
// scheduler's thread adopts a launch 2 to 60 us after it. Range 20 to 200 us.
inline constexpr int64_t kCallerFirstSpinNs = 100 * 1000;
// Time, ns, between two sched_yield of a spinning caller, so that threads of its core get on. Each
// costs 0.3 us where the core has no other thread; one that takes longer than this time gave the
// core to one. Range 5 to 100 us.
inline constexpr int64_t kCallerYieldNs = 20 * 1000;
// Time, ns, that nobody spins after another thread took a spinning caller's core: the first time
// and at most. Short, because such a thread may come once a second; long, so that a crowded machine
// spends a per cent on spins. Ranges 0.1 to 10 ms and 10 to 1,000 ms.
inline constexpr int64_t kCrowdedRestNsMin = 1000 * 1000;
inline constexpr int64_t kCrowdedRestNsMax = 256 * 1000 * 1000;

// Time before the deadline of a shutdown at which BE work is evicted, ns: several block tasks
// (27 us, and 200 us for attention). At most half of the time that the shutdown has. Range 0.5 to
// 20 ms.
inline constexpr int64_t kShutdownEvictionNs = 2 * 1000 * 1000;

// Device time, ns, that a BE app with work may catch up on after it was kept out while others ran,
// for example by its long kernels. Without a bound it would then have the device to itself for
// seconds. Long against a task (2-8 ms). Range 10 ms to 1 s.
inline constexpr double kFairCreditNs = 100e6;

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

// Live BE launches on the whole device where quotas keep each to some of the SMs, and BE lanes for
// them: one a launch. Four busy streams delay nobody, and eight block other streams
// (docs/hardware.md, "Eviction signal"). Range 2 to 4.
inline constexpr int32_t kQuotaLanes = 4;

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
// host. adaptive: between two tasks. Range 5,000 to 30,000.
inline constexpr double kSliceGapNs = 10'000;
// kernelet: the same where the next slice waits on the lane: a kernel behind another and the word
// by which the first one is reported, 0.5 and 1 us (docs/hardware.md). What a kernel's calibration
// says counts instead. Range 1,000 to 3,000.
inline constexpr double kQueuedSliceGapNs = 1'500;
// kernelet: slices of a task on the device: one runs and one waits behind it. A third would only
// delay a better pair. Range 1 to 4 (kMaxPartsPerTask).
inline constexpr int32_t kSlicesAhead = 2;
// kernelet: what slices may cost a kernel that runs by itself (Kernelet's p): 2 %. Range 0.005 to
// 0.1.
inline constexpr double kSliceOverheadMax = 0.02;
// kernelet: from so many slices of each side on, what they did counts and no prediction. Range 4 to
// 64.
inline constexpr int32_t kSliceRunsMin = 8;
// What one more slice counts of the mean: few slices are outliers. Range 0.02 to 0.3.
inline constexpr double kSliceRunWeight = 0.05;
// kernelet: a pair with a smaller error of its speeds was measured, and is not pruned. Repeats of
// one pair differ by 0.03. Range 0.03 to 0.1.
inline constexpr float kMeasuredPairError = 0.05F;

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

// Longest piece of a BE copy of pageable memory under every policy, bytes, where the launch returns
// when the copy has ended: 0.4 ms of the scheduler's thread at 10 GB/s. A piece costs some 20 us
// more than its bytes. Range 1 to 64 MB.
inline constexpr int64_t kPageablePieceBytesMax = int64_t{4} << 20;

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

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_TUNING_H_
