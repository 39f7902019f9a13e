// The workload of tpacf: the partners of a direction follow the wanted length of a block task.

#include <algorithm>
#include <memory>
#include <vector>

#include "benchmarks/kernels/compute/sizing.h"
#include "benchmarks/kernels/compute/tpacf.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kRing = 65536;  // 2 MB of results
constexpr uint32_t kBinsPerRecord = 4;
constexpr double kInstructionsPerPair = 3 + 2.0 * kTpacfBins;
constexpr uint32_t kPartnersStep = 4;
constexpr uint32_t kPartnersMax = 65532;  // a block's counts stay below 2^24, exact in float32

class TpacfWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    const double instructions =
        PerThread(options.block_task_us, kFfmaPerClock, kernel.workers_per_sm);
    const uint32_t partners =
        std::min(kPartnersMax, WholeSteps(instructions / kInstructionsPerPair, kPartnersStep));
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    distinct_block_tasks_ = RingOf(options, grid_.x, kRing);
    const Status status = AllocateOutput(
        static_cast<uint64_t>(distinct_block_tasks_) * kTpacfBins / kBinsPerRecord, kBinsPerRecord);
    if (!status.ok()) return status;
    partners_.reserve(partners);
    for (uint32_t i = 0; i < partners; ++i) {
      partners_.push_back(TpacfDirectionOf(TpacfPartnerSeed(seed_), i));
    }
    work_per_block_task_ = kInstructionsPerPair * partners * kThreadsPerBlock;
    integers_ = true;
    tolerance_ = 0;
    reference_ns_ = 20.0 * partners * kThreadsPerBlock;
    SetParams(TpacfParams{output_.as<uint32_t>(), distinct_block_tasks_, partners, seed_});
    return {};
  }

 private:
  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    constexpr uint32_t kRecordsPerSlot = kTpacfBins / kBinsPerRecord;
    const auto first = static_cast<uint32_t>(index / kRecordsPerSlot) * kThreadsPerBlock;
    const uint32_t first_bin = static_cast<uint32_t>(index % kRecordsPerSlot) * kBinsPerRecord;
    for (uint32_t i = 0; i < kThreadsPerBlock; ++i) {
      const TpacfDirection mine = TpacfDirectionOf(seed_, first + i);
      for (const TpacfDirection& partner : partners_) {
        const float cosine = TpacfProduct(mine, partner);
        for (uint32_t bin = 0; bin < kBinsPerRecord; ++bin) {
          if (cosine > TpacfCosine(first_bin + bin)) expected[bin] += 1;
        }
      }
    }
  }

  std::vector<TpacfDirection> partners_;
};

}  // namespace

extern const WorkloadMaker kMakeTpacf = MakeAs<TpacfWorkload>;

}  // namespace gpushare::kernels
