// The workload of softmax.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "benchmarks/kernels/dnn/sizes.h"
#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/workload_base.h"
#include "kernels/dnn/softmax.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kLength = kSoftmaxLengthMax;

class SoftmaxWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    const double bytes_per_row = 2.0 * sizeof(float) * kLength;
    const uint32_t rows = kSoftmaxWarps * UnitsPerBlockTask(options, kernel.workers_per_sm,
                                                            bytes_per_row * kSoftmaxWarps);
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    work_per_block_task_ = bytes_per_row * rows;
    distinct_block_tasks_ = DnnRing(options, grid_.x, work_per_block_task_);
    const uint64_t floats = static_cast<uint64_t>(distinct_block_tasks_) * rows * kLength;
    Status status = input_.Allocate(floats * sizeof(float));
    if (status.ok()) status = input_.FillUniform(seed_, kLow, kHigh);
    if (status.ok()) status = AllocateOutput(floats, 1);
    if (!status.ok()) return status;
    // A difference below 8, its product with log2(e) and ex2.approx make an exponential err by
    // 1.3e-6 of itself; so does the sum, and its 25 roundings, the quotient and the product make
    // that 4.4e-6. The largest result of 512 values in [-4, 4) is below 0.028: e^4 over a sum whose
    // mean is 3,490 and whose standard deviation is 300.
    tolerance_ = 1.3e-7;
    reference_ns_ = 60;
    SetParams(SoftmaxParams{input_.as<const float>(), output_.as<float>(), distinct_block_tasks_,
                            rows, kLength});
    return {};
  }

 private:
  static constexpr float kLow = -4.0F;
  static constexpr float kHigh = 4.0F;

  double Value(uint64_t index) const {
    return Uniform(seed_, static_cast<uint32_t>(index), kLow, kHigh);
  }

  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const uint64_t row = index / kLength;
    if (row != row_) {
      row_ = row;
      sum_ = 0;
      for (uint32_t i = 0; i < kLength; ++i) sum_ += std::exp(Value(row * kLength + i));
    }
    expected[0] = std::exp(Value(index)) / sum_;
  }

  DeviceBuffer input_;
  // The row that the last record was of: records are checked in runs.
  mutable uint64_t row_ = std::numeric_limits<uint64_t>::max();
  mutable double sum_ = 0;
};

}  // namespace

extern const WorkloadMaker kMakeSoftmax = MakeAs<SoftmaxWorkload>;

}  // namespace gpushare::kernels
