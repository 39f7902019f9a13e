#include "src/sim/warp/sm.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "src/core/base/random.h"

namespace gpushare::sim::warp {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
// Each launch has regions of its own; a launch has at most 16 regions of 2^40 bytes.
constexpr int kRegionBits = 41;
constexpr int kLaunchBits = 46;

constexpr uint64_t Bit(int bit) { return uint64_t{1} << bit; }

// The warps whose next instruction is a load or a store.
uint64_t Accesses(const std::array<uint64_t, kOpKinds>& next_is) {
  return next_is[static_cast<size_t>(OpKind::kLoad)] | next_is[static_cast<size_t>(OpKind::kStore)];
}

std::array<int64_t, kGroups> GroupPriorities(absl::Span<const KernelLaunch> launches) {
  std::array<int64_t, kGroups> priorities = {launches[0].priority, launches[0].priority};
  for (const KernelLaunch& launch : launches) {
    if (launch.priority != priorities[0]) priorities[1] = launch.priority;
  }
  return priorities;
}

}  // namespace

Sm::Sm(const SimulationOptions& options, absl::Span<const KernelLaunch> launches, int64_t l1_bytes)
    : options_(options), memory_(options.machine, l1_bytes) {
  const IssueUnit unit(options.policy, options.rules, GroupPriorities(launches));
  for (int i = 0; i < options.machine.schedulers; ++i) schedulers_.emplace_back(unit);
  const auto warps = static_cast<size_t>(options.machine.warps);
  slot_used_.resize(warps);
  free_slots_ = options.machine.warps;
  blocks_.resize(warps);
  for (Block& block : blocks_) block.slots.reserve(kMaxWarpsPerBlock);
  for (const KernelLaunch& launch : launches) {
    Kernel kernel;
    kernel.launch = launch;
    kernel.group = launch.priority == launches[0].priority ? 0 : 1;
    kernel.address = (kernels_.size() + 1) << kLaunchBits;
    blocks_left_ += launch.program->grid_blocks;
    kernels_.push_back(kernel);
    result_.kernels.push_back({.start_cycle = launch.at_cycle});
  }
}

bool Sm::Fits(const Kernel& kernel) const {
  return kernel.next_block < kernel.launch.program->grid_blocks &&
         kernel.resident < kernel.launch.resident_blocks &&
         free_slots_ >= kernel.launch.program->warps_per_block;
}

void Sm::PlaceBlocks(int64_t cycle) {
  if (cycle < place_at_) return;
  place_at_ = kNever;
  for (size_t i = 0; i < kernels_.size(); ++i) {
    if (kernels_[i].launch.at_cycle > cycle) {
      place_at_ = std::min(place_at_, kernels_[i].launch.at_cycle);
      continue;
    }
    while (Fits(kernels_[i])) PlaceBlock(static_cast<int>(i), cycle);
  }
}

void Sm::PlaceBlock(int launch, int64_t cycle) {
  Kernel& kernel = kernels_[static_cast<size_t>(launch)];
  const Program& program = *kernel.launch.program;
  const auto entry =
      std::find_if(blocks_.begin(), blocks_.end(), [](const Block& block) { return !block.used; });
  entry->used = true;
  entry->launch = launch;
  entry->warps_left = program.warps_per_block;
  entry->at_barrier = 0;
  entry->slots.clear();
  int slot = 0;
  for (int warp = 0; warp < program.warps_per_block; ++warp) {
    while (slot_used_[static_cast<size_t>(slot)]) ++slot;
    slot_used_[static_cast<size_t>(slot)] = true;
    entry->slots.push_back(slot);
    Scheduler& scheduler = SchedulerOf(slot);
    const int bit = BitOf(slot);
    WarpContext& context = scheduler.warps[static_cast<size_t>(bit)];
    context = {};
    context.program = &program;
    context.launch = launch;
    context.block_entry = static_cast<int>(entry - blocks_.begin());
    context.block = kernel.next_block;
    context.warp = warp;
    context.ready_at = cycle;
    scheduler.pool.id[static_cast<size_t>(bit)] = next_warp_id_++;
    scheduler.pool.live |= Bit(bit);
    ++scheduler.pool.changes;
    scheduler.pool.group[static_cast<size_t>(kernel.group)] |= Bit(bit);
    WaitFor(scheduler, bit);
  }
  ++kernel.next_block;
  ++kernel.resident;
  --blocks_left_;
  resident_warps_ += program.warps_per_block;
  free_slots_ -= program.warps_per_block;
}

// From now on the warp waits for its ready_at.
void Sm::WaitFor(Scheduler& scheduler, int bit) {
  const WarpContext& warp = scheduler.warps[static_cast<size_t>(bit)];
  scheduler.next_is[static_cast<size_t>(warp.next().kind)] |= Bit(bit);
  scheduler.wake_at =
      scheduler.waiting == 0 ? warp.ready_at : std::min(scheduler.wake_at, warp.ready_at);
  scheduler.waiting |= Bit(bit);
}

