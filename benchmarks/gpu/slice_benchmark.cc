// slice_benchmark: for every kernel of the catalogue the smallest slice whose overhead is within
// 2 % when the whole task runs as slices back to back (Kernelet 4.1), against the original grid.
//
// Prints one JSON object; a kernel's curve has every size that was tried. Sizes are those of
// slice_sizes.h, found by doubling and halving; each is timed in alternation with the original
// grid, and its overhead is the median of the ratios.
//
//   slice_benchmark [--ms SOLO_MS] [--repeats N] [--kernels a,b] [--percent P] [--seconds S]
//
// --ms: the task's length, more where it would be fewer than four rounds of all SMs (default 5).
// --seconds: no kernel begins later, and what is left out is told (default 60).

#include <cuda_runtime_api.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/gpu/form_timer.h"
#include "benchmarks/gpu/slice_sizes.h"
#include "benchmarks/kernels/catalogue.h"
#include "src/core/base/overhead_search.h"

namespace gpushare::benchmarks {
namespace {

using kernels::CatalogueKernel;
using kernels::Status;

// A first ratio as far as this above the limit needs no second one.
constexpr double kFarAbove = 0.2;
// Of sizes that all miss the limit those that differ by less are alike.
constexpr double kSlack = 0.002;

// Of all SMs, in a whole task.
constexpr double kRoundsMin = 4;

struct Arguments {
  double solo_ms = 5;
  int repeats = 5;
  double limit = 0.02;
  double seconds = 60;
  std::string kernels;  // separated by commas; empty: all
};

struct Point {
  uint32_t blocks_per_sm = 0;
  double overhead = 0;
};

bool IsChosen(const std::string& chosen, const char* name) {
  return chosen.empty() ||
         ("," + chosen + ",").find("," + std::string(name) + ",") != std::string::npos;
}

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Of slices of so many block tasks over the original grid; stays 0 once something failed.
double MeasureOverhead(const Arguments& arguments, kernels::FormLauncher* launcher,
                       const kernels::FormTask& task, uint32_t slice, Status* status) {
  kernels::EventTimer timer;
  std::vector<double> overheads;
  for (int i = 0; i < arguments.repeats && status->ok(); ++i) {
    double original_ms = 0;
    double sliced_ms = 0;
    *status = kernels::TimeOriginal(launcher, task, &timer, &original_ms);
    if (status->ok()) *status = kernels::TimeSlices(launcher, task, slice, &timer, &sliced_ms);
    if (!status->ok()) return 0;
    overheads.push_back(sliced_ms / original_ms - 1);
    if (i == 0 && overheads[0] > arguments.limit + kFarAbove) break;
  }
  return kernels::Median(std::move(overheads));
}

// The slices of one size give the same bits as the original grid.
Status CheckBits(kernels::FormLauncher* launcher, const kernels::FormTask& task, uint32_t slice,
                 kernels::Workload* workload, double* original_ms, bool* equal) {
  kernels::EventTimer timer;
  uint64_t original = 0;
  uint64_t sliced = 0;
  double sliced_ms = 0;
  Status status = workload->ClearOutput();
  if (status.ok()) status = kernels::TimeOriginal(launcher, task, &timer, original_ms);
  if (status.ok()) status = workload->Checksum(&original);
  if (status.ok()) status = workload->ClearOutput();
  if (status.ok()) status = kernels::TimeSlices(launcher, task, slice, &timer, &sliced_ms);
  if (status.ok()) status = workload->Checksum(&sliced);
  *equal = original == sliced;
  return status;
}

void Print(const CatalogueKernel& kernel, const SliceSizes& sizes,
           const core::OverheadChoice& choice, const std::vector<Point>& curve, double original_ms,
           bool equal, bool* first) {
  const uint32_t slice = sizes.BlockTasks(choice.value);
  const double slice_us = original_ms * 1000 * slice / sizes.block_tasks;
  std::printf("%s\n    {\"kernel\": \"%s\", \"block_tasks\": %u, \"original_ms\": %.4f,",
              *first ? "" : ",", kernel.name, sizes.block_tasks, original_ms);
  *first = false;
  std::printf(" \"blocks_an_sm_holds\": %u, \"slice_blocks_per_sm\": %u,", sizes.blocks_per_sm,
              sizes.BlocksPerSm(choice.value));
  std::printf(" \"slice_block_tasks\": %u, \"slice_us\": %.1f, \"overhead_percent\": %.3f,", slice,
              slice_us, choice.overhead * 100);
  std::printf(" \"within_limit\": %s, \"bitwise_equal\": %s,\n     \"curve_percent\": [",
              choice.met ? "true" : "false", equal ? "true" : "false");
  for (size_t i = 0; i < curve.size(); ++i) {
    std::printf("%s[%u, %.2f]", i == 0 ? "" : ", ", curve[i].blocks_per_sm,
                curve[i].overhead * 100);
  }
  std::printf("]}");
  std::fprintf(stderr,
               "%-18s slice %7u block tasks (%4u an SM of %u) %9.1f us  overhead %6.2f %%%s\n",
               kernel.name, slice, sizes.BlocksPerSm(choice.value), sizes.blocks_per_sm, slice_us,
               choice.overhead * 100, choice.met ? "" : "  above the limit");
}

// As long as the options say, or longer where that is too few rounds: a slice of one round would be
// a large part of the whole task.
Status MakeTask(const CatalogueKernel& kernel, kernels::WorkloadOptions* options, SliceSizes* sizes,
                std::unique_ptr<kernels::Workload>* workload) {
  const double wanted = kRoundsMin * sizes->sms * sizes->blocks_per_sm;
  for (int tries = 0; tries < 2; ++tries) {
    Status status = kernels::MakeWorkload(kernel, *options, workload);
    if (!status.ok()) return status;
    const kernels::Grid grid = (*workload)->grid();
    sizes->block_tasks = grid.x * grid.y * grid.z;
    if (sizes->block_tasks >= wanted) break;
    options->solo_ms *= wanted / sizes->block_tasks;
  }
  return {};
}

Status RunKernel(const Arguments& arguments, const CatalogueKernel& kernel,
                 kernels::FormLauncher* launcher, bool* first) {
  kernels::WorkloadOptions options;
  options.solo_ms = arguments.solo_ms;
  options.sms = launcher->sms();
  kernels::FormTask task;
  Status status = kernels::CudaStatus(kernel.variants(&task.variants), kernel.name);
  SliceSizes sizes = {static_cast<uint32_t>(launcher->sms()),
                      std::max(task.variants.workers_per_sm, task.variants.original_blocks_per_sm),
                      0};
  std::unique_ptr<kernels::Workload> workload;
  if (status.ok()) status = MakeTask(kernel, &options, &sizes, &workload);
  if (!status.ok()) return status;
  task.params = workload->params();
  task.grid = workload->grid();
  if (sizes.Count() == 0) {
    status.code = -1;
    status.message = "The task has " + std::to_string(task.block_tasks()) +
                     " block tasks, and more than one an SM is needed to slice it.";
    return status;
  }
  // Code, caches and clocks: what comes first counts nowhere.
  kernels::EventTimer timer;
  double ms = 0;
  for (int i = 0; i < 2 && status.ok(); ++i) {
    status = kernels::TimeOriginal(launcher, task, &timer, &ms);
    if (status.ok()) {
      status = kernels::TimeSlices(launcher, task, sizes.BlockTasks(sizes.Count()), &timer, &ms);
    }
  }
  std::vector<Point> curve;
  const core::OverheadChoice choice =
      core::FindSmallestWithin(1, sizes.Count(), arguments.limit, kSlack, [&](uint32_t number) {
        const double overhead =
            MeasureOverhead(arguments, launcher, task, sizes.BlockTasks(number), &status);
        curve.push_back({sizes.BlocksPerSm(number), overhead});
        return overhead;
      });
  bool equal = false;
  double original_ms = 0;
  if (status.ok()) {
    status = CheckBits(launcher, task, sizes.BlockTasks(choice.value), workload.get(), &original_ms,
                       &equal);
  }
  if (!status.ok()) return status;
  Print(kernel, sizes, choice, curve, original_ms, equal, first);
  if (equal) return status;
  status.code = -1;
  status.message = "The slices give other bits than the original grid.";
  return status;
}

bool Parse(int argc, char** argv, Arguments* arguments) {
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 >= argc) return false;
    const char* const value = argv[i + 1];
    if (std::strcmp(argv[i], "--ms") == 0) {
      arguments->solo_ms = std::atof(value);
    } else if (std::strcmp(argv[i], "--repeats") == 0) {
      arguments->repeats = std::max(1, std::atoi(value));
    } else if (std::strcmp(argv[i], "--kernels") == 0) {
      arguments->kernels = value;
    } else if (std::strcmp(argv[i], "--percent") == 0) {
      arguments->limit = std::atof(value) / 100;
    } else if (std::strcmp(argv[i], "--seconds") == 0) {
      arguments->seconds = std::atof(value);
    } else {
      return false;
    }
  }
  return true;
}

