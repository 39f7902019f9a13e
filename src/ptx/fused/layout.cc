// The layout of a fused block. See layout.h.

#include "src/ptx/fused/layout.h"

#include <algorithm>
#include <string>

#include "src/ptx/base/limits.h"

namespace gpushare::ptx {
namespace {

constexpr uint32_t kWarpThreads = 32;
constexpr uint32_t kWarpgroupThreads = 128;
// setmaxnreg: PTX ISA 9.0, section 'setmaxnreg'. The Tensor part takes at most what CUTLASS gives
// its consumers, as the fused kernels that are compiled ahead do.
constexpr uint32_t kMovedRegistersMin = 24;
constexpr uint32_t kMovedRegistersMax = 240;

uint64_t RoundUp(uint64_t value, uint64_t step) { return (value + step - 1) / step * step; }
uint64_t RoundDown(uint64_t value, uint64_t step) { return value / step * step; }

Refusal Beyond(Reason reason, const std::string& has, uint64_t value, const std::string& limit_of,
               uint64_t limit) {
  return {reason, 0,
          "The fused block has " + std::to_string(value) + " " + has + ", and " + limit_of +
              " has at most " + std::to_string(limit) + "."};
}

// A part whose threads or copies are absurd would overflow what follows.
bool IsSane(const PartNeeds& part, uint32_t copies, const SmLimits& limits) {
  return part.threads > 0 && part.threads <= limits.block_threads && copies > 0 &&
         copies <= limits.block_threads && part.shared_align > 0;
}

// Numbers that somebody states; the text bounds the others.
Refusal CheckStated(const PartNeeds& tensor, const PartNeeds& cuda, const LayoutChoices& choices,
                    const SmLimits& limits) {
  for (const PartNeeds* part : {&tensor, &cuda}) {
    Refusal refusal = CheckRegisters(part->registers, limits);
    if (refusal.reason != Reason::kNone) return refusal;
  }
  if (choices.blocks_per_sm <= limits.blocks) return {};
  return {Reason::kRegisters, 0,
          std::to_string(choices.blocks_per_sm) + " fused blocks an SM are asked for, and an SM " +
              "holds at most " + std::to_string(limits.blocks) + "."};
}

Refusal LayOutThreads(const PartNeeds& tensor, const PartNeeds& cuda, const LayoutChoices& choices,
                      const SmLimits& limits, FusedLayout& layout) {
  for (const PartNeeds* part : {&tensor, &cuda}) {
    if (part->threads % kWarpThreads == 0 && part->threads > 0) continue;
    return {Reason::kBlockShape, 0,
            "A block of " + std::to_string(part->threads) +
                " threads is not made of whole warps, as a part of a fused block is."};
  }
  const bool moves = choices.move_registers;
  const auto stride = [&](const PartNeeds& part, uint32_t copies) {
    const bool groups = moves || (part.warpgroups && copies > 1);
    return static_cast<uint32_t>(RoundUp(part.threads, groups ? kWarpgroupThreads : kWarpThreads));
  };
  if (!IsSane(tensor, choices.tensor_copies, limits) ||
      !IsSane(cuda, choices.cuda_copies, limits)) {
    return {Reason::kThreads, 0,
            "The parts have " + std::to_string(choices.tensor_copies) + " blocks of " +
                std::to_string(tensor.threads) + " and " + std::to_string(choices.cuda_copies) +
                " of " + std::to_string(cuda.threads) + " threads, and a block has 1 to " +
                std::to_string(limits.block_threads) + "."};
  }
  layout.tensor.copies = choices.tensor_copies;
  layout.tensor.threads = tensor.threads;
  layout.tensor.stride = stride(tensor, choices.tensor_copies);
  layout.tensor.threads_in_all =
      static_cast<uint32_t>(RoundUp(layout.tensor.copies * layout.tensor.stride,
                                    moves || cuda.warpgroups ? kWarpgroupThreads : kWarpThreads));
  layout.cuda.copies = choices.cuda_copies;
  layout.cuda.threads = cuda.threads;
  layout.cuda.first_thread = layout.tensor.threads_in_all;
  layout.cuda.stride = stride(cuda, choices.cuda_copies);
  layout.cuda.threads_in_all = layout.cuda.copies * layout.cuda.stride;
  layout.threads = layout.tensor.threads_in_all + layout.cuda.threads_in_all;
  if (layout.threads <= limits.block_threads) return {};
  return Beyond(Reason::kThreads, "threads", layout.threads, "a block", limits.block_threads);
}

Refusal LayOutBarriers(const PartNeeds& tensor, const PartNeeds& cuda, FusedLayout& layout) {
  layout.tensor.barriers = tensor.barriers;
  layout.cuda.barriers = cuda.barriers;
  const uint64_t first = uint64_t{layout.tensor.copies} * tensor.barriers;
  const uint64_t barriers = first + uint64_t{layout.cuda.copies} * cuda.barriers;
  if (barriers > kBlockBarriersMax) {
    return Beyond(Reason::kBarriers, "named barriers", barriers, "a block", kBlockBarriersMax);
  }
  layout.cuda.first_barrier = static_cast<uint32_t>(first);
  layout.barriers = static_cast<uint32_t>(barriers);
  return {};
}

Refusal LayOutShared(const PartNeeds& tensor, const PartNeeds& cuda, const SmLimits& limits,
                     FusedLayout& layout) {
  const uint64_t tensor_stride = RoundUp(tensor.shared_bytes, tensor.shared_align);
  const uint64_t cuda_stride = RoundUp(cuda.shared_bytes, cuda.shared_align);
  const uint64_t begin = RoundUp(layout.tensor.copies * tensor_stride, cuda.shared_align);
  const uint64_t bytes = begin + layout.cuda.copies * cuda_stride;
  if (bytes > limits.block_shared_bytes) {
    return Beyond(Reason::kSharedMemory, "bytes of shared memory", bytes, "a block",
                  limits.block_shared_bytes);
  }
  layout.tensor.shared_stride = static_cast<uint32_t>(tensor_stride);
  layout.cuda.shared_stride = static_cast<uint32_t>(cuda_stride);
  layout.cuda.shared_begin = static_cast<uint32_t>(begin);
  layout.shared_bytes = static_cast<uint32_t>(bytes);
  layout.shared_align = std::max(tensor.shared_align, cuda.shared_align);
  layout.dynamic_shared =
      tensor.dynamic_shared || cuda.dynamic_shared || bytes > kStaticSharedBytesMax;
  return {};
}

// What one part takes must not exceed what the other gives: the kernel would wait for ever.
Refusal MoveRegisters(const PartNeeds& tensor, const PartNeeds& cuda, const LayoutChoices& choices,
                      const SmLimits& limits, FusedLayout& layout) {
  if (tensor.registers == 0 || cuda.registers == 0) {
    return {Reason::kRegisters, 0,
            "setmaxnreg needs the registers of both parts' worker twins, and one is not stated."};
  }
  const uint64_t step = limits.register_step;
  const uint64_t blocks = std::max(1u, choices.blocks_per_sm);
  const uint64_t launch = RoundDown(
      std::min<uint64_t>(limits.registers_thread_max, limits.registers / (layout.threads * blocks)),
      step);
  const uint64_t given = std::max<uint64_t>(kMovedRegistersMin, RoundUp(cuda.registers, step));
  const uint64_t pool = launch * layout.threads;
  const uint64_t spent = given * layout.cuda.threads_in_all;
  const uint64_t taken =
      pool <= spent
          ? 0
          : std::min<uint64_t>(kMovedRegistersMax,
                               RoundDown((pool - spent) / layout.tensor.threads_in_all, step));
  if (tensor.registers <= launch && given <= launch) {
    return {Reason::kRegisters, 0,
            "No registers need to move: at " + std::to_string(blocks) +
                " fused blocks an SM a thread has " + std::to_string(launch) +
                " at launch, and the parts need " + std::to_string(tensor.registers) + " and " +
                std::to_string(cuda.registers) + "."};
  }
  if (given >= launch || taken <= launch || taken < tensor.registers) {
    return {Reason::kRegisters, 0,
            "With " + std::to_string(launch) + " registers at launch and " + std::to_string(given) +
                " for the second part, the Tensor part gets " + std::to_string(taken) +
                " by setmaxnreg, and it needs " + std::to_string(tensor.registers) + "."};
  }
  layout.registers = static_cast<uint32_t>(launch);
  layout.tensor.registers = static_cast<uint32_t>(taken);
  layout.cuda.registers = static_cast<uint32_t>(given);
  return {};
}

// Sets the registers of a thread of the fused kernel. False: too few are left.
bool CapRegisters(const PartNeeds& tensor, const PartNeeds& cuda, const SmLimits& limits,
                  FusedRatio& ratio) {
  if (tensor.registers == 0 || cuda.registers == 0) return true;
  const uint64_t wanted = RoundUp(std::max(tensor.registers, cuda.registers), limits.register_step);
  const uint64_t most =
      RoundDown(limits.registers / RoundUp(ratio.threads, limits.register_threads_step),
                limits.register_step);
  ratio.registers = static_cast<uint32_t>(std::min(wanted, most));
  ratio.capped = most < wanted;
  return !ratio.capped || most >= limits.registers_capped_min;
}

// Makes a ratio that would be capped one whose registers move. False: that does not fit.
bool HasRegistersMoved(const PartNeeds& tensor, const PartNeeds& cuda, LayoutChoices choices,
                       const SmLimits& limits, FusedRatio& ratio, FusedLayout& layout) {
  choices.move_registers = true;
  FusedLayout moved;
  if (LayOut(tensor, cuda, choices, limits, moved).reason != Reason::kNone) return false;
  layout = moved;
  ratio.threads = moved.threads;
  ratio.registers = moved.registers;
  ratio.capped = false;
  ratio.move_registers = true;
  return true;
}

uint32_t BlocksOfSm(const FusedLayout& layout, uint32_t registers, const SmLimits& limits) {
  uint32_t blocks = std::min(limits.blocks, limits.threads / layout.threads);
  blocks =
      std::min(blocks, limits.shared_bytes / (layout.shared_bytes + limits.reserved_shared_bytes));
  if (registers == 0) return blocks;
  const uint64_t threads = RoundUp(layout.threads, limits.register_threads_step);
  return static_cast<uint32_t>(
      std::min<uint64_t>(blocks, limits.registers / (registers * threads)));
}

}  // namespace

Refusal CheckRegisters(uint32_t registers, const SmLimits& limits) {
  if (registers <= limits.registers_thread_max) return {};
  return {Reason::kRegisters, 0,
          std::to_string(registers) + " registers a thread are stated, and a thread has at most " +
              std::to_string(limits.registers_thread_max) + "."};
}

Refusal LayOut(const PartNeeds& tensor, const PartNeeds& cuda, const LayoutChoices& choices,
               const SmLimits& limits, FusedLayout& layout) {
  layout = {};
  Refusal refusal = CheckStated(tensor, cuda, choices, limits);
  if (refusal.reason == Reason::kNone) {
    refusal = LayOutThreads(tensor, cuda, choices, limits, layout);
  }
  if (refusal.reason == Reason::kNone) refusal = LayOutBarriers(tensor, cuda, layout);
  if (refusal.reason == Reason::kNone) refusal = LayOutShared(tensor, cuda, limits, layout);
  if (refusal.reason == Reason::kNone && choices.move_registers) {
    refusal = MoveRegisters(tensor, cuda, choices, limits, layout);
  }
  return refusal;
}

std::vector<FusedRatio> FeasibleRatios(const PartNeeds& tensor, const PartNeeds& cuda,
                                       const SmLimits& limits, bool may_move) {
  std::vector<FusedRatio> ratios;
  // A copy has a warp and a barrier, so that the barriers bound both loops.
  for (uint32_t a = 1; a < kBlockBarriersMax; ++a) {
    for (uint32_t b = 1; a + b <= kBlockBarriersMax; ++b) {
      FusedLayout layout;
      const LayoutChoices choices = {.tensor_copies = a, .cuda_copies = b};
      if (LayOut(tensor, cuda, choices, limits, layout).reason != Reason::kNone) continue;
      FusedRatio ratio;
      ratio.tensor_copies = a;
      ratio.cuda_copies = b;
      ratio.threads = layout.threads;
      ratio.barriers = layout.barriers;
      ratio.shared_bytes = layout.shared_bytes;
      const bool fits = CapRegisters(tensor, cuda, limits, ratio);
      const bool moved = may_move && (!fits || ratio.capped) &&
                         HasRegistersMoved(tensor, cuda, choices, limits, ratio, layout);
      if (!fits && !moved) continue;
      ratio.blocks_per_sm = BlocksOfSm(layout, ratio.registers, limits);
      if (ratio.blocks_per_sm > 0) ratios.push_back(ratio);
    }
  }
  return ratios;
}

}  // namespace gpushare::ptx
