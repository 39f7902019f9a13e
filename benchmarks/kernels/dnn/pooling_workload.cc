// The workloads of pooling, by maximum and by average. The last plane ends where the last strip
// does.

#include <algorithm>
#include <memory>

#include "benchmarks/kernels/dnn/sizes.h"
#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/workload_base.h"
#include "kernels/dnn/pooling.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kSide = 64;  // of an input plane
constexpr uint32_t kRows = 8;   // of results in a strip; one input row of 17 is read twice, from L1
constexpr uint32_t kStripsPerPlane = kSide / (2 * kRows);
constexpr uint32_t kGroups = kSide / 4;
constexpr uint32_t kStripsPerPass = kThreadsPerBlock / kGroups;  // all threads have an item

class PoolingWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options, bool average) {
    seed_ = options.seed;
    average_ = average;
    // One result for four values.
    const double bytes_per_strip = 1.25 * sizeof(float) * kSide * 2 * kRows;
    const uint32_t strips = kStripsPerPass * UnitsPerBlockTask(options, kernel.workers_per_sm,
                                                               bytes_per_strip * kStripsPerPass);
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    work_per_block_task_ = bytes_per_strip * strips;
    distinct_block_tasks_ = DnnRing(options, grid_.x, work_per_block_task_);
    const uint64_t all_strips = static_cast<uint64_t>(distinct_block_tasks_) * strips;
    const uint64_t planes = (all_strips + kStripsPerPlane - 1) / kStripsPerPlane;
    Status status = input_.Allocate(planes * kSide * kSide * sizeof(float));
    if (status.ok()) status = input_.FillUniform(seed_, -1.0F, 1.0F);
    if (status.ok()) status = AllocateOutput(all_strips * kRows * (kSide / 2), 1);
    if (!status.ok()) return status;
    // A maximum is exact. Of an average, eight sums below 9 are rounded by 4.8e-7 at most each and
    // divided by 9, then three factors are rounded.
    tolerance_ = average ? 7e-7 : 0;
    reference_ns_ = 120;
    SetParams(PoolingParams{input_.as<const float>(), output_.as<float>(), distinct_block_tasks_,
                            strips, kRows, kSide, kSide, average ? 1U : 0U, MakeDivider(kGroups),
                            MakeDivider(kStripsPerPlane)});
    return {};
  }

 private:
  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const auto column = static_cast<int64_t>(index % (kSide / 2));
    const auto row = static_cast<int64_t>(index / (kSide / 2) % (kSide / 2));
    const uint64_t plane = index / (kSide / 2) / (kSide / 2);
    double sum = 0;
    double largest = -1;
    int inside = 0;
    for (int64_t y = std::max<int64_t>(0, 2 * row - 1); y <= 2 * row + 1; ++y) {
      for (int64_t x = std::max<int64_t>(0, 2 * column - 1); x <= 2 * column + 1; ++x) {
        const uint64_t at =
            (plane * kSide + static_cast<uint64_t>(y)) * kSide + static_cast<uint64_t>(x);
        const double value = Uniform(seed_, static_cast<uint32_t>(at), -1.0F, 1.0F);
        sum += value;
        largest = std::max(largest, value);
        ++inside;
      }
    }
    expected[0] = average_ ? sum / inside : largest;
  }

  DeviceBuffer input_;
  bool average_ = false;
};

}  // namespace

extern const WorkloadMaker kMakeMaxPooling = MakeAs<PoolingWorkload, false>;
extern const WorkloadMaker kMakeAveragePooling = MakeAs<PoolingWorkload, true>;

}  // namespace gpushare::kernels
