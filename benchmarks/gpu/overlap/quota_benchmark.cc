// A BE quota of whole SMs made in four ways, LC beside it, and block tasks taken dynamically or
// bound to workers (SMGuard 6.2.1 and 5.2), on a GPU. Its parts:
//   be      BE time under a quota of n SMs over the ideal one: packed on a partition, spread, by
//           Filling & Retreating and by the same with four times the workers (quota_be.cc)
//   lc      LC time beside a BE kernel under a quota, over LC alone, and packed against Filling &
//           Retreating; BE's time with it (quota_lc.cc)
//   taking  block tasks of equal and of skewed lengths, taken from a counter or bound to workers
//           (quota_taking.cc)
//
// All ways take turns; medians. One JSON line a result on stdout, a table on stderr. Not 0: a wrong
// answer, a block task that did not run once, or one outside of its SMs. About 40 s with all parts.
//
// Use: quota_benchmark [--parts be,lc,taking] [--seed N] [--only BE_KERNEL,...]
//   be, taking: [--repeats N] [--ms SOLO_MS] [--quotas 8,16,...]
//   lc: [--lc-quotas 8,32,...] [--lc-launches N] [--lc-us LC_SOLO_US] [--be-ms BE_LAUNCH_MS]
//       [--lc-seconds LIMIT]

#include <string>

#include "benchmarks/gpu/overlap/quota.h"
#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/gpu_device.h"
#include "benchmarks/harness/json.h"

namespace gpushare::benchmarks {
namespace {

QuotaOptions Parse(Arguments& given) {
  QuotaOptions options;
  options.parts = given.List("--parts", {"be", "lc", "taking"});
  options.seed = static_cast<uint32_t>(given.Seed());
  options.only = given.List("--only", {});
  options.repeats = given.Number("--repeats", options.repeats, 1);
  options.solo_ms = given.Real("--ms", options.solo_ms, 0.1);
  options.quotas = given.Numbers("--quotas", {8, 16, 32, 48, 64, 84, 100, 124}, 1);
  options.lc_quotas = given.Numbers("--lc-quotas", {8, 32, 64, 96, 124}, 1);
  options.lc_launches = given.Number("--lc-launches", options.lc_launches, 1);
  options.lc_us = given.Real("--lc-us", options.lc_us, 10);
  options.be_ms = given.Real("--be-ms", options.be_ms, 2);
  options.lc_seconds = given.Real("--lc-seconds", options.lc_seconds, 0);
  given.Finish();
  for (const std::string& part : options.parts) {
    if (part == "be" || part == "lc" || part == "taking") continue;
    throw Failure("There is no part '" + part + "': there are be, lc and taking.", kBadUse);
  }
  return options;
}

int Run(Arguments& given) {
  const QuotaOptions options = Parse(given);
  const char* const connections = UseManyConnections();
  QuotaGpu gpu;
  PrintLine({{"experiment", "machine"},
             {"gpu", gpu.model()},
             {"sms", gpu.sms()},
             {"repeats", options.repeats},
             {"solo_ms", Rounded(options.solo_ms, 2)},
             {"lc_us", Rounded(options.lc_us, 1)},
             {"be_ms", Rounded(options.be_ms, 2)},
             {"seed", options.seed},
             {kConnections, connections}});
  for (const std::string& part : options.parts) {
    if (part == "be") RunBe(gpu, options);
    if (part == "lc") RunLc(gpu, options);
    if (part == "taking") RunTaking(gpu.sms(), options);
  }
  return 0;
}

}  // namespace
}  // namespace gpushare::benchmarks

int main(int argc, char** argv) {
  return gpushare::benchmarks::Main("quota_benchmark", argc, argv, gpushare::benchmarks::Run);
}
