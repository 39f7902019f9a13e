// The workload of tea.

#include <memory>

#include "benchmarks/kernels/compute/sizing.h"
#include "benchmarks/kernels/compute/tea.h"
#include "benchmarks/kernels/workload_base.h"
#include "kernels/warp.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kRing = 65536;  // 4 MB of results
// A cycle is two half cycles of: shift and add a key, twice; xor three. Additions of two numbers,
// of the sum and to the block, are instructions that other pipes execute (VIADD and IMAD in
// the machine code of compute capability 9.0).
constexpr double kInstructionsPerBlock = 2.0 * 3 * kTeaCycles;

class TeaWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    const double instructions =
        PerThread(options.block_task_us, kIntegerPerClock, kernel.workers_per_sm);
    iterations_ = WholeSteps(instructions / kInstructionsPerBlock, 1);
    key_ = {Hash(seed_, 0xFFFFFFF0U), Hash(seed_, 0xFFFFFFF1U), Hash(seed_, 0xFFFFFFF2U),
            Hash(seed_, 0xFFFFFFF3U)};
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    distinct_block_tasks_ = RingOf(options, grid_.x, kRing);
    const Status status = AllocateOutput(
        static_cast<uint64_t>(distinct_block_tasks_) * kThreadsPerBlock / kWarpThreads, 2);
    if (!status.ok()) return status;
    work_per_block_task_ = iterations_ * kInstructionsPerBlock * kThreadsPerBlock;
    integers_ = true;
    tolerance_ = 0;
    reference_ns_ = iterations_ * 150.0 * kWarpThreads;
    SetParams(TeaParams{output_.as<uint32_t>(), distinct_block_tasks_, iterations_, seed_, key_});
    return {};
  }

 private:
  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    TeaBlock all = {0, 0};
    for (uint32_t lane = 0; lane < kWarpThreads; ++lane) {
      const uint32_t thread = static_cast<uint32_t>(index) * kWarpThreads + lane;
      TeaBlock block = {Hash(seed_, 2 * thread), Hash(seed_, 2 * thread + 1)};
      for (uint32_t i = 0; i < iterations_; ++i) block = TeaEncipher(block, key_);
      all = {all.v0 ^ block.v0, all.v1 ^ block.v1};
    }
    expected[0] = all.v0;
    expected[1] = all.v1;
  }

  uint32_t iterations_ = 0;
  TeaKey key_ = {};
};

}  // namespace

extern const WorkloadMaker kMakeTea = MakeAs<TeaWorkload>;

}  // namespace gpushare::kernels
