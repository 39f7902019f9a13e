// When equal warps of one scheduler end: the simulated side of `order` in
// benchmarks/gpu/warp_scheduler_benchmark.cu. 32 warps run FFMA loops that fill every issue slot.

#include <algorithm>
#include <array>
#include <cstdio>
#include <vector>

#include "benchmarks/harness/failure.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/warp/experiments.h"
#include "benchmarks/warp/runs.h"
#include "src/sim/warp/trace.h"

namespace gpushare::warp_experiments {
namespace {

using benchmarks::Json;
using benchmarks::Rounded;

constexpr char kLoop[] = R"(warp-trace 1
kernel order
warps 32
blocks 1
loop 50
  float after=8 repeat=128
end
)";
constexpr int64_t kWarpInstructions = 50 * 128;
constexpr size_t kWarps = 32;
constexpr size_t kSchedulers = 4;

// Last issues of the warps of scheduler 0, in the order of their age, over the last of them.
Json EndsByAge(const Options& options, const Policy& policy, const sim::warp::Program& program) {
  std::vector<sim::warp::IssueRecord> log;
  sim::warp::SimulationOptions simulation;
  simulation.machine = options.machine;
  simulation.policy = policy.policy;
  simulation.log = &log;
  simulation.log_max = kWarps * kWarpInstructions;
  benchmarks::Require(sim::warp::Simulate(simulation, {{.program = &program}}).status());
  std::array<int64_t, kWarps> ends = {};
  for (const sim::warp::IssueRecord& issue : log)
    ends[static_cast<size_t>(issue.warp)] = issue.cycle;
  int64_t last = 0;
  for (size_t warp = 0; warp < kWarps; warp += kSchedulers) last = std::max(last, ends[warp]);
  Json by_age = Json::array();
  std::fprintf(stderr, "%-8s", policy.name.c_str());
  for (size_t warp = 0; warp < kWarps; warp += kSchedulers) {
    const double share = static_cast<double>(ends[warp]) / static_cast<double>(last);
    by_age.push_back(Rounded(share, 3));
    std::fprintf(stderr, " %6.3f", share);
  }
  std::fprintf(stderr, "\n");
  return by_age;
}

}  // namespace

int Order(const Options& options) {
  const auto program = benchmarks::Take(sim::warp::ParseTrace(kLoop, "order"));
  Json result = {{"experiment", "order"}, {"simulated", true}, {"machine", options.machine.name}};
  for (const Policy& policy : Policies()) {
    if (policy.policy == sim::warp::WarpPolicy::kRtPaws) continue;  // with one priority it is gto
    result["ends_by_age"][policy.name] = EndsByAge(options, policy, program);
  }
  benchmarks::PrintLine(result);
  return 0;
}

}  // namespace gpushare::warp_experiments
