// The workload of black_scholes.

#include <algorithm>
#include <cmath>
#include <memory>

#include "benchmarks/kernels/hash.h"
#include "benchmarks/kernels/memory/black_scholes.h"
#include "benchmarks/kernels/workload_base.h"

namespace gpushare::kernels {
namespace {

constexpr double kBytesPerOption = 20;  // three numbers in, two out
constexpr double kBytesMax = 2.0 * (1 << 30);
constexpr float kRate = 0.02F;
constexpr float kVolatility = 0.30F;

double Normal(double d) { return 0.5 * std::erfc(-d / std::sqrt(2.0)); }

class BlackScholesWorkload : public RecordWorkload {
 public:
  Status Make(const CatalogueKernel& /*kernel*/, const WorkloadOptions& options) {
    seed_ = options.seed;
    const double bytes_per_pass = kBytesPerOption * kOptionsPerPass;
    const double bytes_per_block_task =
        kReferenceDramBytesPerUs * options.block_task_us / (options.sms * kReferenceWorkersPerSm);
    const uint32_t passes =
        std::max(1U, static_cast<uint32_t>(std::lround(bytes_per_block_task / bytes_per_pass)));
    grid_.x = CountBlockTasks(options, options.block_task_us);
    distinct_block_tasks_ =
        RingOf(options, grid_.x, static_cast<uint32_t>(kBytesMax / (bytes_per_pass * passes)));
    const uint64_t count = static_cast<uint64_t>(distinct_block_tasks_) * passes * kOptionsPerPass;
    Status status = Fill(count);
    if (status.ok()) status = AllocateOutput(count, 2);
    if (!status.ok()) return status;
    work_per_block_task_ = bytes_per_pass * passes;
    // d1 and d2 err by up to about 3e-6 (fast logarithm and divisions, over a volatility of 0.15 or
    // more), the distribution by 0.4 of that and its polynomial by 7.5e-8, each times prices below
    // 30; rounding of the sums adds less than 1e-5.
    tolerance_ = 2e-4;
    reference_ns_ = 200;
    SetParams(BlackScholesParams{price_.as<const float>(), strike_.as<const float>(),
                                 years_.as<const float>(), output_.as<float>(),
                                 distinct_block_tasks_, passes, kRate, kVolatility});
    return {};
  }

 private:
  static constexpr float kPriceMin = 5.0F;
  static constexpr float kPriceMax = 30.0F;
  static constexpr float kYearsMin = 0.25F;
  static constexpr float kYearsMax = 10.0F;

  Status Fill(uint64_t count) {
    const size_t bytes = count * sizeof(float);
    Status status = price_.Allocate(bytes);
    if (status.ok()) status = price_.FillUniform(seed_, kPriceMin, kPriceMax);
    if (status.ok()) status = strike_.Allocate(bytes);
    if (status.ok()) status = strike_.FillUniform(seed_ + 1, kPriceMin, kPriceMax);
    if (status.ok()) status = years_.Allocate(bytes);
    if (status.ok()) status = years_.FillUniform(seed_ + 2, kYearsMin, kYearsMax);
    return status;
  }

  void Reference(uint64_t index, double expected[kRecordWordsMax]) const override {
    const uint32_t at = static_cast<uint32_t>(index);
    const double price = Uniform(seed_, at, kPriceMin, kPriceMax);
    const double strike = Uniform(seed_ + 1, at, kPriceMin, kPriceMax);
    const double years = Uniform(seed_ + 2, at, kYearsMin, kYearsMax);
    const double rate = kRate;
    const double volatility = kVolatility;
    const double root = std::sqrt(years);
    const double d1 = (std::log(price / strike) + (rate + 0.5 * volatility * volatility) * years) /
                      (volatility * root);
    const double d2 = d1 - volatility * root;
    const double discounted = strike * std::exp(-rate * years);
    expected[0] = price * Normal(d1) - discounted * Normal(d2);
    expected[1] = discounted * Normal(-d2) - price * Normal(-d1);
  }

  DeviceBuffer price_;
  DeviceBuffer strike_;
  DeviceBuffer years_;
};

}  // namespace

extern const WorkloadMaker kMakeBlackScholes = MakeAs<BlackScholesWorkload>;

}  // namespace gpushare::kernels
