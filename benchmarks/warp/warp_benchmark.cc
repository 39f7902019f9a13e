// Experiments with the warp-level simulator (docs/warp-simulator.md). One JSON object on stdout, a
// table on stderr.
//
// Use: warp_benchmark [--experiment figures|overlap|starvation|order|rate] [--machine titan_v|h200]
//                     [--kernels a,b] [--second-launch CYCLE] [--memory-share X] [--seed N]
//
// --memory-share: L2, and the bandwidths of L2 and DRAM, are X times an SM's share, as where only
// one SM in X has work. Without it X is 1.
// Without --machine the experiments `figures` and `rate` take a TITAN V, and the others an H200.

#include <string>

#include "benchmarks/harness/arguments.h"
#include "benchmarks/warp/experiments.h"
#include "src/sim/warp/kernels/thesis_kernels.h"

namespace gpushare::warp_experiments {
namespace {

using benchmarks::Failure;
using benchmarks::kBadUse;

void ScaleMemory(Options& options) {
  sim::warp::Machine& machine = options.machine;
  const double share = options.memory_share;
  machine.l2_bytes = static_cast<int64_t>(static_cast<double>(machine.l2_bytes) * share);
  machine.l2_bytes_per_cycle *= share;
  machine.dram_bytes_per_cycle *= share;
}

int RunExperiment(benchmarks::Arguments& given) {
  const std::string experiment = given.Text("--experiment", "figures");
  const bool of_thesis = experiment == "figures" || experiment == "rate";
  const std::string machine = given.Text("--machine", of_thesis ? "titan_v" : "h200");
  Options options;
  options.kernels = given.List("--kernels", {});
  options.second_launch_cycle = given.Number("--second-launch", sim::warp::kSecondLaunchCycle, 0);
  options.memory_share = given.Real("--memory-share", 1, 0.1);
  options.seed = given.Seed();
  given.Finish();
  if (machine != "titan_v" && machine != "h200") {
    throw Failure("--machine is '" + machine + "', and it must be titan_v or h200.", kBadUse);
  }
  options.machine = machine == "h200" ? sim::warp::H200() : sim::warp::TitanV();
  ScaleMemory(options);
  if (experiment == "figures") return Figures(options);
  if (experiment == "overlap") return Overlap(options);
  if (experiment == "starvation") return Starvation(options);
  if (experiment == "order") return Order(options);
  if (experiment == "rate") return Rate(options);
  throw Failure("--experiment is '" + experiment +
                    "', and it must be figures, overlap, starvation, order or rate.",
                kBadUse);
}

}  // namespace
}  // namespace gpushare::warp_experiments

int main(int argc, char** argv) {
  return gpushare::benchmarks::Main("warp_benchmark", argc, argv,
                                    gpushare::warp_experiments::RunExperiment);
}
