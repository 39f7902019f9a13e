// The tuned constants of the simulated device, each with its unit, its reason and the range that a
// simulation study may draw it from. What differs between GPUs is in DeviceProfile instead.

#ifndef GPUSHARE_SRC_SIM_TUNING_H_
#define GPUSHARE_SRC_SIM_TUNING_H_

#include <cstdint>

namespace gpushare::sim {

// Progress that the block tasks in flight have already made, as a share of a block task, drawn once
// for each launch. The longest residual at an eviction is 1 minus it. hardware.md, eviction table,
// less 4 us of write latency: median 0.86 of a block task, p99 0.97. Range: 0 to 0.3.
inline constexpr double kInFlightProgressMin = 0.025;
inline constexpr double kInFlightProgressMax = 0.255;

// Mean of the exponential jitter of an eviction write, relative to its latency: p99 of the eviction
// latency for 27 us block tasks is 40 us (hardware.md). Range: 0 to 1.
inline constexpr double kEvictionWriteJitter = 0.25;

// From the end of a launch to the first block of the next on its lane: the cost of a graph node,
// 0.52 us (hardware.md). Range: 0 to 1500 ns.
inline constexpr int64_t kSuccessorGapNs = 500;

// Opaque work that declares no duration. Range: 1000 to 100000 ns.
inline constexpr int64_t kOpaqueDefaultNs = 5000;
// A library call without record, bound or hint.
inline constexpr int64_t kLibraryDefaultNs = 50000;
// A block task of a kernel that was registered without a simulation record.
inline constexpr int64_t kBlockTaskDefaultNs = 20000;

// A kernel at this share of the issue slots starves whoever shares its SM (hardware.md, overlap
// table: FFMA at full issue rate gains nothing beside anything). Range: 0.95 to 1.
inline constexpr double kFullIssue = 0.98;

// Slow-down by L2 contention: 1 + this x own DRAM demand x the neighbours' L2 use. Fitted to the
// GEMM column of hardware.md's spatial table. Range: 0.3 to 0.9.
inline constexpr double kL2Contention = 0.6;

// Copies up to this size travel in the command stream and pass a copy engine that is busy
// (hardware.md: 4 KB does not wait behind 256 MB, 64 KB does). Range: 4096 to 65535 bytes.
inline constexpr int64_t kInlineCopyBytes = 8192;

// Eviction writes that wait in an aliased hardware queue at once; one a lane is usual.
inline constexpr int kMaxWaitingWrites = 256;

}  // namespace gpushare::sim

#endif  // GPUSHARE_SRC_SIM_TUNING_H_
