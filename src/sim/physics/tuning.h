// The tuned constants of the simulated device, each with its unit, its reason and the range from
// which a simulation study may draw it. Values that differ between GPUs are in DeviceProfile.

#ifndef GPUSHARE_SRC_SIM_PHYSICS_TUNING_H_
#define GPUSHARE_SRC_SIM_PHYSICS_TUNING_H_

#include <cstdint>

namespace gpushare::sim {

// Progress that the block tasks in flight have already made, as a share of a block task, drawn once
// for each launch. 1 minus it is the longest residual at an eviction. From the eviction table of
// docs/hardware.md, less 4 us of write latency: median 0.86 of a block task, p99 0.97. Range: 0 to
// 0.3.
inline constexpr double kInFlightProgressMin = 0.025;
inline constexpr double kInFlightProgressMax = 0.255;

// Mean of the exponential jitter of an eviction write, relative to its latency. It gives a p99 of
// 40 us for the eviction latency of 27 us block tasks (docs/hardware.md). Range: 0 to 1.
inline constexpr double kEvictionWriteJitter = 0.25;

// Time from the end of a launch to the first block of the next launch on its lane: the cost of a
// graph node, 0.52 us (docs/hardware.md). Range: 0 to 1500 ns.
inline constexpr int64_t kSuccessorGapNs = 500;

// The same between two slices, which are reported one by one: a word that the device writes, or an
// event with a time, takes 1 to 2 us of the stream (docs/hardware.md). Where a calibration measured
// slices of the kernel, what that says counts, ramp and tail with it. Range: 1000 to 3000 ns.
inline constexpr int64_t kSliceSuccessorGapNs = 1500;

// Time that a cut between two segments costs, with two of them outstanding: 0.95 us at segments of
// 25 us, 1.3 us at 50 us, 1.8 us at 100 us (docs/hardware.md). Range: 500 to 3000 ns.
inline constexpr double kSegmentGapNs = 1600;

// What a segment that is evicted between its block tasks costs beyond that: nothing is behind it,
// so the device waits for the host at its end. One outstanding segment costs 8 % at 100 us, two
// cost 2 % (docs/hardware.md). Range: 2000 to 10000 ns.
inline constexpr double kEvictableGapNs = 6200;

// Duration of opaque work that declares none. Range: 1000 to 100000 ns.
inline constexpr int64_t kOpaqueDefaultNs = 5000;
// Duration of a library call without a record, a bound or a hint.
inline constexpr int64_t kLibraryDefaultNs = 50000;
// Duration of a block task of a kernel without a simulation record.
inline constexpr int64_t kBlockTaskDefaultNs = 20000;

// A kernel that uses at least this share of the issue slots starves co-residents of its SM. In the
// overlap table of docs/hardware.md, FFMA at full issue rate gains nothing beside anything. Range:
// 0.95 to 1.
inline constexpr double kFullIssue = 0.98;

// Share of the time of co-residents of an SM that does not overlap, for kernels with counters:
// their pipes alone leave out L1, shared memory and latencies. Of the 885 points of
// benchmarks/results/gpu_co_resident.json in which both advance, the sum of both speeds is off by
// 0.18 on the mean, by 0.26 with the records' demands and without this. 0.3 to 0.5 fit within 0.005
// of each other; the least of them is nearest for the pairs that gain most, which policies choose.
// Range: 0.3 to 0.5.
inline constexpr double kCountedSerialShare = 0.3;

// Slow-down by L2 contention: 1 + this x own DRAM demand x the neighbours' L2 use. Fitted to the
// GEMM column of the spatial table in docs/hardware.md. Range: 0.3 to 0.9.
inline constexpr double kL2Contention = 0.6;

// The least time that a part of a fused kernel takes alone in its blocks, over its own in its
// ordinary form. It keeps two noisy points of a curve from giving a part no time at all. The fits
// of three of the 105 curves in profiles/h200.json are lower. Range: 0.3 to 0.8.
inline constexpr double kFusedAloneLeast = 0.5;

// Copies up to this size travel in the command stream and pass a busy copy engine: 4 KB does not
// wait behind 256 MB, 64 KB does (docs/hardware.md). Range: 4096 to 65535 bytes.
inline constexpr int64_t kInlineCopyBytes = 8192;

// Eviction writes that may wait at once in hardware queues that other lanes block; one a lane is
// usual.
inline constexpr int kMaxWaitingWrites = 256;

}  // namespace gpushare::sim

#endif  // GPUSHARE_SRC_SIM_PHYSICS_TUNING_H_
