// Kernelet's workloads (tables 3 and 5): four mixes of eight applications, each an instance of the
// catalogue's kernel of the same kind, with Poisson arrivals.
//
// All kernels of a mix have the same rate, and their sum is more than the device can do, so that
// at least two are pending while instances arrive. An instance is whole waves of block tasks of
// about the same time alone.

#ifndef GPUSHARE_BENCHMARKS_KERNELET_MIXES_H_
#define GPUSHARE_BENCHMARKS_KERNELET_MIXES_H_

#include <cstdint>
#include <string>
#include <vector>

namespace gpushare::kernelet {

struct Mix {
  std::string name;
  std::vector<std::string> kernels;  // of the profile
};
// CI, MI, MIX and ALL.
const std::vector<Mix>& PaperMixes();

struct Load {
  int instances = 100;          // of each kernel
  int64_t solo_ns = 4'000'000;  // of one instance alone
  double offered = 2;           // work that arrives over what the device can do alone
  uint64_t seed = 1;
};

struct Arrival {
  int64_t at_ns = 0;  // from the start
  size_t kernel = 0;  // of the mix
};
// Ascending.
std::vector<Arrival> ArrivalsOf(const Mix& mix, const Load& load);

}  // namespace gpushare::kernelet

#endif  // GPUSHARE_BENCHMARKS_KERNELET_MIXES_H_
