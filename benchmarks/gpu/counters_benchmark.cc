// counters_benchmark: one launch of each kernel of the catalogue, as an ordinary grid, for a
// profiler to count. Prints a line of JSON a launch, in the order of the launches.
//
//   counters_benchmark [--ms SOLO_MS] [--kernel a,b]
//
// tools/counters.py runs it under ncu and writes what was counted into a samples file. Only these
// launches lie between cudaProfilerStart and cudaProfilerStop.

#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include <cstdio>
#include <string>
#include <vector>

#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/gpu_device.h"
#include "benchmarks/harness/gpu_forms.h"
#include "benchmarks/kernels/catalogue.h"

namespace gpushare::benchmarks {
namespace {

using kernels::CatalogueKernel;
using kernels::FormLauncher;

// Long against the ramps of a launch, and short for a profiler that replays it for each counter.
constexpr double kSoloMs = 2;

void Count(const CatalogueKernel& kernel, double solo_ms, FormLauncher& launcher) {
  kernels::WorkloadOptions workload = {.solo_ms = solo_ms, .sms = launcher.sms()};
  const WorkloadTask made = MakeTask(kernel, workload);
  EventTimer timer;
  TimeOriginal(timer, launcher, made.task);  // loads the module
  Require(kernels::CudaStatus(cudaProfilerStart(), "cudaProfilerStart"));
  LaunchGrid(made.task, nullptr);
  Require(kernels::CudaStatus(cudaDeviceSynchronize(), "cudaDeviceSynchronize"));
  Require(kernels::CudaStatus(cudaProfilerStop(), "cudaProfilerStop"));
  std::printf("{\"kernel\": \"%s\", \"block_tasks\": %u, \"workers_per_sm\": %u}\n", kernel.name,
              made.task.block_tasks(), made.task.variants.workers_per_sm);
  std::fflush(stdout);
}

int Run(Arguments& given) {
  const double solo_ms = given.Real("--ms", kSoloMs, 0.1);
  const std::vector<std::string> chosen = given.List("--kernel", {});
  given.Finish();
  OpenGpu();
  FormLauncher launcher;
  Require(launcher.Init(), kNoGpu);
  bool right = true;
  for (const CatalogueKernel& kernel : kernels::Catalogue()) {
    if (!IsChosen(chosen, kernel.name)) continue;
    right = Attempt(kernel.name, [&] { Count(kernel, solo_ms, launcher); }) && right;
  }
  return right ? 0 : kFailed;
}

}  // namespace
}  // namespace gpushare::benchmarks

int main(int argc, char** argv) {
  return gpushare::benchmarks::Main("counters_benchmark", argc, argv, gpushare::benchmarks::Run);
}
