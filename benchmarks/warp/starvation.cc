// From which use of the issue slots on a kernel starves its neighbour: the warp simulator's answer
// to kFullIssue of src/sim/physics/tuning.h.
//
// The background issues 64 independent FFMA a warp and then waits for W cycles, two warps a
// scheduler, so W sets its share of the slots. It is launched first and outlasts the neighbour
// twenty times, so a speed of 0.05 means that the neighbour got nothing.

#include <array>
#include <cstdio>
#include <string>

#include "absl/strings/substitute.h"
#include "benchmarks/harness/failure.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/warp/experiments.h"
#include "benchmarks/warp/runs.h"
#include "src/sim/warp/kernels/overlap_kernels.h"
#include "src/sim/warp/trace.h"

namespace gpushare::warp_experiments {
namespace {

using benchmarks::Json;
using benchmarks::Rounded;
using sim::warp::Program;
using sim::warp::WarpPolicy;

constexpr char kBackground[] = R"(warp-trace 1
kernel background
warps 8
blocks 1
loop $0
  float after=4 repeat=64
  int latency=$1
  int after=1
end
)";
constexpr std::array<int, 11> kWaits = {1, 32, 48, 56, 60, 64, 68, 72, 80, 96, 160};
constexpr int64_t kOutlasts = 20;

Program Background(int64_t iterations, int wait) {
  return benchmarks::Take(
      sim::warp::ParseTrace(absl::Substitute(kBackground, iterations, wait), "background"));
}

// The neighbour's speed beside the background, relative to alone.
double SpeedBeside(const Setup& setup, const Program& neighbour, int64_t alone, int wait) {
  const Program sample = Background(100, wait);
  const int64_t sample_cycles = Run(setup, {{.program = &sample}}).cycles;
  const Program background = Background(100 * kOutlasts * alone / sample_cycles + 1, wait);
  const auto result =
      Run(setup, {{.program = &background}, {.program = &neighbour, .at_cycle = 1}});
  return static_cast<double>(alone) / static_cast<double>(ResponseCycles(result.kernels[1]));
}

}  // namespace

int Starvation(const Options& options) {
  benchmarks::Report report({{"experiment", "starvation"},
                             {"simulated", true},
                             {"machine", options.machine.name},
                             {"background_outlasts", kOutlasts}},
                            "backgrounds");
  std::fprintf(stderr, "%6s %12s %12s %12s %12s\n", "issue", "streaming,gto", "streaming,lrr",
               "sincos,gto", "sincos,lrr");
  for (const int wait : kWaits) {
    const Program alone = Background(1000, wait);
    const double share = IssueShare(
        Run({options.machine, WarpPolicy::kGto, {}, options.seed}, {{.program = &alone}}));
    Json row = {{"issue_share_alone", Rounded(share, 4)}};
    std::fprintf(stderr, "%6.3f", share);
    for (const char* name : {"streaming", "sincos"}) {
      const Program neighbour =
          benchmarks::Take(Generate(*sim::warp::FindOverlapKernel(name), 100));
      for (const WarpPolicy policy : {WarpPolicy::kGto, WarpPolicy::kLrr}) {
        const Setup setup = {options.machine, policy, {}, options.seed};
        const int64_t cycles = ResponseCycles(Run(setup, {{.program = &neighbour}}).kernels[0]);
        const double speed = SpeedBeside(setup, neighbour, cycles, wait);
        row[name][policy == WarpPolicy::kGto ? "gto" : "lrr"] = Rounded(speed, 3);
        std::fprintf(stderr, " %12.3f", speed);
      }
    }
    std::fprintf(stderr, "\n");
    report.Row(row);
  }
  report.End();
  return 0;
}

}  // namespace gpushare::warp_experiments
