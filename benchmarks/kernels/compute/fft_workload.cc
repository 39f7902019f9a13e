// The workload of fft: a batch of transforms far larger than L2.

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <memory>

#include "benchmarks/kernels/compute/fft.h"
#include "benchmarks/kernels/compute/sizing.h"
#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr double kTransformBytes = 2.0 * sizeof(float) * kFftPoints;  // read, and as many written
constexpr double kInputBytesMax = 1 << 30;
constexpr double kPi = 3.14159265358979323846;

class FftWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& kernel, const WorkloadOptions& options) {
    seed_ = options.seed;
    const double bytes_per_block_task = kReferenceDramBytesPerUs * options.block_task_us /
                                        (options.sms * static_cast<double>(kernel.workers_per_sm));
    transforms_ = WholeSteps(bytes_per_block_task / (2 * kTransformBytes), 1);
    grid_.x = CountBlockTasks(options, options.block_task_us, kernel.workers_per_sm);
    const auto ring_max =
        static_cast<uint32_t>(std::max(1.0, kInputBytesMax / (kTransformBytes * transforms_)));
    distinct_block_tasks_ = RingOf(options, grid_.x, ring_max);
    const uint64_t points = static_cast<uint64_t>(distinct_block_tasks_) * transforms_ * kFftPoints;
    Status status = input_.Allocate(points * 2 * sizeof(float));
    if (status.ok()) status = input_.FillUniform(seed_, -1.0F, 1.0F);
    if (status.ok()) status = AllocateOutput(points, 2);
    if (!status.ok()) return status;
    for (uint32_t i = 0; i < kFftPoints; ++i) {
      roots_[i] = std::polar(1.0, -2 * kPi * i / kFftPoints);
    }
    work_per_block_task_ = 2 * kTransformBytes * transforms_;
    // A pass errs by 2.5e-6 of a value: its root (3.6e-7 of the intrinsics in either part) cubed,
    // 1.9e-6, and the roundings of two products and three sums. A pass keeps norms but for a
    // factor, so that the error of one result is below 5 passes * 2.5e-6 of the norm of all, which
    // is 1024 * sqrt(2 / 3) = 836 and hardly varies.
    tolerance_ = kFftPasses * 2.5e-6 * 860;
    reference_ns_ = kFftPoints * 10.0;
    SetParams(FftParams{input_.as<const float>(), output_.as<float>(), distinct_block_tasks_,
                        transforms_});
    return {};
  }

 private:
  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const auto first = static_cast<uint32_t>(index / kFftPoints * kFftPoints);
    const auto k = static_cast<uint32_t>(index % kFftPoints);
    std::complex<double> sum = 0;
    for (uint32_t n = 0; n < kFftPoints; ++n) {
      const std::complex<double> value(Uniform(seed_, 2 * (first + n), -1.0F, 1.0F),
                                       Uniform(seed_, 2 * (first + n) + 1, -1.0F, 1.0F));
      sum += value * roots_[n * k % kFftPoints];
    }
    expected[0] = sum.real();
    expected[1] = sum.imag();
  }

  DeviceBuffer input_;
  uint32_t transforms_ = 0;
  std::array<std::complex<double>, kFftPoints> roots_ = {};
};

}  // namespace

extern const WorkloadMaker kMakeFft = MakeAs<FftWorkload>;

}  // namespace gpushare::kernels
