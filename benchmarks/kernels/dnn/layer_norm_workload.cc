// The workload of layer_norm.

#include <cmath>
#include <limits>
#include <memory>

#include "benchmarks/kernels/dnn/sizes.h"
#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/workload_base.h"
#include "kernels/dnn/layer_norm.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kLength = kLayerNormLengthMax;
constexpr float kEpsilon = 1e-5F;

class LayerNormWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    const double bytes_per_row = 2.0 * sizeof(float) * kLength;
    const uint32_t rows = kLayerNormRows * UnitsPerBlockTask(options, kernel.workers_per_sm,
                                                             bytes_per_row * kLayerNormRows);
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    work_per_block_task_ = bytes_per_row * rows;
    distinct_block_tasks_ = DnnRing(options, grid_.x, work_per_block_task_);
    const uint64_t floats = static_cast<uint64_t>(distinct_block_tasks_) * rows * kLength;
    Status status = Fill(floats);
    if (status.ok()) status = AllocateOutput(floats, 1);
    if (!status.ok()) return status;
    // 15 roundings on the way to a sum over a row, each of 6e-8 of the values' sizes: the mean errs
    // by 9e-7 at most, the scale (below 1.9) by 6e-7 of itself with the root's two units in the
    // last place. A centred value is below 1.1, gamma below 1.5, a result below 4.2: 9e-7 * 2.9 +
    // 3.2 * 6e-7 + four roundings of 2.4e-7.
    tolerance_ = 5.6e-6;
    reference_ns_ = 60;
    SetParams(LayerNormParams{input_.as<const float>(), gamma_.as<const float>(),
                              beta_.as<const float>(), output_.as<float>(), distinct_block_tasks_,
                              rows, kLength, kEpsilon});
    return {};
  }

 private:
  static constexpr float kGammaMin = 0.5F;
  static constexpr float kGammaMax = 1.5F;

  Status Fill(uint64_t floats) {
    Status status = input_.Allocate(floats * sizeof(float));
    if (status.ok()) status = input_.FillUniform(seed_, -1.0F, 1.0F);
    if (status.ok()) status = gamma_.Allocate(kLength * sizeof(float));
    if (status.ok()) status = gamma_.FillUniform(seed_ + 1, kGammaMin, kGammaMax);
    if (status.ok()) status = beta_.Allocate(kLength * sizeof(float));
    if (status.ok()) status = beta_.FillUniform(seed_ + 2, -1.0F, 1.0F);
    return status;
  }

  double Value(uint64_t index) const {
    return Uniform(seed_, static_cast<uint32_t>(index), -1.0F, 1.0F);
  }

  void FindRow(uint64_t row) const {
    row_ = row;
    double sum = 0;
    for (uint32_t i = 0; i < kLength; ++i) sum += Value(row * kLength + i);
    mean_ = sum / kLength;
    double squares = 0;
    for (uint32_t i = 0; i < kLength; ++i) {
      const double centred = Value(row * kLength + i) - mean_;
      squares += centred * centred;
    }
    scale_ = 1 / std::sqrt(squares / kLength + kEpsilon);
  }

  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const auto column = static_cast<uint32_t>(index % kLength);
    if (index / kLength != row_) FindRow(index / kLength);
    const double gamma = Uniform(seed_ + 1, column, kGammaMin, kGammaMax);
    const double beta = Uniform(seed_ + 2, column, -1.0F, 1.0F);
    expected[0] = gamma * (Value(index) - mean_) * scale_ + beta;
  }

  DeviceBuffer input_;
  DeviceBuffer gamma_;
  DeviceBuffer beta_;
  // The row that the last record was of: records are checked in runs.
  mutable uint64_t row_ = std::numeric_limits<uint64_t>::max();
  mutable double mean_ = 0;
  mutable double scale_ = 0;
};

}  // namespace

extern const WorkloadMaker kMakeLayerNorm = MakeAs<LayerNormWorkload>;

}  // namespace gpushare::kernels
