// What kernels do together on a GPU. Use: overlap_benchmark [--experiment NAME] [OPTION...]
//
//   ways      a Tensor-core and a CUDA-core kernel of the same duration, in every way (ways.cc)
//   curve     a fused kernel's duration over the load ratio of its parts (fused_curve.cc)
//   eviction  one part of a fused kernel leaves at a random moment (fused_eviction.cc)
//   quota     BE under a quota of SMs, LC beside it, block tasks taken or bound (quota.cc)
//
// The files name the options. Without a name: ways.

#include <string>

#include "benchmarks/gpu/overlap/experiments.h"
#include "benchmarks/harness/arguments.h"

namespace gpushare::benchmarks {
namespace {

struct Experiment {
  const char* name;
  int (*run)(Arguments& given);
};
constexpr Experiment kExperiments[] = {
    {"ways", RunWays}, {"curve", RunCurve}, {"eviction", RunEviction}, {"quota", RunQuota}};

int Run(Arguments& given) {
  const std::string name = given.Text("--experiment", kExperiments[0].name);
  for (const Experiment& experiment : kExperiments) {
    if (name == experiment.name) return experiment.run(given);
  }
  throw Failure("There is no experiment '" + name + "': there are ways, curve, eviction and quota.",
                kBadUse);
}

}  // namespace
}  // namespace gpushare::benchmarks

int main(int argc, char** argv) {
  return gpushare::benchmarks::Main("overlap_benchmark", argc, argv, gpushare::benchmarks::Run);
}
