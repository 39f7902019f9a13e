// The BE side of quota_benchmark: the time of a BE task under a quota of n SMs, made in four ways,
// over the ideal one, which is its time on all SMs times all SMs / n; and, by a kernel that records
// where its block tasks ran, on how many SMs each way runs.
//
// All ways take turns; medians. Fails on a wrong answer, on a block task that did not run once, and
// on one outside of its SMs.

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "benchmarks/gpu/quota.h"
#include "benchmarks/gpu/quota_be_task.h"
#include "benchmarks/gpu/quota_gpu.h"
#include "benchmarks/gpu/quota_limited_kernel.h"
#include "benchmarks/gpu/quota_probe.h"

namespace gpushare::quota {
namespace {

constexpr uint32_t kProbeId = 100;

void CheckAnswer(BeTask& task, Way way, int quota) {
  task.ClearOutput();
  static_cast<void>(task.Ms(way, quota));
  task.CheckOutput(NameOf(way), quota);
}

void Report(Gpu& gpu, Probe& probe, BeTask& task, int quota, int repeats) {
  std::map<Way, std::vector<double>> ms;
  std::vector<double> solo;
  for (int i = 0; i < repeats; ++i) {
    solo.push_back(task.SoloMs());
    // Whoever comes first changes from round to round.
    for (size_t w = 0; w < kWays.size(); ++w) {
      const Way way = kWays[(w + static_cast<size_t>(i)) % kWays.size()];
      ms[way].push_back(task.Ms(way, quota));
    }
  }
  const double solo_ms = Median(solo);
  const double ideal_ms = solo_ms * gpu.sms() / quota;
  std::printf(
      "{\"experiment\": \"quota\", \"kernel\": \"%s\", \"quota_sms\": %d, \"sms\": %d, "
      "\"solo_ms\": %.4f, \"ideal_ms\": %.4f, \"quota_workers\": %d",
      task.name().c_str(), quota, gpu.sms(), solo_ms, ideal_ms, quota * task.workers_per_sm());
  std::fprintf(stderr, "%-10s %4d", task.name().c_str(), quota);
  for (const Way way : kWays) {
    CheckAnswer(task, way, quota);
    const Probe::Seen seen = probe.Run(way, quota);
    const double over_ideal = Median(ms[way]) / ideal_ms;
    std::printf(
        ", \"%s\": {\"ms\": %.4f, \"over_ideal\": %.4f, \"probe_sms\": %u, "
        "\"probe_workers\": %u}",
        NameOf(way), Median(ms[way]), over_ideal, seen.sms(), seen.workers);
    std::fprintf(stderr, "  %10.4f (%3u SMs)", over_ideal, seen.sms());
  }
  const double packed_ms = Median(ms[Way::kPacked]);
  std::printf(
      ", \"retreat_over_packed\": %.4f, \"retreat_x4_over_packed\": %.4f, "
      "\"spread_over_packed\": %.4f, \"repeats\": %d, \"answers\": \"right\"}\n",
      Median(ms[Way::kRetreat]) / packed_ms, Median(ms[Way::kRetreatX4]) / packed_ms,
      Median(ms[Way::kSpread]) / packed_ms, repeats);
  std::fprintf(stderr, "  retreat / packed %.4f\n", Median(ms[Way::kRetreat]) / packed_ms);
  std::fflush(stdout);
}

}  // namespace

void RunBeSide(Gpu& gpu, const Arguments& arguments) {
  std::vector<int> quotas;
  for (const int quota : arguments.quotas) {
    if (gpu.MakePacked(quota)) quotas.push_back(quota);
  }
  Probe probe(gpu, kProbeId);
  std::fprintf(stderr, "BE time over ideal (SMs that a probe saw)\n%-10s %4s", "kernel", "SMs");
  for (const Way way : kWays) std::fprintf(stderr, "  %20s", NameOf(way));
  std::fprintf(stderr, "\n");
  uint32_t id = 0;
  for (const char* name : {"sincos", "streaming", "ffma"}) {
    if (!arguments.only.empty() && arguments.only != name) continue;
    BeTask task(gpu, name, arguments.solo_ms, arguments.seed, ++id);
    for (const int quota : quotas) Report(gpu, probe, task, quota, arguments.repeats);
  }
}

}  // namespace gpushare::quota
