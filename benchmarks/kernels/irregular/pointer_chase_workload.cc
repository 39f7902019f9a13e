// The workload of pointer_chase.

#include <cmath>
#include <memory>

#include "benchmarks/kernels/block_task_share.h"
#include "benchmarks/kernels/irregular/inputs.h"
#include "benchmarks/kernels/irregular/pointer_chase.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kRing = 1U << 20;  // 32 MB of ends
// Measured on the reference GPU with a load of every warp on its way, 8 workers an SM, in this
// list: its links are 4 Mi sectors, 128 MB, scattered over 512 MB. L2 (60 MB) holds a part of the
// sectors, so a hop is shorter than a load that misses L2 always.
constexpr double kHopNs = 380;

class PointerChaseWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    const uint32_t hops = WholeUnits(options.block_task_us * 1000, kHopNs);
    distinct_block_tasks_ = RingOf(options, grid_.x, kRing);
    Status status =
        links_.Allocate(static_cast<size_t>(kChaseNodes) * kChaseNodeWords * sizeof(uint32_t));
    if (status.ok()) status = FillChase(seed_, links_);
    if (status.ok()) {
      status = AllocateOutput(static_cast<uint64_t>(distinct_block_tasks_) * kChaseWarps, 1);
    }
    if (!status.ok()) return status;
    hops_ = hops;
    work_per_block_task_ = kHopNs * hops;
    integers_ = true;
    tolerance_ = 0;
    reference_ns_ = 100;
    SetParams(PointerChaseParams{links_.as<const uint32_t>(), output_.as<uint32_t>(), hops,
                                 distinct_block_tasks_, seed_});
    return {};
  }

 private:
  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const uint32_t start = ChaseStart(seed_, static_cast<uint32_t>(index));
    expected[0] = ChaseAfter(ChaseCycleOf(seed_), start, hops_);
  }

  DeviceBuffer links_;
  uint32_t hops_ = 0;
};

}  // namespace

extern const WorkloadMaker kMakePointerChase = MakeAs<PointerChaseWorkload>;

}  // namespace gpushare::kernels
