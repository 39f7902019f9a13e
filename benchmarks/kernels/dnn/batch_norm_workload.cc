// The workload of batch_norm.

#include <cmath>
#include <memory>

#include "benchmarks/kernels/dnn/affine_workload.h"
#include "kernels/dnn/batch_norm.h"

namespace gpushare::kernels {
namespace {

constexpr float kEpsilon = 1e-5F;

class BatchNormWorkload : public AffineWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    AffineTensor tensor = {};
    Status status = MakeTensor(kernel, options, &tensor);
    if (status.ok()) status = FillChannels(&gamma_, seed_ + 1, kGammaMin, kGammaMax);
    if (status.ok()) status = FillChannels(&beta_, seed_ + 2, -1.0F, 1.0F);
    if (status.ok()) status = FillChannels(&mean_, seed_ + 3, -1.0F, 1.0F);
    if (status.ok()) status = FillChannels(&variance_, seed_ + 4, kVarianceMin, kVarianceMax);
    if (!status.ok()) return status;
    // The factor is below 3 and errs by three roundings (sum, root, quotient), so by 5.4e-7 at
    // most, times a value and a mean below 1 each; shift and result, below 4 and 7, are rounded
    // once.
    tolerance_ = 2e-6;
    SetParams(BatchNormParams{tensor, gamma_.as<const float>(), beta_.as<const float>(),
                              mean_.as<const float>(), variance_.as<const float>(), kEpsilon});
    return {};
  }

 private:
  static constexpr float kGammaMin = 0.5F;
  static constexpr float kGammaMax = 1.5F;
  static constexpr float kVarianceMin = 0.25F;
  static constexpr float kVarianceMax = 4.0F;

  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const uint32_t channel = Channel(index);
    const double gamma = Uniform(seed_ + 1, channel, kGammaMin, kGammaMax);
    const double beta = Uniform(seed_ + 2, channel, -1.0F, 1.0F);
    const double mean = Uniform(seed_ + 3, channel, -1.0F, 1.0F);
    const double variance = Uniform(seed_ + 4, channel, kVarianceMin, kVarianceMax);
    expected[0] = gamma * (Value(index) - mean) / std::sqrt(variance + kEpsilon) + beta;
  }

  DeviceBuffer gamma_;
  DeviceBuffer beta_;
  DeviceBuffer mean_;
  DeviceBuffer variance_;
};

}  // namespace

extern const WorkloadMaker kMakeBatchNorm = MakeAs<BatchNormWorkload>;

}  // namespace gpushare::kernels
