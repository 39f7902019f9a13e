// Kernelet's comparison (5.4, figures 13 and 14): the total time of the mixes CI, MI, MIX and ALL
// under BASE, kernelet, OPT, adaptive, adaptive:apart and random schedules, on the simulated device
// or on a GPU.
//
// The gains are throughput: BASE's time over the scheduler's, less 1, of the medians over the
// rounds. One JSON object on stdout, a table on stderr.
//
// Use: kernelet_benchmark [--device sim|cuda] [--mixes CI,MI,MIX,ALL] [--instances N] [--solo-us T]
//                         [--offered X] [--schedulers base,kernelet,opt,adaptive,apart]
//                         [--rounds N] [--runs N] [--random-instances N] [--threads N] [--seed N]
//                         [--profile FILE]
//
// --runs: random schedules; 1,000 on the simulated device and none on a GPU unless it is given.
// --random-instances: of each kernel in a random schedule, and in kernelet's run beside them.
// --threads: of the random schedules on the simulated device. On a GPU all runs go one by one.

#include <algorithm>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/harness/quantiles.h"
#include "benchmarks/kernelet/mixes.h"
#include "benchmarks/kernelet/oracle.h"
#include "benchmarks/kernelet/platform.h"
#include "benchmarks/kernelet/schedules.h"