int Main(int argc, char** argv) {
  Arguments arguments;
  if (!Parse(argc, argv, &arguments)) {
    std::fprintf(stderr,
                 "slice_benchmark [--ms SOLO_MS] [--repeats N] [--kernels a,b] [--percent P] "
                 "[--seconds S]\n");
    return 2;
  }
  kernels::FormLauncher launcher;
  const Status status = launcher.Init();
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", status.message.c_str());
    return 77;
  }
  cudaDeviceProp properties = {};
  cudaGetDeviceProperties(&properties, 0);
  std::printf(
      "{\"benchmark\": \"slice_benchmark\", \"gpu\": \"%s\", \"sms\": %d, \"limit_percent\": %.2f,"
      " \"repeats\": %d,\n  \"kernels\": [",
      properties.name, launcher.sms(), arguments.limit * 100, arguments.repeats);
  const double end = Seconds() + arguments.seconds;
  bool first = true;
  bool failed = false;
  std::string left_out;
  for (const CatalogueKernel& kernel : kernels::Catalogue()) {
    if (!IsChosen(arguments.kernels, kernel.name)) continue;
    if (Seconds() > end) {
      left_out += (left_out.empty() ? "\"" : ", \"") + std::string(kernel.name) + "\"";
      continue;
    }
    const Status ran = RunKernel(arguments, kernel, &launcher, &first);
    if (ran.ok()) continue;
    failed = true;
    std::fprintf(stderr, "%s: %s\n", kernel.name, ran.message.c_str());
  }
  std::printf("],\n  \"left_out\": [%s]}\n", left_out.c_str());
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace gpushare::benchmarks

int main(int argc, char** argv) { return gpushare::benchmarks::Main(argc, argv); }
