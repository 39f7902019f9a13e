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
// --seconds: no kernel begins later, and the output names what is left out (default 60).

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "benchmarks/gpu/slice_sizes.h"
#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/gpu_device.h"
#include "benchmarks/harness/gpu_forms.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/harness/quantiles.h"
#include "benchmarks/kernels/catalogue.h"
#include "src/core/base/overhead_search.h"

namespace gpushare::benchmarks {
namespace {

using kernels::CatalogueKernel;
using kernels::FormLauncher;
using kernels::FormTask;

// A first ratio as far as this above the limit needs no second one.
constexpr double kFarAbove = 0.2;
// Of sizes that all miss the limit those that differ by less are alike.
constexpr double kSlack = 0.002;
// Of all SMs, in a whole task.
constexpr double kRoundsMin = 4;

struct Options {
  double solo_ms = 5;
  int repeats = 5;
  double limit = 0.02;
};

// Of slices of so many block tasks over the original grid.
double MeasureOverhead(const Options& options, EventTimer& timer, FormLauncher& launcher,
                       const FormTask& task, uint32_t slice) {
  std::vector<double> overheads;
  for (int i = 0; i < options.repeats; ++i) {
    const double original_ms = TimeOriginal(timer, launcher, task);
    overheads.push_back(TimeSlices(timer, launcher, task, slice) / original_ms - 1);
    if (i == 0 && overheads[0] > options.limit + kFarAbove) break;
  }
  return Median(std::move(overheads));
}

// As long as the options say, or longer where that is too few rounds: a slice of one round would be
// a large part of the whole task.
WorkloadTask MakeTaskOfRounds(const CatalogueKernel& kernel, double solo_ms,
                              const SliceSizes& sizes) {
  kernels::WorkloadOptions options = {.solo_ms = solo_ms, .sms = static_cast<int32_t>(sizes.sms)};
  const double wanted = kRoundsMin * sizes.sms * sizes.blocks_per_sm;
  WorkloadTask made = MakeTask(kernel, options);
  if (made.task.block_tasks() >= wanted) return made;
  options.solo_ms *= wanted / made.task.block_tasks();
  made.workload.reset();  // first: two of them may not fit
  return MakeTask(kernel, options);
}

struct Point {
  uint32_t blocks_per_sm = 0;
  double overhead = 0;
};

void Print(Report& report, const CatalogueKernel& kernel, const SliceSizes& sizes,
           const core::OverheadChoice& choice, const std::vector<Point>& curve, double original_ms,
           bool equal) {
  const uint32_t slice = sizes.BlockTasks(choice.value);
  const double slice_us = original_ms * 1000 * slice / sizes.block_tasks;
  Json points = Json::array();
  for (const Point& point : curve) {
    points.push_back(Json::array({point.blocks_per_sm, Rounded(point.overhead * 100, 2)}));
  }
  report.Row({{"kernel", kernel.name},
              {"block_tasks", sizes.block_tasks},
              {"original_ms", Rounded(original_ms, 4)},
              {"blocks_an_sm_holds", sizes.blocks_per_sm},
              {"slice_blocks_per_sm", sizes.BlocksPerSm(choice.value)},
              {"slice_block_tasks", slice},
              {"slice_us", Rounded(slice_us, 1)},
              {"overhead_percent", Rounded(choice.overhead * 100, 3)},
              {"within_limit", choice.met},
              {"bitwise_equal", equal},
              {"curve_percent", points}});
  std::fprintf(stderr,
               "%-18s slice %7u block tasks (%4u an SM of %u) %9.1f us  overhead %6.2f %%%s\n",
               kernel.name, slice, sizes.BlocksPerSm(choice.value), sizes.blocks_per_sm, slice_us,
               choice.overhead * 100, choice.met ? "" : "  above the limit");
}

void RunKernel(const Options& options, const CatalogueKernel& kernel, FormLauncher& launcher,
               Report& report) {
  const gpushare_kernel_variants variants = VariantsOf(kernel.name, kernel.variants);
  SliceSizes sizes = {static_cast<uint32_t>(launcher.sms()),
                      std::max(variants.workers_per_sm, variants.original_blocks_per_sm), 0};
  const WorkloadTask made = MakeTaskOfRounds(kernel, options.solo_ms, sizes);
  const FormTask& task = made.task;
  sizes.block_tasks = task.block_tasks();
  if (sizes.Count() == 0) {
    Fail("The task has " + std::to_string(task.block_tasks()) +
         " block tasks, and more than one an SM is needed to slice it.");
  }
  EventTimer timer;
  // Code, caches and clocks: what comes first counts nowhere.
  for (int i = 0; i < 2; ++i) {
    TimeOriginal(timer, launcher, task);
    TimeSlices(timer, launcher, task, sizes.BlockTasks(sizes.Count()));
  }
  std::vector<Point> curve;
  const core::OverheadChoice choice =
      core::FindSmallestWithin(1, sizes.Count(), options.limit, kSlack, [&](uint32_t number) {
        const double overhead =
            MeasureOverhead(options, timer, launcher, task, sizes.BlockTasks(number));
        curve.push_back({sizes.BlocksPerSm(number), overhead});
        return overhead;
      });
  // The slices of the chosen size give the same bits as the original grid.
  Require(made.workload->ClearOutput());
  const double original_ms = TimeOriginal(timer, launcher, task);
  const uint64_t original = ChecksumOf(*made.workload);
  Require(made.workload->ClearOutput());
  TimeSlices(timer, launcher, task, sizes.BlockTasks(choice.value));
  const bool equal = original == ChecksumOf(*made.workload);
  Print(report, kernel, sizes, choice, curve, original_ms, equal);
  if (!equal) Fail("The slices give other bits than the original grid.");
}

int Run(Arguments& given) {
  Options options;
  options.solo_ms = given.Real("--ms", options.solo_ms, 0.1);
  options.repeats = given.Number("--repeats", options.repeats, 1);
  options.limit = given.Real("--percent", 2, 0) / 100;
  const std::vector<std::string> chosen = given.List("--kernels", {});
  const double seconds = given.Real("--seconds", 60, 0);
  given.Finish();
  const GpuInfo gpu = OpenGpu();
  FormLauncher launcher;
  Require(launcher.Init(), kNoGpu);
  Report report({{"benchmark", "slice_benchmark"},
                 {"gpu", gpu.model},
                 {"sms", gpu.sms},
                 {"limit_percent", Rounded(options.limit * 100, 2)},
                 {"repeats", options.repeats}},
                "kernels");
  const double end = NowSeconds() + seconds;
  bool right = true;
  Json left_out = Json::array();
  for (const CatalogueKernel& kernel : kernels::Catalogue()) {
    if (!IsChosen(chosen, kernel.name)) continue;
    if (NowSeconds() > end) {
      left_out.push_back(kernel.name);
      continue;
    }
    right = Attempt(kernel.name, [&] { RunKernel(options, kernel, launcher, report); }) && right;
  }
  report.End({{"left_out", left_out}});
  return right ? 0 : kFailed;
}

}  // namespace
}  // namespace gpushare::benchmarks

int main(int argc, char** argv) {
  return gpushare::benchmarks::Main("slice_benchmark", argc, argv, gpushare::benchmarks::Run);
}
