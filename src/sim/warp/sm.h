// The state of the SM: resident blocks and warps, units, and what one scheduler does in a cycle.
//
// A warp's slot i belongs to scheduler i mod schedulers (thesis 4.2) and is bit i / schedulers of
// its masks. A warp of a scheduler is ready, waits for a cycle, or waits at a barrier.
// Threads: one at a time.

#ifndef GPUSHARE_SRC_SIM_WARP_SM_H_
#define GPUSHARE_SRC_SIM_WARP_SM_H_

#include <array>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "src/sim/warp/records.h"
#include "src/sim/warp/warp_context.h"

namespace gpushare::sim::warp {

class Sm {
 public:
  // Of inputs that Simulate has checked.
  Sm(const SimulationOptions& options, absl::Span<const KernelLaunch> launches, int64_t l1_bytes);

  // Places the blocks that are due and fit.
  void PlaceBlocks(int64_t cycle);
  // One cycle of one scheduler. Returns whether it issued.
  bool Step(int scheduler, int64_t cycle);
  // After a cycle without an issue: the next one in which something may happen.
  int64_t NextCycle(int64_t cycle);
  // Counts cycles in which no scheduler can issue.
  void Idle(int64_t cycles);
  bool HasWork() const { return resident_warps_ > 0 || blocks_left_ > 0; }

  const SimulationResult& result() const { return result_; }
  const MemoryCounts& memory_counts() const { return memory_.counts(); }

 private:
  struct Scheduler {
    explicit Scheduler(const IssueUnit& unit) : issue(unit) {}
    IssueUnit issue;
    Pool pool;
    uint64_t ready = 0;                           // operands are there
    uint64_t waiting = 0;                         // for a cycle
    int64_t wake_at = 0;                          // the first of these cycles
    std::array<uint64_t, kOpKinds> next_is = {};  // warps by the kind of their next instruction
    std::array<int64_t, kOpKinds> unit_free = {};
    std::array<WarpContext, kMaxWarpsPerScheduler> warps;
  };
  struct Block {
    int launch = 0;
    int warps_left = 0;
    int at_barrier = 0;
    bool used = false;
    std::vector<int> slots;
  };
  struct Kernel {
    KernelLaunch launch;
    int group = 0;
    int64_t next_block = 0;
    int resident = 0;
    uint64_t address = 0;  // of its regions
  };

  bool Fits(const Kernel& kernel) const;
  void PlaceBlock(int launch, int64_t cycle);
  Scheduler& SchedulerOf(int slot) {
    return schedulers_[static_cast<size_t>(slot) % schedulers_.size()];
  }
  int BitOf(int slot) const { return slot / static_cast<int>(schedulers_.size()); }

  void Wake(Scheduler& scheduler, int64_t cycle);
  uint64_t WithFreeUnit(Scheduler& scheduler, int64_t cycle);
  uint64_t WithRoomInMemory(const Scheduler& scheduler, uint64_t warps, int64_t cycle);
  // Executes the warp's next instruction. Returns its completion.
  int64_t Execute(Scheduler& scheduler, const WarpContext& warp, const Op& op, int64_t cycle);
  int64_t Access(const WarpContext& warp, const Op& op, int64_t cycle);
  int64_t BankAccess(const WarpContext& warp, const Op& op, int64_t cycle);
  void Dispatch(int scheduler, int bit, int64_t cycle);
  void WaitFor(Scheduler& scheduler, int bit);
  void ReleaseBarrier(Block& block, int64_t cycle);
  void EndWarp(Scheduler& scheduler, int bit, int64_t cycle);

  const SimulationOptions& options_;
  std::vector<Kernel> kernels_;
  std::vector<Scheduler> schedulers_;
  std::vector<Block> blocks_;
  std::vector<bool> slot_used_;
  Memory memory_;
  int64_t next_warp_id_ = 0;
  int64_t blocks_left_ = 0;
  int resident_warps_ = 0;
  int free_slots_ = 0;
  int64_t place_at_ = 0;  // the next cycle at which a block may be placed
  SimulationResult result_;
};

}  // namespace gpushare::sim::warp

#endif  // GPUSHARE_SRC_SIM_WARP_SM_H_
