// Kernelet's comparison (5.4, figures 13 and 14) on the simulated device: the total time of the
// mixes CI, MI, MIX and ALL under BASE, kernelet, OPT, adaptive and random schedules.
//
// The gains are throughput: BASE's time over the scheduler's, less 1. One JSON object on stdout, a
// table on stderr.
//
// Use: kernelet_benchmark [--mixes CI,MI,MIX,ALL] [--instances N] [--solo-us T] [--offered X]
//                         [--runs N] [--threads N] [--seed N] [--profile FILE]

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/harness/quantiles.h"
#include "benchmarks/kernelet/mixes.h"
#include "benchmarks/kernelet/oracle.h"
#include "benchmarks/kernelet/schedules.h"

namespace gpushare::kernelet {
namespace {

using benchmarks::Arguments;
using benchmarks::Json;
using benchmarks::Quantile;
using benchmarks::Rounded;

struct Options {
  Load load;
  int runs = 1000;
  int threads = 2;
  std::vector<std::string> mixes;
  RigOptions rig;
};

Options Parse(Arguments& given) {
  Options options;
  options.mixes = given.List("--mixes", {"CI", "MI", "MIX", "ALL"});
  options.load.instances = given.Number("--instances", options.load.instances, 1);
  options.load.solo_ns = int64_t{1000} * given.Number("--solo-us", 4000, 1);
  options.load.offered = given.Real("--offered", options.load.offered, 0.01);
  options.load.seed = given.Seed();
  options.runs = given.Number("--runs", options.runs, 0);
  options.threads = given.Number("--threads", options.threads, 1);
  options.rig.profile = given.Text("--profile", "");
  options.rig.seed = options.load.seed;
  given.Finish();
  return options;
}

double Ms(int64_t ns) { return static_cast<double>(ns) / 1e6; }
double Percent(int64_t over, int64_t under) {
  return 100 * (static_cast<double>(over) / static_cast<double>(under) - 1);
}

Json RowOf(const Mix& mix, const Comparison& comparison) {
  const std::vector<int64_t>& random = comparison.random_ns;
  Json row = {
      {"mix", mix.name},
      {"base_ms", Rounded(Ms(comparison.base_ns), 3)},
      {"kernelet_ms", Rounded(Ms(comparison.kernelet_ns), 3)},
      {"opt_ms", Rounded(Ms(comparison.opt_ns), 3)},
      {"adaptive_ms", Rounded(Ms(comparison.adaptive_ns), 3)},
      {"gain_percent", Rounded(Percent(comparison.base_ns, comparison.kernelet_ns), 2)},
      {"adaptive_gain_percent", Rounded(Percent(comparison.base_ns, comparison.adaptive_ns), 2)},
      {"opt_gain_percent", Rounded(Percent(comparison.base_ns, comparison.opt_ns), 2)},
      {"over_opt_percent", Rounded(Percent(comparison.kernelet_ns, comparison.opt_ns), 2)}};
  if (random.empty()) return row;
  Json quantiles = Json::array();
  for (int tenth = 0; tenth <= 10; ++tenth) {
    quantiles.push_back(Rounded(Ms(Quantile(random, tenth / 10.0)), 3));
  }
  row["random_min_ms"] = Rounded(Ms(random.front()), 3);
  row["random_median_ms"] = Rounded(Ms(Quantile(random, 0.5)), 3);
  row["random_max_ms"] = Rounded(Ms(random.back()), 3);
  row["random_deciles_ms"] = quantiles;
  row["random_better_than_kernelet"] =
      std::lower_bound(random.begin(), random.end(), comparison.kernelet_ns) - random.begin();
  row["random_better_than_base"] =
      std::lower_bound(random.begin(), random.end(), comparison.base_ns) - random.begin();
  return row;
}

void PrintRow(const Mix& mix, const Comparison& comparison) {
  const std::vector<int64_t>& random = comparison.random_ns;
  std::fprintf(stderr, "%-4s %9.1f %9.1f %9.1f %+7.1f %% %+7.1f %% %9.1f %+7.1f %%",
               mix.name.c_str(), Ms(comparison.base_ns), Ms(comparison.kernelet_ns),
               Ms(comparison.opt_ns), Percent(comparison.base_ns, comparison.kernelet_ns),
               Percent(comparison.kernelet_ns, comparison.opt_ns), Ms(comparison.adaptive_ns),
               Percent(comparison.base_ns, comparison.adaptive_ns));
  if (!random.empty()) {
    std::fprintf(stderr, " %9.1f %9.1f %9.1f", Ms(random.front()), Ms(Quantile(random, 0.5)),
                 Ms(random.back()));
  }
  std::fprintf(stderr, "\n");
}

int Run(Arguments& given) {
  const Options options = Parse(given);
  std::vector<Mix> mixes;
  std::set<std::string> kernels;
  for (const Mix& mix : PaperMixes()) {
    if (!benchmarks::IsChosen(options.mixes, mix.name)) continue;
    mixes.push_back(mix);
    kernels.insert(mix.kernels.begin(), mix.kernels.end());
  }
  if (mixes.empty()) {
    throw benchmarks::Failure("--mixes names none of CI, MI, MIX and ALL.", benchmarks::kBadUse);
  }
  const Oracle oracle({kernels.begin(), kernels.end()}, options.rig);
  benchmarks::Report report({{"experiment", "kernelet"},
                             {"simulated", true},
                             {"instances", options.load.instances},
                             {"solo_us", options.load.solo_ns / 1000},
                             {"offered", options.load.offered},
                             {"seed", options.load.seed},
                             {"random_runs", options.runs}},
                            "mixes");
  std::fprintf(stderr,
               "mix    BASE ms  kernelet       OPT      gain  over OPT  adaptive      gain    MC "
               "min    median       max\n");
  for (const Mix& mix : mixes) {
    const Comparison comparison =
        Compare(mix, options.load, oracle, options.runs, options.threads, options.rig);
    report.Row(RowOf(mix, comparison));
    PrintRow(mix, comparison);
  }
  Json pairs = Json::array();
  for (const auto& [pair, speed] : oracle.speeds()) {
    pairs.push_back({{"kernels", pair.kernel},
                     {"workers_per_sm", pair.workers},
                     {"speeds", {Rounded(speed[0], 4), Rounded(speed[1], 4)}}});
  }
  report.End({{"pairs", pairs}});
  return 0;
}

}  // namespace
}  // namespace gpushare::kernelet

int main(int argc, char** argv) {
  return gpushare::benchmarks::Main("kernelet_benchmark", argc, argv, gpushare::kernelet::Run);
}