namespace gpushare::kernelet {
namespace {

using benchmarks::Arguments;
using benchmarks::Json;
using benchmarks::Quantile;
using benchmarks::Rounded;

struct Options {
  Load load;
  Contest contest;
  std::vector<Mix> mixes;
  RigOptions rig;
  std::unique_ptr<Platform> gpu;  // null: simulated
};

std::vector<Mix> MixesNamed(const std::vector<std::string>& names) {
  std::vector<Mix> mixes;
  for (const Mix& mix : PaperMixes()) {
    if (benchmarks::IsChosen(names, mix.name)) mixes.push_back(mix);
  }
  if (mixes.empty()) {
    throw benchmarks::Failure("--mixes names none of CI, MI, MIX and ALL.", benchmarks::kBadUse);
  }
  return mixes;
}

std::vector<std::string> SchedulersNamed(const std::vector<std::string>& names) {
  std::vector<std::string> chosen;
  for (const std::string& name : SchedulerNames()) {
    if (benchmarks::IsChosen(names, name)) chosen.push_back(name);
  }
  if (chosen.size() != names.size()) {
    throw benchmarks::Failure(
        "--schedulers must name some of base, kernelet, opt, adaptive and apart.",
        benchmarks::kBadUse);
  }
  return chosen;
}

void OpenDevice(const std::string& device, Options& options) {
  if (device == "sim") return;
  if (device != "cuda") {
    throw benchmarks::Failure("--device is '" + device + "', and it must be sim or cuda.",
                              benchmarks::kBadUse);
  }
  options.gpu = MakeCudaPlatform();
  options.rig.platform = options.gpu.get();
}

Options Parse(Arguments& given) {
  Options options;
  const std::string device = given.Text("--device", "sim");
  options.mixes = MixesNamed(given.List("--mixes", {}));
  options.load.instances = given.Number("--instances", options.load.instances, 1);
  options.load.solo_ns = int64_t{1000} * given.Number("--solo-us", 4000, 1);
  options.load.offered = given.Real("--offered", options.load.offered, 0.01);
  options.load.seed = given.Seed();
  options.contest.schedulers = SchedulersNamed(given.List("--schedulers", SchedulerNames()));
  options.contest.rounds = given.Number("--rounds", 1, 1);
  options.contest.random_runs = given.Number("--runs", device == "sim" ? 1000 : 0, 0);
  options.contest.random_instances = given.Number("--random-instances", 0, 0);
  options.contest.threads = given.Number("--threads", 2, 1);
  options.rig.profile = given.Text("--profile", "");
  options.rig.seed = options.load.seed;
  given.Finish();
  OpenDevice(device, options);
  if (options.gpu != nullptr) options.contest.threads = 1;
  return options;
}

double ToMs(int64_t ns) { return static_cast<double>(ns) / 1e6; }
Json Ms(int64_t ns) { return Rounded(ToMs(ns), 3); }
double ToPercent(int64_t over, int64_t under) {
  return 100 * (static_cast<double>(over) / static_cast<double>(under) - 1);
}
Json Percent(int64_t over, int64_t under) { return Rounded(ToPercent(over, under), 2); }

void AddGains(const Comparison& comparison, Json& row) {
  const std::pair<const char*, const char*> gains[] = {{kKernelet, "gain_percent"},
                                                       {kAdaptive, "adaptive_gain_percent"},
                                                       {kApart, "apart_gain_percent"},
                                                       {kOpt, "opt_gain_percent"}};
  for (const auto& [name, key] : gains) {
    if (!comparison.Has(kBase) || !comparison.Has(name)) continue;
    row[key] = Percent(comparison.MedianNs(kBase), comparison.MedianNs(name));
  }
  if (comparison.Has(kKernelet) && comparison.Has(kOpt)) {
    row["over_opt_percent"] = Percent(comparison.MedianNs(kKernelet), comparison.MedianNs(kOpt));
  }
}

void AddRounds(const Comparison& comparison, const Contest& contest, Json& row) {
  if (contest.rounds == 1) return;
  for (const std::string& name : contest.schedulers) {
    Json& rounds = row["rounds_ms"][name] = Json::array();
    for (const int64_t ns : comparison.total_ns.at(name)) rounds.push_back(Ms(ns));
  }
}

int64_t CountBelow(const std::vector<int64_t>& ascending, int64_t limit) {
  return std::lower_bound(ascending.begin(), ascending.end(), limit) - ascending.begin();
}

void AddRandom(const Comparison& comparison, Json& row) {
  const std::vector<int64_t>& random = comparison.random_ns;
  if (random.empty()) return;
  row["kernelet_beside_random_ms"] = Ms(comparison.kernelet_beside_random_ns);
  row["random_better_than_kernelet"] = CountBelow(random, comparison.kernelet_beside_random_ns);
  row["random_min_ms"] = Ms(random.front());
  row["random_median_ms"] = Ms(Quantile(random, 0.5));
  row["random_max_ms"] = Ms(random.back());
  Json& deciles = row["random_deciles_ms"] = Json::array();
  for (int tenth = 0; tenth <= 10; ++tenth) deciles.push_back(Ms(Quantile(random, tenth / 10.0)));
}

Json RowOf(const Mix& mix, const Contest& contest, const Comparison& comparison) {
  Json row = {{"mix", mix.name}};
  for (const std::string& name : contest.schedulers) {
    row[name + "_ms"] = Ms(comparison.MedianNs(name));
  }
  AddGains(comparison, row);
  AddRounds(comparison, contest, row);
  AddRandom(comparison, row);
  return row;
}

void PrintHead(const Contest& contest) {
  std::fprintf(stderr, "%-4s", "mix");
  for (const std::string& name : contest.schedulers) {
    std::fprintf(stderr, " %11s   gain", (name + " ms").c_str());
  }
  std::fprintf(stderr, "%s\n", contest.random_runs > 0 ? "   MC min    median       max" : "");
}

void PrintRow(const Mix& mix, const Contest& contest, const Comparison& comparison) {
  std::fprintf(stderr, "%-4s", mix.name.c_str());
  for (const std::string& name : contest.schedulers) {
    const int64_t ns = comparison.MedianNs(name);
    std::fprintf(stderr, " %11.1f", ToMs(ns));
    if (comparison.Has(kBase)) {
      std::fprintf(stderr, " %+5.1f%%", ToPercent(comparison.MedianNs(kBase), ns));
    } else {
      std::fprintf(stderr, "       ");
    }
  }
  const std::vector<int64_t>& random = comparison.random_ns;
  if (!random.empty()) {
    std::fprintf(stderr, " %8.1f %9.1f %9.1f", ToMs(random.front()), ToMs(Quantile(random, 0.5)),
                 ToMs(random.back()));
  }
  std::fprintf(stderr, "\n");
}

Json HeadOf(const Options& options) {
  Json policies = Json::object();
  for (const std::string& name : options.contest.schedulers) policies[name] = PolicyOf(name);
  Json head = {{"experiment", "kernelet"},
               {"simulated", options.gpu == nullptr},
               {"device", options.rig.platform->device()}};
  if (options.gpu != nullptr) head["gpu"] = options.gpu->gpu();
  head["instances"] = options.load.instances;
  head["solo_us"] = options.load.solo_ns / 1000;
  head["offered"] = options.load.offered;
  head["seed"] = options.load.seed;
  head["policies"] = policies;
  head["rounds"] = options.contest.rounds;
  head["random_runs"] = options.contest.random_runs;
  if (options.contest.random_instances > 0) {
    head["random_instances"] = options.contest.random_instances;
  }
  return head;
}

// What OPT knows.
Json TailOf(const Oracle* oracle) {
  if (oracle == nullptr) return Json::object();
  Json alone = Json::object();
  for (const auto& [kernel, ns] : oracle->alone_ns()) alone[kernel] = Rounded(ns, 3);
  Json pairs = Json::array();
  for (const auto& [pair, speed] : oracle->speeds()) {
    pairs.push_back({{"kernels", pair.kernel},
                     {"workers_per_sm", pair.workers},
                     {"speeds", {Rounded(speed[0], 4), Rounded(speed[1], 4)}}});
  }
  return {{"alone_block_ns", alone}, {"pairs", pairs}};
}

std::unique_ptr<Oracle> OracleFor(const Options& options) {
  const std::vector<std::string>& schedulers = options.contest.schedulers;
  if (std::find(schedulers.begin(), schedulers.end(), kOpt) == schedulers.end()) return nullptr;
  std::set<std::string> kernels;
  for (const Mix& mix : options.mixes) kernels.insert(mix.kernels.begin(), mix.kernels.end());
  auto oracle = std::make_unique<Oracle>(std::vector<std::string>{kernels.begin(), kernels.end()},
                                         options.rig);
  if (options.gpu != nullptr) {
    std::fprintf(stderr, "%zu pairs are measured for OPT.\n", oracle->speeds().size());
  }
  return oracle;
}

int Run(Arguments& given) {
  const Options options = Parse(given);
  const std::unique_ptr<Oracle> oracle = OracleFor(options);
  benchmarks::Report report(HeadOf(options), "mixes");
  PrintHead(options.contest);
  for (const Mix& mix : options.mixes) {
    const Comparison comparison =
        Compare(mix, options.load, options.contest, oracle.get(), options.rig);
    report.Row(RowOf(mix, options.contest, comparison));
    PrintRow(mix, options.contest, comparison);
  }
  report.End(TailOf(oracle.get()));
  return 0;
}

}  // namespace
}  // namespace gpushare::kernelet

int main(int argc, char** argv) {
  return gpushare::benchmarks::Main("kernelet_benchmark", argc, argv, gpushare::kernelet::Run);
}
