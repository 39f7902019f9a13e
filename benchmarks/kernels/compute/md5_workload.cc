// The workload of md5.

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "benchmarks/kernels/compute/md5.h"
#include "benchmarks/kernels/compute/md5_reference.h"
#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/workload_base.h"
#include "kernels/warp.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kRing = 32768;  // 4 MB of digests
// 64 steps of a logic instruction, a three-input addition and a rotation with addition. Beside them
// 16 additions of a message word that is not constant, 4 at the end: those of two numbers have
// another pipe, so they make a hash longer, but are not in the bound.
constexpr double kBoundPerHash = 64 * 3;
constexpr double kInstructionsPerHash = kBoundPerHash + 16 + 4;
constexpr double kInstructionsPerClock = 64;

class Md5Workload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& /*kernel*/, const WorkloadOptions& options) {
    seed_ = options.seed;
    const double hashes_per_us = kReferenceClockMhz * kInstructionsPerClock /
                                 (kInstructionsPerHash * kReferenceWorkersPerSm * kThreadsPerBlock);
    iterations_ =
        std::max(1U, static_cast<uint32_t>(std::lround(options.block_task_us * hashes_per_us)));
    grid_.x = CountBlockTasks(options, options.block_task_us);
    distinct_block_tasks_ = RingOf(options, grid_.x, kRing);
    const Status status = AllocateOutput(
        static_cast<uint64_t>(distinct_block_tasks_) * kThreadsPerBlock / kWarpThreads, 4);
    if (!status.ok()) return status;
    work_per_block_task_ = iterations_ * kBoundPerHash * kThreadsPerBlock;
    integers_ = true;
    tolerance_ = 0;
    reference_ns_ = iterations_ * 400.0 * kWarpThreads;
    SetParams(Md5Params{output_.as<uint32_t>(), distinct_block_tasks_, iterations_, seed_});
    return {};
  }

 private:
  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    std::array<uint32_t, 4> all = {};
    for (uint32_t lane = 0; lane < kWarpThreads; ++lane) {
      const uint32_t thread = static_cast<uint32_t>(index) * kWarpThreads + lane;
      std::array<uint32_t, 4> digest = {};
      for (uint32_t w = 0; w < 4; ++w) digest[w] = Hash(seed_, 4 * thread + w);
      for (uint32_t i = 0; i < iterations_; ++i) digest = Md5Of16Bytes(digest);
      for (uint32_t w = 0; w < 4; ++w) all[w] ^= digest[w];
    }
    for (uint32_t w = 0; w < 4; ++w) expected[w] = all[w];
  }

  uint32_t iterations_ = 0;
};

}  // namespace

extern const WorkloadMaker kMakeMd5 = MakeAs<Md5Workload>;

}  // namespace gpushare::kernels
