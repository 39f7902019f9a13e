#include "src/sim/warp/program.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/strings/str_cat.h"
#include "src/core/base/status.h"

namespace gpushare::sim::warp {
namespace {

absl::Status InRange(absl::string_view what, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is ", value, ", and it must be in ", least, " to ", most, "."));
}

bool IsMemory(OpKind kind) { return kind == OpKind::kLoad || kind == OpKind::kStore; }

absl::Status CheckAccess(const Program& program, const Op& op) {
  GPUSHARE_RETURN_IF_ERROR(
      InRange("The region of an access", op.region, 0, std::ssize(program.regions) - 1));
  GPUSHARE_RETURN_IF_ERROR(InRange("The number of lines of an access", op.lines, 1, kMaxLines));
  GPUSHARE_RETURN_IF_ERROR(InRange("The number of sectors of a line", op.sectors, 1, 4));
  GPUSHARE_RETURN_IF_ERROR(
      InRange("The distance of lines in bytes", op.line_stride, 0, kMaxLineStrideBytes));
  for (const int64_t stride :
       {op.offset, op.per_block, op.per_warp, op.per_loop[0], op.per_loop[1], op.per_loop[2]}) {
    GPUSHARE_RETURN_IF_ERROR(InRange("A stride in bytes", stride, 0, kMaxStrideBytes));
  }
  return absl::OkStatus();
}

absl::Status CheckOp(const Program& program, const Op& op) {
  for (const uint8_t distance : op.after) {
    GPUSHARE_RETURN_IF_ERROR(InRange("The distance to a producer", distance, 0, kMaxDistance));
  }
  GPUSHARE_RETURN_IF_ERROR(InRange("The latency in cycles", op.latency, -1, kMaxOpCycles));
  GPUSHARE_RETURN_IF_ERROR(InRange("The interval in cycles", op.interval, -1, kMaxOpCycles));
  GPUSHARE_RETURN_IF_ERROR(InRange("The least number of ways", op.ways_min, 1, 32));
  GPUSHARE_RETURN_IF_ERROR(InRange("The largest number of ways", op.ways_max, op.ways_min, 32));
  return IsMemory(op.kind) ? CheckAccess(program, op) : absl::OkStatus();
}

absl::Status TooLong() {
  return absl::InvalidArgumentError(
      absl::StrCat("A warp executes more than ", kMaxWarpInstructions,
                   " instructions, and that is the limit. Lower the counts of the loops."));
}

// The instructions of a warp, or an error for loops that do not nest.
absl::StatusOr<int64_t> CountInstructions(const Program& program) {
  std::vector<int64_t> before(program.ops.size() + 1, 0);  // instructions up to each operation
  for (size_t at = 0; at < program.ops.size(); ++at) {
    const Op& op = program.ops[at];
    if (op.kind != OpKind::kLoopEnd) {
      before[at + 1] = before[at] + 1;
      continue;
    }
    GPUSHARE_RETURN_IF_ERROR(InRange("The count of a loop", op.count, 1, kMaxLoopCount));
    GPUSHARE_RETURN_IF_ERROR(
        InRange("The first operation of a loop", op.target, 0, static_cast<int64_t>(at) - 1));
    GPUSHARE_RETURN_IF_ERROR(InRange("The depth of a loop", op.depth, 0, kMaxLoopDepth - 1));
    // Everything in the body is inside; loops in it must have begun in it and be deeper.
    for (auto inner = static_cast<size_t>(op.target); inner < at; ++inner) {
      const Op& other = program.ops[inner];
      if (other.kind == OpKind::kLoopEnd && (other.target < op.target || other.depth <= op.depth)) {
        return absl::InvalidArgumentError("Two loops overlap, and loops must nest.");
      }
    }
    const int64_t body = before[at] - before[static_cast<size_t>(op.target)];
    if (body > kMaxWarpInstructions / op.count) return TooLong();
    before[at + 1] = before[static_cast<size_t>(op.target)] + body * op.count;
    if (before[at + 1] > kMaxWarpInstructions) return TooLong();
  }
  return before.back();
}

absl::Status CheckShape(const Program& program) {
  GPUSHARE_RETURN_IF_ERROR(
      InRange("The number of operations", std::ssize(program.ops), 1, kMaxOps));
  GPUSHARE_RETURN_IF_ERROR(
      InRange("The number of regions", std::ssize(program.regions), 0, kMaxRegions));
  GPUSHARE_RETURN_IF_ERROR(
      InRange("The number of warps of a block", program.warps_per_block, 1, kMaxWarpsPerBlock));
  GPUSHARE_RETURN_IF_ERROR(InRange("The number of blocks", program.grid_blocks, 1, kMaxGridBlocks));
  GPUSHARE_RETURN_IF_ERROR(
      InRange("The shared memory of a block in bytes", program.shared_bytes, 0, 1 << 20));
  for (const Region& region : program.regions) {
    GPUSHARE_RETURN_IF_ERROR(
        InRange("The size of a region in bytes", region.bytes, 128, kMaxRegionBytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Check(const Program& program) {
  GPUSHARE_RETURN_IF_ERROR(CheckShape(program));
  for (const Op& op : program.ops) GPUSHARE_RETURN_IF_ERROR(CheckOp(program, op));
  return CountInstructions(program).status();
}

int64_t InstructionsPerWarp(const Program& program) {
  const auto count = CountInstructions(program);
  return count.ok() ? *count : 0;
}

}  // namespace gpushare::sim::warp
