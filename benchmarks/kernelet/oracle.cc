#include "benchmarks/kernelet/oracle.h"

#include <memory>

#include "benchmarks/harness/failure.h"
#include "benchmarks/kernelet/pair_rig.h"

namespace gpushare::kernelet {

std::vector<SizedKernel> SizesOf(const std::vector<std::string>& kernels,
                                 const RigOptions& options) {
  const auto any_policy = [](const Runtime& /*runtime*/) {};
  const Rig rig(kernels, any_policy, options);
  std::vector<SizedKernel> sized;
  for (const std::string& kernel : kernels) {
    sized.push_back(
        {kernel, benchmarks::Take(rig.runtime().FindKernel(kernel)).workers_per_sm_max});
  }
  return sized;
}

std::vector<RatedRatio> Unrated(const std::vector<SizedKernel>& kernels) {
  std::vector<RatedRatio> unrated;
  for (const PairRatio& ratio : AllRatios(kernels)) unrated.push_back({ratio});
  return unrated;
}

Oracle::Oracle(const std::vector<std::string>& kernels, const RigOptions& options) {
  for (const std::string& kernel : kernels) {
    alone_ns_[kernel] = PairRig({kernel}, options).BlockNs({});
  }
  const std::vector<PairRatio> ratios = AllRatios(SizesOf(kernels, options));
  for (size_t i = 0; i < 2; ++i) MeasureSide(i, ratios, options);
}

void Oracle::MeasureSide(size_t side, const std::vector<PairRatio>& ratios,
                         const RigOptions& options) {
  std::unique_ptr<PairRig> rig;
  std::array<std::string, 2> of_rig;
  for (const PairRatio& ratio : ratios) {  // all ratios of two kernels in a row
    // On a GPU all ratios share a rig. In virtual time a rig of its own makes each measurement
    // independent of those before.
    if (rig == nullptr || ratio.kernel != of_rig || options.platform->simulated()) {
      rig.reset();  // on a GPU one at a time
      rig = std::make_unique<PairRig>(
          std::vector<std::string>{ratio.kernel[side], ratio.kernel[1 - side]}, options);
      of_rig = ratio.kernel;
    }
    const double ns = rig->BlockNs({{ratio.workers[side], ratio.workers[1 - side]}});
    speeds_[ratio][side] = alone_ns_[ratio.kernel[side]] / ns;
  }
}

std::vector<RatedRatio> Oracle::Rated() const {
  std::vector<RatedRatio> rated;
  for (const auto& [ratio, speed] : speeds_) rated.push_back({ratio, speed[0] + speed[1]});
  return rated;
}

}  // namespace gpushare::kernelet
