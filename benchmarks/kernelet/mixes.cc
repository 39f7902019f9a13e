#include "benchmarks/kernelet/mixes.h"

#include <algorithm>

#include "benchmarks/harness/random.h"

namespace gpushare::kernelet {

const std::vector<Mix>& PaperMixes() {
  static const std::vector<Mix> mixes = {
      {"CI", {"black_scholes", "sgemm", "tea", "mriq"}},
      {"MI", {"pointer_chase", "spmv", "stencil", "sad"}},
      {"MIX", {"pointer_chase", "black_scholes", "tea", "sad"}},
      {"ALL",
       {"pointer_chase", "spmv", "stencil", "black_scholes", "sgemm", "tea", "mriq", "sad"}}};
  return mixes;
}

std::vector<Arrival> ArrivalsOf(const Mix& mix, const Load& load) {
  const double gap_ns =
      static_cast<double>(load.solo_ns) * static_cast<double>(mix.kernels.size()) / load.offered;
  std::vector<Arrival> arrivals;
  for (size_t kernel = 0; kernel < mix.kernels.size(); ++kernel) {
    benchmarks::Random random(load.seed * 1000 + kernel);
    int64_t at_ns = 0;
    for (int i = 0; i < load.instances; ++i) {
      at_ns += random.Exponential(gap_ns);
      arrivals.push_back({at_ns, kernel});
    }
  }
  std::sort(arrivals.begin(), arrivals.end(), [](const Arrival& a, const Arrival& b) {
    return a.at_ns != b.at_ns ? a.at_ns < b.at_ns : a.kernel < b.kernel;
  });
  return arrivals;
}

}  // namespace gpushare::kernelet
