// Simulated warp instructions a second of processor time on one core: the pairs of figure 4.2 under
// each policy, all kernels together, the median of five rounds.

#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "benchmarks/harness/failure.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/harness/quantiles.h"
#include "benchmarks/warp/experiments.h"
#include "benchmarks/warp/runs.h"
#include "src/sim/warp/kernels/thesis_kernels.h"

namespace gpushare::warp_experiments {
namespace {

using benchmarks::Json;
using benchmarks::Rounded;
using sim::warp::Program;

constexpr double kLeastPerSecond = 5e6;
constexpr int kRounds = 5;

struct Timed {
  double seconds = 0;
  int64_t instructions = 0;
};

Timed RunPair(const Options& options, const Policy& policy, const Program& program) {
  const int blocks = static_cast<int>(program.grid_blocks);
  const std::clock_t start = std::clock();
  const auto result = Run({options.machine, policy.policy, {}, options.seed},
                          {{.program = &program, .resident_blocks = blocks, .priority = 1},
                           {.program = &program,
                            .resident_blocks = blocks,
                            .at_cycle = options.second_launch_cycle,
                            .priority = 4}});
  return {static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC, result.instructions};
}

}  // namespace

int Rate(const Options& options) {
  std::vector<Program> programs;
  for (const sim::warp::KernelGenerator& generator : sim::warp::ThesisKernels()) {
    programs.push_back(benchmarks::Take(Generate(generator, generator.iterations)));
  }
  benchmarks::Report report(
      {{"experiment", "rate"}, {"goal_per_second", kLeastPerSecond}, {"rounds", kRounds}},
      "policies");
  bool missed = false;
  for (const Policy& policy : Policies()) {
    std::vector<double> all;
    std::vector<std::vector<double>> each(programs.size());
    for (int round = 0; round < kRounds; ++round) {
      Timed total;
      for (size_t i = 0; i < programs.size(); ++i) {
        const Timed timed = RunPair(options, policy, programs[i]);
        each[i].push_back(static_cast<double>(timed.instructions) / timed.seconds);
        total.seconds += timed.seconds;
        total.instructions += timed.instructions;
      }
      all.push_back(static_cast<double>(total.instructions) / total.seconds);
    }
    const double median = benchmarks::Median(all);
    Json row = {{"policy", policy.name}, {"millions_per_second", Rounded(median / 1e6, 2)}};
    for (size_t i = 0; i < programs.size(); ++i) {
      row["kernels"][programs[i].name] = Rounded(benchmarks::Median(each[i]) / 1e6, 2);
    }
    report.Row(row);
    std::fprintf(stderr, "%-8s %.1f million warp instructions a second\n", policy.name.c_str(),
                 median / 1e6);
    missed = missed || median < kLeastPerSecond;
  }
  report.End();
  return missed ? 1 : 0;
}

}  // namespace gpushare::warp_experiments