void Sm::Wake(Scheduler& scheduler, int64_t cycle) {
  if (scheduler.waiting == 0 || cycle < scheduler.wake_at) return;
  int64_t next = kNever;
  for (uint64_t left = scheduler.waiting; left != 0; left &= left - 1) {
    const int bit = std::countr_zero(left);
    const int64_t ready_at = scheduler.warps[static_cast<size_t>(bit)].ready_at;
    if (ready_at > cycle) {
      next = std::min(next, ready_at);
      continue;
    }
    scheduler.waiting &= ~Bit(bit);
    scheduler.ready |= Bit(bit);
  }
  scheduler.wake_at = next;
}

uint64_t Sm::WithRoomInMemory(const Scheduler& scheduler, uint64_t warps, int64_t cycle) {
  const int free = memory_.FreeLines(cycle);
  if (free >= kMaxLines) return warps;
  uint64_t room = 0;
  for (uint64_t left = free == 0 ? 0 : warps; left != 0; left &= left - 1) {
    const int bit = std::countr_zero(left);
    if (scheduler.warps[static_cast<size_t>(bit)].next().lines <= free) room |= Bit(bit);
  }
  return room;
}

uint64_t Sm::WithFreeUnit(Scheduler& scheduler, int64_t cycle) {
  uint64_t free = scheduler.next_is[static_cast<size_t>(OpKind::kBarrier)];
  for (size_t kind = 0; kind <= static_cast<size_t>(OpKind::kControl); ++kind) {
    if (scheduler.unit_free[kind] <= cycle) free |= scheduler.next_is[kind];
  }
  if (memory_.CanTakeShared(cycle)) {
    free |= scheduler.next_is[static_cast<size_t>(OpKind::kShared)];
  }
  const uint64_t accesses =
      scheduler.ready & (scheduler.next_is[static_cast<size_t>(OpKind::kLoad)] |
                         scheduler.next_is[static_cast<size_t>(OpKind::kStore)]);
  if (accesses != 0) free |= WithRoomInMemory(scheduler, accesses, cycle);
  return free;
}

bool Sm::Step(int index, int64_t cycle) {
  Scheduler& scheduler = schedulers_[static_cast<size_t>(index)];
  if (scheduler.pool.live == 0) return false;
  Wake(scheduler, cycle);
  const uint64_t ready =
      scheduler.ready == 0 ? 0 : scheduler.ready & WithFreeUnit(scheduler, cycle);
  const int bit = scheduler.issue.Issue(scheduler.pool, ready);
  if (bit == kNone) return false;
  Dispatch(index, bit, cycle);
  return true;
}

int64_t Sm::Access(const WarpContext& warp, const Op& op, int64_t cycle) {
  const Kernel& kernel = kernels_[static_cast<size_t>(warp.launch)];
  const uint64_t address =
      kernel.address + (static_cast<uint64_t>(op.region) << kRegionBits) + warp.OffsetOf(op);
  const AccessShape shape = {op.lines, op.sectors, op.line_stride};
  if (op.kind == OpKind::kLoad) return memory_.Load(cycle, address, shape);
  memory_.Store(cycle, address, shape);
  return cycle + 1;  // no register waits for a store
}

int64_t Sm::BankAccess(const WarpContext& warp, const Op& op, int64_t cycle) {
  int passes = op.ways_min;
  if (op.ways_max > op.ways_min) {
    // A function of the access alone, so that every policy runs the same work.
    const uint64_t access = (static_cast<uint64_t>(warp.block) << 40) ^
                            (static_cast<uint64_t>(warp.warp) << 34) ^
                            (static_cast<uint64_t>(warp.launch) << 60) ^ warp.issued;
    core::Random random(options_.seed ^ core::Random(access).Next());
    passes +=
        static_cast<int>(random.Next() % static_cast<uint64_t>(op.ways_max - op.ways_min + 1));
  }
  const UnitTiming timing = options_.machine.units[static_cast<size_t>(OpKind::kShared)];
  return memory_.Shared(cycle, passes, op.latency >= 0 ? op.latency : timing.latency);
}

int64_t Sm::Execute(Scheduler& scheduler, const WarpContext& warp, const Op& op, int64_t cycle) {
  switch (op.kind) {
    case OpKind::kLoad:
    case OpKind::kStore:
      return Access(warp, op, cycle);
    case OpKind::kShared:
      return BankAccess(warp, op, cycle);
    case OpKind::kBarrier:
    case OpKind::kLoopEnd:
      return cycle + 1;
    default:
      break;
  }
  const UnitTiming timing = options_.machine.units[static_cast<size_t>(op.kind)];
  scheduler.unit_free[static_cast<size_t>(op.kind)] =
      cycle + (op.interval >= 0 ? op.interval : timing.interval);
  return cycle + (op.latency >= 0 ? op.latency : timing.latency);
}

