// The part `be` of the experiment `quota`: the time of a BE task under a quota of n SMs, made in
// four ways, over the ideal one, which is its time on all SMs times all SMs / n; and, by a kernel
// that records where its block tasks ran, on how many SMs each way runs.
//
// All ways take turns; medians. Fails on a wrong answer, on a block task that did not run once, and
// on one outside of its SMs.

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/gpu/overlap/quota.h"
#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/harness/quantiles.h"

namespace gpushare::benchmarks {
namespace {

void Measure(OverlapGpu& gpu, Probe& probe, BeTask& task, int quota, int repeats) {
  Limited& kernel = task.limited;
  std::map<Way, std::vector<double>> ms;
  std::vector<double> solo;
  for (int i = 0; i < repeats; ++i) {
    solo.push_back(kernel.SoloMs());
    // Another way comes first in each round.
    for (size_t w = 0; w < kWays.size(); ++w) {
      const Way way = kWays[(w + static_cast<size_t>(i)) % kWays.size()];
      ms[way].push_back(kernel.Ms(way, quota));
    }
  }
  const double ideal_ms = Median(solo) * gpu.sms() / quota;
  Json row = {{"experiment", "quota"},
              {"kernel", task.side.name()},
              {"quota_sms", quota},
              {"sms", gpu.sms()},
              {"solo_ms", Rounded(Median(solo), 4)},
              {"ideal_ms", Rounded(ideal_ms, 4)},
              {"quota_workers", task.side.Workers(quota)}};
  std::fprintf(stderr, "%-10s %4d", task.side.name(), quota);
  for (const Way way : kWays) {
    task.side.ClearOutput();
    static_cast<void>(kernel.Ms(way, quota));
    task.CheckOutput(NameOf(way), quota);
    const Probe::Seen seen = probe.Run(way, quota);
    const double over_ideal = Median(ms[way]) / ideal_ms;
    row[NameOf(way)] = {{"ms", Rounded(Median(ms[way]), 4)},
                        {"over_ideal", Rounded(over_ideal, 4)},
                        {"probe_sms", seen.sms()},
                        {"probe_workers", seen.workers}};
    std::fprintf(stderr, "  %10.4f (%3u SMs)", over_ideal, seen.sms());
  }
  for (const Way way : {Way::kRetreat, Way::kRetreatX4, Way::kSpread}) {
    row[std::string(NameOf(way)) + "_over_packed"] =
        Rounded(Median(ms[way]) / Median(ms[Way::kPacked]), 4);
  }
  row["repeats"] = repeats;
  row["answers"] = "right";
  PrintLine(row);
  std::fprintf(stderr, "  retreat / packed %.4f\n",
               Median(ms[Way::kRetreat]) / Median(ms[Way::kPacked]));
}

}  // namespace

void RunBe(OverlapGpu& gpu, const QuotaOptions& options) {
  const std::vector<int> quotas = GrantedQuotas(gpu, options.quotas);
  Probe probe(gpu);
  std::fprintf(stderr, "BE time over ideal (SMs that a probe saw)\n%-10s %4s", "kernel", "SMs");
  for (const Way way : kWays) std::fprintf(stderr, "  %20s", NameOf(way));
  std::fprintf(stderr, "\n");
  for (const char* name : {"sincos", "streaming", "ffma"}) {
    if (!IsChosen(options.only, name)) continue;
    BeTask task(gpu, name, options.solo_ms);
    for (const int quota : quotas) Measure(gpu, probe, task, quota, options.repeats);
  }
}

}  // namespace gpushare::benchmarks
