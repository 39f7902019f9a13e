// Figures 4.2 and 4.3 of the thesis (4.5): response times of K1 and K2, two instances of a
// benchmark, over K1's under LRR, and the average of both over LRR's.
//
// K1 is launched first and has priority 1. K2 is the more urgent one: of the priorities 2, 4 and 8
// it takes the one with the shortest response of K2 (4.5.2). The printed reading of the algorithms
// is beside the corrected one.

#include <array>
#include <cstdio>
#include <string>

#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/failure.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/warp/bottleneck.h"
#include "benchmarks/warp/experiments.h"
#include "benchmarks/warp/runs.h"
#include "src/sim/warp/kernels/thesis_kernels.h"

namespace gpushare::warp_experiments {
namespace {

using benchmarks::Json;
using benchmarks::Rounded;
using sim::warp::IssueRules;
using sim::warp::Program;
using sim::warp::SimulationResult;
using sim::warp::WarpPolicy;

constexpr std::array<int64_t, 3> kPrioritiesOfK2 = {2, 4, 8};

struct Pair {
  int64_t k1 = 0;  // response cycles
  int64_t k2 = 0;
  int64_t priority = 1;  // of K2
  double issue_share = 0;
  Bottleneck busiest;
};

class Benchmark {
 public:
  Benchmark(const Options& options, const Program& program)
      : options_(options), program_(program) {}

  Pair Together(WarpPolicy policy, IssueRules rules, int64_t priority) const {
    const Setup setup = {options_.machine, policy, rules, options_.seed};
    const int blocks = static_cast<int>(program_.grid_blocks);
    const SimulationResult result =
        Run(setup, {{.program = &program_, .resident_blocks = blocks, .priority = 1},
                    {.program = &program_,
                     .resident_blocks = blocks,
                     .at_cycle = options_.second_launch_cycle,
                     .priority = priority}});
    return {ResponseCycles(result.kernels[0]), ResponseCycles(result.kernels[1]), priority,
            IssueShare(result), FindBottleneck(options_.machine, program_, 2, result)};
  }

  Pair BestPriority(IssueRules rules) const {
    Pair best;
    for (const int64_t priority : kPrioritiesOfK2) {
      const Pair pair = Together(WarpPolicy::kRtPaws, rules, priority);
      if (best.k2 == 0 || pair.k2 < best.k2) best = pair;
    }
    return best;
  }

 private:
  const Options& options_;
  const Program& program_;
};

Json Normalised(const Pair& pair, const Pair& lrr) {
  const auto over = [](int64_t a, int64_t b) {
    return Rounded(static_cast<double>(a) / static_cast<double>(b), 4);
  };
  return {{"k1", over(pair.k1, lrr.k1)},
          {"k2", over(pair.k2, lrr.k1)},
          {"average", over(pair.k1 + pair.k2, lrr.k1 + lrr.k2)},
          {"k1_cycles", pair.k1},
          {"k2_cycles", pair.k2},
          {"issue_share", Rounded(pair.issue_share, 3)},
          {"busiest",
           {{"resource", pair.busiest.resource}, {"share", Rounded(pair.busiest.share, 3)}}}};
}

void PrintRow(const std::string& name, const char* policy, const Pair& pair, const Pair& lrr) {
  const auto base = static_cast<double>(lrr.k1);
  std::fprintf(stderr, "%-8s %-16s %7.3f %7.3f %9.3f %7.2f   %s %.2f\n", name.c_str(), policy,
               static_cast<double>(pair.k1) / base, static_cast<double>(pair.k2) / base,
               static_cast<double>(pair.k1 + pair.k2) / static_cast<double>(lrr.k1 + lrr.k2),
               pair.issue_share, pair.busiest.resource.c_str(), pair.busiest.share);
}

Json Measure(const Options& options, const sim::warp::KernelGenerator& generator) {
  const Program program = benchmarks::Take(Generate(generator, generator.iterations));
  const Benchmark benchmark(options, program);
  const Pair lrr = benchmark.Together(WarpPolicy::kLrr, {}, 1);
  const Pair gto = benchmark.Together(WarpPolicy::kGto, {}, 1);
  const Pair paws = benchmark.BestPriority(IssueRules::Corrected());
  const Pair printed = benchmark.BestPriority(IssueRules::Printed());
  const std::string name(generator.name);
  PrintRow(name, "lrr", lrr, lrr);
  PrintRow(name, "gto", gto, lrr);
  PrintRow(name, "rt-paws", paws, lrr);
  PrintRow(name, "rt-paws printed", printed, lrr);
  Json row = {{"kernel", name},
              {"type", generator.memory_intensive ? "MI" : "CI"},
              {"lrr", Normalised(lrr, lrr)},
              {"gto", Normalised(gto, lrr)},
              {"rt_paws", Normalised(paws, lrr)},
              {"rt_paws_printed", Normalised(printed, lrr)}};
  row["rt_paws"]["priority_of_k2"] = paws.priority;
  row["rt_paws_below_lrr"] = {{"k1", paws.k1 < lrr.k1}, {"k2", paws.k2 < lrr.k2}};
  row["gto_inverts"] = gto.k1 < gto.k2;
  return row;
}

}  // namespace

int Figures(const Options& options) {
  std::fprintf(stderr, "%-8s %-16s %7s %7s %9s %7s   busiest\n", "kernel", "policy", "K1", "K2",
               "average", "issue");
  benchmarks::Report report({{"experiment", "figures 4.2 and 4.3"},
                             {"simulated", true},
                             {"machine", options.machine.name},
                             {"seed", options.seed},
                             {"memory_share", options.memory_share},
                             {"second_launch_cycle", options.second_launch_cycle}},
                            "kernels");
  for (const sim::warp::KernelGenerator& generator : sim::warp::ThesisKernels()) {
    if (!benchmarks::IsChosen(options.kernels, std::string(generator.name))) continue;
    report.Row(Measure(options, generator));
  }
  report.End();
  return 0;
}

}  // namespace gpushare::warp_experiments
