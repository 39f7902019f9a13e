// A line from repeats; see solo_line.h.

#include "src/models/training/solo_line.h"

#include <algorithm>
#include <cstddef>

#include "absl/functional/function_ref.h"
#include "src/models/durations/prior.h"

namespace gpushare::models {
namespace {

// The clocks of two runs differ by as much, whatever the repeats of one say.
constexpr double kErrorLeast = 0.01;

using SeeSample = absl::FunctionRef<void(int64_t block_tasks, double ns)>;

void ForEachInTurn(absl::Span<const SoloSize> sizes, SeeSample see) {
  size_t repeats = 0;
  for (const SoloSize& size : sizes) repeats = std::max(repeats, size.ns.size());
  for (size_t i = 0; i < repeats; ++i) {
    for (const SoloSize& size : sizes) {
      if (i < size.ns.size()) see(size.block_tasks, static_cast<double>(size.ns[i]));
    }
  }
}

}  // namespace

LinearState TrainSolo(const core::DeviceProfile& device, const core::KernelDesc& kernel,
                      absl::Span<const SoloSize> sizes) {
  const KernelPrior prior(device, kernel);
  LinearModel line;
  ForEachInTurn(sizes, [&](int64_t block_tasks, double ns) {
    line.Observe(static_cast<double>(block_tasks), ns, prior.NsOf(block_tasks));
  });
  double squares = 0;
  double samples = 0;
  ForEachInTurn(sizes, [&](int64_t block_tasks, double ns) {
    const core::Prediction predicted =
        line.Predict(static_cast<double>(block_tasks), prior.NsOf(block_tasks));
    const double error = (static_cast<double>(predicted.duration_ns) - ns) / std::max(1.0, ns);
    squares += error * error;
    ++samples;
  });
  LinearState state = line.state();
  if (samples > 0) {
    state.squared_error = std::clamp(squares / samples, kErrorLeast * kErrorLeast, 1.0);
  }
  return state;
}

}  // namespace gpushare::models
