// Two kernels of the overlap table, one block of 256 threads each on an SM, sized to one time.
//
// Saved is 1 - both together / one after the other; 50 % is possible. The warps of the kernel that
// is launched first are older.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <utility>

#include "benchmarks/harness/failure.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/warp/experiments.h"
#include "benchmarks/warp/runs.h"
#include "src/sim/warp/kernels/overlap_kernels.h"

namespace gpushare::warp_experiments {
namespace {

using benchmarks::Json;
using benchmarks::Rounded;
using sim::warp::Program;
using sim::warp::WarpPolicy;

constexpr int64_t kCyclesAlone = 100'000;

// The second column of docs/hardware.md, two resident kernels; less than 0: not in the table.
struct Measured {
  const char* first;
  const char* second;
  const char* saved;
};
constexpr std::array<Measured, 6> kPairs = {{{"wgmma", "streaming", "40 %"},
                                             {"wgmma", "sincos", "33 %"},
                                             {"wgmma", "ffma", "none"},
                                             {"ffma", "streaming", "none"},
                                             {"ffma", "sincos", ""},
                                             {"sincos", "streaming", ""}}};

struct Sized {
  Program program;
  int64_t cycles = 0;  // alone
};

Sized OfOneTime(const Options& options, const std::string& name) {
  const sim::warp::KernelGenerator& generator = *sim::warp::FindOverlapKernel(name);
  const Setup setup = {options.machine, WarpPolicy::kGto, {}, options.seed};
  Sized sized;
  int64_t iterations = generator.iterations;
  for (int round = 0; round < 3; ++round) {
    sized.program = benchmarks::Take(Generate(generator, iterations));
    sized.cycles = ResponseCycles(Run(setup, {{.program = &sized.program}}).kernels[0]);
    iterations = std::max<int64_t>(
        1, std::llround(static_cast<double>(iterations) * static_cast<double>(kCyclesAlone) /
                        static_cast<double>(sized.cycles)));
  }
  return sized;
}

// `first` is launched first. Ends over the time alone of each, and what is saved.
Json Together(const Setup& setup, const Sized& first, const Sized& second, double* saved) {
  const auto result =
      Run(setup, {{.program = &first.program}, {.program = &second.program, .at_cycle = 1}});
  const int64_t both = std::max(result.kernels[0].end_cycle, result.kernels[1].end_cycle);
  *saved = 1 - static_cast<double>(both) / static_cast<double>(first.cycles + second.cycles);
  const auto over = [](const sim::warp::KernelResult& kernel, const Sized& alone) {
    return Rounded(static_cast<double>(ResponseCycles(kernel)) / static_cast<double>(alone.cycles),
                   3);
  };
  return {{"first", first.program.name},
          {"first_over_alone", over(result.kernels[0], first)},
          {"second_over_alone", over(result.kernels[1], second)},
          {"saved", Rounded(*saved, 3)},
          {"issue_share", Rounded(IssueShare(result), 3)}};
}

}  // namespace

int Overlap(const Options& options) {
  benchmarks::Report report({{"experiment", "overlap"},
                             {"simulated", true},
                             {"machine", options.machine.name},
                             {"cycles_alone", kCyclesAlone}},
                            "pairs");
  std::fprintf(stderr, "%-18s %-8s %10s %10s   measured\n", "pair", "policy", "in order",
               "reversed");
  for (const Measured& pair : kPairs) {
    const Sized a = OfOneTime(options, pair.first);
    const Sized b = OfOneTime(options, pair.second);
    Json row = {{"pair", {pair.first, pair.second}}, {"measured_saved", pair.saved}};
    for (const Policy& policy : Policies()) {
      if (policy.policy == WarpPolicy::kRtPaws) continue;  // with one priority it is gto
      const Setup setup = {options.machine, policy.policy, {}, options.seed};
      double in_order = 0;
      double reversed = 0;
      row[policy.name] = {Together(setup, a, b, &in_order), Together(setup, b, a, &reversed)};
      std::fprintf(stderr, "%-18s %-8s %9.1f%% %9.1f%%   %s\n",
                   (std::string(pair.first) + "+" + pair.second).c_str(), policy.name.c_str(),
                   100 * in_order, 100 * reversed, pair.saved);
    }
    report.Row(row);
  }
  report.End();
  return 0;
}

}  // namespace gpushare::warp_experiments
