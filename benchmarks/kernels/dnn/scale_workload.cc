// The workload of scale.

#include <memory>

#include "benchmarks/kernels/dnn/affine_workload.h"
#include "kernels/dnn/scale.h"

namespace gpushare::kernels {
namespace {

class ScaleWorkload : public AffineWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    AffineTensor tensor = {};
    Status status = MakeTensor(kernel, options, &tensor);
    if (status.ok()) status = FillChannels(&gamma_, seed_ + 1, kGammaMin, kGammaMax);
    if (status.ok()) status = FillChannels(&beta_, seed_ + 2, -1.0F, 1.0F);
    if (!status.ok()) return status;
    tolerance_ = 1.2e-7;  // one rounding of a value below 4
    SetParams(ScaleParams{tensor, gamma_.as<const float>(), beta_.as<const float>()});
    return {};
  }

 private:
  static constexpr float kGammaMin = 0.5F;
  static constexpr float kGammaMax = 1.5F;

  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const uint32_t channel = Channel(index);
    const double gamma = Uniform(seed_ + 1, channel, kGammaMin, kGammaMax);
    const double beta = Uniform(seed_ + 2, channel, -1.0F, 1.0F);
    expected[0] = gamma * Value(index) + beta;
  }

  DeviceBuffer gamma_;
  DeviceBuffer beta_;
};

}  // namespace

extern const WorkloadMaker kMakeScale = MakeAs<ScaleWorkload>;

}  // namespace gpushare::kernels