void Sm::Dispatch(int index, int bit, int64_t cycle) {
  Scheduler& scheduler = schedulers_[static_cast<size_t>(index)];
  WarpContext& warp = scheduler.warps[static_cast<size_t>(bit)];
  const Op& op = warp.next();
  const bool is_barrier = op.kind == OpKind::kBarrier;
  KernelResult& kernel = result_.kernels[static_cast<size_t>(warp.launch)];
  kernel.last_issue_cycle = cycle;
  ++kernel.instructions;
  ++result_.instructions;
  if (options_.log != nullptr && options_.log->size() < options_.log_max) {
    options_.log->push_back(
        {cycle, index, warp.launch, scheduler.pool.id[static_cast<size_t>(bit)]});
  }
  scheduler.ready &= ~Bit(bit);
  scheduler.next_is[static_cast<size_t>(op.kind)] &= ~Bit(bit);
  warp.Advance(cycle, Execute(scheduler, warp, op, cycle));
  Block& block = blocks_[static_cast<size_t>(warp.block_entry)];
  if (warp.has_ended()) {
    EndWarp(scheduler, bit, cycle);
  } else if (!is_barrier) {
    WaitFor(scheduler, bit);
  } else {
    scheduler.next_is[static_cast<size_t>(warp.next().kind)] |= Bit(bit);
    ++block.at_barrier;
  }
  if (block.at_barrier > 0 && block.at_barrier == block.warps_left) ReleaseBarrier(block, cycle);
}

void Sm::ReleaseBarrier(Block& block, int64_t cycle) {
  block.at_barrier = 0;
  for (const int slot : block.slots) {
    Scheduler& scheduler = SchedulerOf(slot);
    const int bit = BitOf(slot);
    if ((scheduler.pool.live & Bit(bit)) == 0) continue;
    WarpContext& warp = scheduler.warps[static_cast<size_t>(bit)];
    warp.ready_at = std::max(warp.ready_at, cycle + 1);
    WaitFor(scheduler, bit);
  }
}

void Sm::EndWarp(Scheduler& scheduler, int bit, int64_t cycle) {
  const WarpContext& warp = scheduler.warps[static_cast<size_t>(bit)];
  Block& block = blocks_[static_cast<size_t>(warp.block_entry)];
  Kernel& kernel = kernels_[static_cast<size_t>(warp.launch)];
  KernelResult& result = result_.kernels[static_cast<size_t>(warp.launch)];
  result.end_cycle = std::max(result.end_cycle, warp.complete_at);
  scheduler.pool.live &= ~Bit(bit);
  ++scheduler.pool.changes;
  for (uint64_t& group : scheduler.pool.group) group &= ~Bit(bit);
  --resident_warps_;
  if (--block.warps_left > 0) return;
  block.used = false;
  --kernel.resident;
  for (const int slot : block.slots) slot_used_[static_cast<size_t>(slot)] = false;
  free_slots_ += static_cast<int>(block.slots.size());
  place_at_ = cycle + 1;
}

int64_t Sm::NextCycle(int64_t cycle) {
  int64_t next = place_at_;
  int fewest = kMaxLines + 1;  // lines that a ready warp asks for; 0 for shared memory
  for (const Scheduler& scheduler : schedulers_) {
    if (scheduler.waiting != 0) next = std::min(next, scheduler.wake_at);
    if (scheduler.ready == 0) continue;
    // A warp is ready and its unit is not.
    for (size_t kind = 0; kind <= static_cast<size_t>(OpKind::kControl); ++kind) {
      if ((scheduler.ready & scheduler.next_is[kind]) != 0) {
        next = std::min(next, scheduler.unit_free[kind]);
      }
    }
    if ((scheduler.ready & scheduler.next_is[static_cast<size_t>(OpKind::kShared)]) != 0)
      fewest = 0;
    for (uint64_t left = scheduler.ready & Accesses(scheduler.next_is); left != 0 && fewest > 1;
         left &= left - 1) {
      const auto bit = static_cast<size_t>(std::countr_zero(left));
      fewest = std::min<int>(fewest, scheduler.warps[bit].next().lines);
    }
  }
  if (fewest <= kMaxLines) next = std::min(next, memory_.NextRoom(cycle, fewest));
  return std::max(next, cycle + 1);
}

void Sm::Idle(int64_t cycles) {
  for (Scheduler& scheduler : schedulers_) {
    if (scheduler.pool.live != 0) scheduler.issue.Idle(scheduler.pool, cycles);
  }
}

}  // namespace gpushare::sim::warp
