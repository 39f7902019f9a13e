// Every bound of the library, with its unit and its reason. Tuned constants are in tuning.h.

#ifndef GPUSHARE_SRC_CORE_BASE_LIMITS_H_
#define GPUSHARE_SRC_CORE_BASE_LIMITS_H_

#include <cstddef>
#include <cstdint>

namespace gpushare::core {

// Apps in one process: an inference server hosts tens of models; a lane mask has 64 bits.
inline constexpr int kMaxApps = 64;
inline constexpr int kMaxQueues = 256;
inline constexpr int kMaxKernels = 1024;
// Task slots of one app unless it asks for another number; a full app gets RESOURCE_EXHAUSTED and
// takes nothing from its neighbours.
inline constexpr int kDefaultTasksPerApp = 1024;
inline constexpr int kMaxTasksPerApp = 16384;
// Sum of the task slots of all apps: the capacity of the submit ring, so that a push never fails.
inline constexpr int kMaxTasks = 65536;
// Arguments copied at submit: one slot holds what a CUDA kernel usually takes; the pooled slots
// hold its maximum (4 KB).
inline constexpr size_t kInlineArgumentBytes = 512;
inline constexpr size_t kMaxArgumentBytes = 4096;
inline constexpr int kLargeArgumentSlotsPerApp = 32;
inline constexpr size_t kArgumentAlignment = 64;  // CUtensorMap
inline constexpr int kMaxWaitsPerTask = 8;
inline constexpr int kMaxNameBytes = 64;
// Overhead of the worker form in a simulation record. Workers were measured up to 10 % faster than
// the grid (sincos on an H200); twice as fast, or eleven times as slow, is a unit error.
inline constexpr double kMinWorkerOverhead = -0.5;
inline constexpr double kMaxWorkerOverhead = 10;

// Active queries that one plan looks at. Where apps have more, each shows as many of its oldest as
// every other, so that no app's queries hide those of another.
inline constexpr int kMaxActiveQueries = 256;
// Of one app: what later queries of it have left to give away depends on those before them.
inline constexpr int kMaxActiveQueriesPerApp = 64;
static_assert(kMaxActiveQueries >= kMaxActiveQueriesPerApp && kMaxActiveQueries >= kMaxApps);
// Queue heads that one plan looks at: all of them, so that no app's queues hide those of another.
inline constexpr int kMaxHeads = kMaxQueues;
// A window of an LC app's latencies holds this many to twice as many, so that at least 41 lie above
// the 99th percentile.
inline constexpr int kRecentQueries = 4096;
inline constexpr int kMaxRunning = 64;
inline constexpr int kMaxPartsPerTask = 4;  // live launches of one task
inline constexpr int kMaxLaunchParts = 2;   // tasks in one launch: two in a fused one
inline constexpr int kMaxPlannedActions = 128;

// LC launches that may be in flight on one queue; the rest stay in the library, where they can
// still be cancelled. More than any kernel chain needs to keep the GPU fed.
inline constexpr int kLcWindow = 256;

// CUDA's limits of a kernel's block and thread. The limit of a block's third dimension (64) is left
// to the device.
inline constexpr int32_t kMaxThreadsPerBlock = 1024;
inline constexpr int32_t kMaxRegistersPerThread = 255;
// Workers that an SM can hold: its block slots, 32 on every GPU since Maxwell (16 before).
inline constexpr int32_t kMaxWorkersPerSm = 32;
// Shared memory of a fused block, bytes: more than the largest GPUs have.
inline constexpr int32_t kMaxFusedSharedBytes = 1 << 20;
inline constexpr int32_t kMaxFusedBlocksPerSm = 64;
// One dimension of a library call's shape. cuDNN counts in 32 bits; a tensor of 2^40 elements is
// larger than any device's memory.
inline constexpr int64_t kMaxTensorDimension = (int64_t{1} << 31) - 1;
inline constexpr int64_t kMaxTensorElements = int64_t{1} << 40;
// SMs that the CapSM ledger counts, thirty times an H200's.
inline constexpr int32_t kMaxLedgerSms = 4096;

inline constexpr int kMaxLanes = 64;  // one bit each in an eviction mask
// Lane replacements in a runtime's life. The words of a hung lane (some 100 KB) are never freed,
// because the device may still write to them.
inline constexpr int kMaxLaneReplacements = kMaxLanes;
inline constexpr int kMaxSplits = 16;  // 132 SMs in steps of 8
// Partitions of one plan: a place of one group each on 132 SMs in steps of 8.
inline constexpr int kMaxPartitions = 16;
// Sets of SMs that plans of partitions name in a runtime's life, beyond the sides of splits. An
// index never means other SMs, so a set that was named stays. A mask of places has 64 bits.
inline constexpr int kMaxPartitionPlaces = 30;
inline constexpr int kMaxPlaces = 1 + 2 * kMaxSplits + kMaxPartitionPlaces;
static_assert(kMaxPlaces < 64);
inline constexpr int kMaxSpeedPoints = 32;
// Ranges that a graph has read into L2: a network has some hundred tensors.
inline constexpr uint32_t kMaxWarmRanges = 4096;
// Images of functions: what a long-lived process of compiled models loads. An image has tens of
// kilobytes; the second bound is of those that are in use at a time, together.
inline constexpr uint32_t kMaxFunctionImages = 65'536;
inline constexpr uint64_t kMaxFunctionImageBytes = uint64_t{256} << 20;
// PTX of one module: sixty times the longest that TorchInductor made of 25 models (280 KB).
inline constexpr uint64_t kMaxPtxBytes = uint64_t{16} << 20;
// Code on disk: some 5,000 twins of 50 KB, with their texts. An entry counts as at least one block
// of a file system, which bounds their number.
inline constexpr int64_t kMaxCodeCacheBytes = int64_t{256} << 20;
inline constexpr int64_t kMinCodeCacheEntryBytes = 4096;
// How long the code cache waits for another process that writes: longer than an entry takes.
inline constexpr int kCodeCacheLockMsMax = 200;
inline constexpr int kMaxGraphNodes = 4096;
// Kernel nodes at which one graph of LC work is cut. A query has a task for each and for each part
// between them, out of its app's task slots.
inline constexpr int kMaxCutNodes = 16;
inline constexpr int kMaxPieces = 2 * kMaxCutNodes + 1;
// Slots for kernels that parts of cut graphs leave to what applications register: a service has a
// few hundred kernels at most, and runs as well without a cut.
inline constexpr int kKernelSlotsKept = 512;
static_assert(kKernelSlotsKept < kMaxKernels);
// Segments of one graph: 0.4 s of work in segments of the default length.
inline constexpr int kMaxSegments = 4096;
inline constexpr int kMaxInFlightLaunches = 1024;  // slots of the device's launch table
inline constexpr int kMaxCounters = kMaxInFlightLaunches;

// Words of the submit ring that one Tick takes, completions that it handles and samples that it
// learns from: bounds the time until an LC completion is seen while a flood comes in.
inline constexpr int kBatch = 256;
// Explicit queries that are begun and not done, of all apps together. An app may have as many as it
// has task slots, so it takes nothing from its neighbours. One fewer than all task slots: a slot
// number has 16 bits, and 0 is none.
inline constexpr int kMaxExplicitQueries = kMaxTasks - 1;
// Open token streams of all apps together, as many as one app may have task slots; and marks whose
// tasks have not ended: a step of 256 requests in each of 128 queues.
inline constexpr int32_t kMaxTokenStreams = 16'384;
inline constexpr int32_t kMaxTokenMarks = 2 * kMaxTokenStreams;
// A task has at most two words in the submit ring at a time (a region), and so has an explicit
// query.
inline constexpr unsigned kRingWords = 1 << 18;
static_assert(kRingWords >= 2 * kMaxTasks + 2 * kMaxExplicitQueries);
// How long an app may keep an open query without work, or an open region, before that stops
// counting as load: an app's own limit, where it states one, and the shortest such limit. One
// second is what Triton gives an idle sequence (max_sequence_idle_microseconds).
inline constexpr int64_t kDefaultIdleTimeoutNs = int64_t{1000} * 1000 * 1000;
inline constexpr int64_t kMinIdleTimeoutNs = 1000 * 1000;
// Priorities of LC apps lie between -kMaxPriority and kMaxPriority: more levels than apps, and one
// byte of an event.
inline constexpr int32_t kMaxPriority = 100;
static_assert(kMaxPriority > kMaxApps && kMaxPriority <= 127);
// A region stops counting no earlier than after so many times the bound that it declares.
inline constexpr int64_t kRegionBoundsMax = 100;
// BE kernels with a row in the pair table; others are planned without pair knowledge.
inline constexpr int kMaxPairKernels = 64;
// Kernels with a row in the co-schedule table, LC and BE. A new row costs up to 192
// predictions.
inline constexpr int kMaxOverlapKernels = 64;
// Pairs of that table that one Tick predicts anew after runs: 24 predictions. The rest waits for
// the next Ticks.
inline constexpr int kMaxPairRefills = 8;

// Block tasks of one launch: 2^40 at 1 us each is twelve days.
inline constexpr int64_t kMaxBlockTasks = int64_t{1} << 40;
// A year: no hang limit is longer, so that times can be added to it.
inline constexpr int64_t kMaxHangLimitNs = int64_t{365} * 24 * 3600 * 1000 * 1000 * 1000;
// Size of a query's input, in the application's unit: above the bytes of any device's memory.
inline constexpr double kMaxInputSize = 1e12;
// One hour: a longer kernel or deadline in one submit is taken for a unit error.
inline constexpr int64_t kMaxDurationNs = int64_t{3600} * 1000 * 1000 * 1000;
// The latest time of a clock, of a log and of a deadline that is kept, 73 years: sums with any
// duration stay below kNever.
inline constexpr int64_t kLatestTimeNs = int64_t{1} << 61;
// How far ahead of now a query may be said to arrive: a farther one is taken for a unit error or
// for another clock. Nothing overflows where a target or a wait is added to it.
inline constexpr int64_t kMaxArrivalAheadNs = kMaxDurationNs;
// Bound of the first region of a queue that states none: a prefill of some thousand tokens.
inline constexpr int64_t kFirstRegionNs = 10'000'000;
// How far ahead a task may state the app's next query, and what it says where none follows. An
// engine's loop takes less than a millisecond; BE work is held for no longer than that for a
// statement that does not come true.
inline constexpr int64_t kMaxNextWithinNs = int64_t{100} * 1000 * 1000;
inline constexpr int64_t kNoNextQuery = -1;
inline constexpr int64_t kMaxCopyBytes = int64_t{1} << 42;

// Reasons to hold a task: Reason::kHoldHeadroom and the 31 numbers behind it.
inline constexpr int kHoldReasons = 32;
// Records that a trace keeps before it counts drops (64 bytes each, 64 MB).
inline constexpr int64_t kDefaultTraceRecords = int64_t{1} << 20;
// Records of an event log file, 256 MB: four times what a scheduler keeps by default.
inline constexpr uint64_t kMaxLogFileRecords = uint64_t{1} << 22;
// Ticks of a replay at one time and log position without a new record; then the replay has stopped
// where the recorded run went on. A Tick that adopts or plans may need a second one.
inline constexpr int kMaxIdleReplayTicks = 4;
// Ticks of a replay at one instant. Each starts, ends or holds something; more is a fault.
inline constexpr int kMaxReplayTicksAtOnce = 1 << 20;

// Block tasks that a worker takes with one claim. More gain nothing that can be measured: with
// block tasks of 100 ns claims are then 6.4 us apart.
inline constexpr uint32_t kClaimBatchMax = 64;

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_BASE_LIMITS_H_
