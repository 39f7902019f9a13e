// The workload of spmv.

#include <cmath>
#include <memory>

#include "benchmarks/kernels/block_task_share.h"
#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/irregular/inputs.h"
#include "benchmarks/kernels/irregular/spmv.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr double kInputBytesMax = 1 << 30;
constexpr double kMatrixBytes = 8;   // of an element: its column and its value
constexpr double kSectorBytes = 32;  // of x, of which it uses four
constexpr double kL2BytesPerGroup = (kMatrixBytes + kSectorBytes) * SpmvShape::kGroupElements;
constexpr uint32_t kVectorSeed = 1;
constexpr uint32_t kColumnSeed = 2;

class SpmvWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    const double bytes = BlockTaskBytes(options, kReferenceL2BytesPerUs, kernel.workers_per_sm);
    const uint32_t groups = WholeUnits(bytes, kL2BytesPerGroup);
    distinct_block_tasks_ = RingWithin(options, grid_.x, kInputBytesMax,
                                       kMatrixBytes * SpmvShape::kGroupElements * groups);
    const uint32_t rows = distinct_block_tasks_ * groups * SpmvShape::kGroup;
    const Status status = Fill(rows);
    if (!status.ok()) return status;
    work_per_block_task_ = kL2BytesPerGroup * groups;
    // Products and sums: three roundings in a lane and five levels of the warp's sum, at each all
    // magnitudes together below 96 * 2^-24.
    tolerance_ = 5e-5;
    reference_ns_ = 2500;
    SetParams(SpmvParams{begins_.as<const uint32_t>(), columns_.as<const uint32_t>(),
                         values_.as<const float>(), x_.as<const float>(), output_.as<float>(),
                         groups * SpmvShape::kGroup, distinct_block_tasks_});
    return {};
  }

 private:
  Status Fill(uint32_t rows) {
    const size_t elements =
        static_cast<size_t>(rows / SpmvShape::kGroup) * SpmvShape::kGroupElements;
    Status status = begins_.Allocate((static_cast<size_t>(rows) + 1) * sizeof(uint32_t));
    if (status.ok()) status = columns_.Allocate(elements * sizeof(uint32_t));
    if (status.ok()) status = FillSpmv(seed_, rows, begins_, columns_);
    if (status.ok()) status = values_.Allocate(elements * sizeof(float));
    if (status.ok()) status = values_.FillUniform(seed_, -1.0F, 1.0F);
    if (status.ok()) status = x_.Allocate(kSpmvVectorLength * sizeof(float));
    if (status.ok()) status = x_.FillUniform(seed_ + kVectorSeed, -1.0F, 1.0F);
    if (status.ok()) status = AllocateOutput(rows, 1);
    return status;
  }

  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const auto row = static_cast<uint32_t>(index);
    const uint32_t begin = SpmvShape::Begin(seed_, row);
    const uint32_t end = begin + SpmvShape::Length(seed_, row);
    for (uint32_t e = begin; e < end; ++e) {
      const uint32_t column = SpmvColumn(seed_ + kColumnSeed, e);
      expected[0] += static_cast<double>(Uniform(seed_, e, -1.0F, 1.0F)) *
                     static_cast<double>(Uniform(seed_ + kVectorSeed, column, -1.0F, 1.0F));
    }
  }

  DeviceBuffer begins_;
  DeviceBuffer columns_;
  DeviceBuffer values_;
  DeviceBuffer x_;
};

}  // namespace

extern const WorkloadMaker kMakeSpmv = MakeAs<SpmvWorkload>;

}  // namespace gpushare::kernels
