// The soak as a program: runs everything at once for a while (soak.h), prints one JSON line on
// stdout and a table on stderr. 0: every check held; 1: one did not; 77: there is no such device.
//
// Use: soak_benchmark [--seconds N] [--seed N] [--device cuda|sim] [--policies a,b,...]
//                     [--sim-faults name=value,...] [--break answer|callback|twice|memory|status]
//                     [--progress]

#include <cstdio>
#include <string>

#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/soak/soak.h"
#include "benchmarks/soak/soak_work.h"

namespace gpushare::soak {
namespace {

using benchmarks::Arguments;
using benchmarks::Failure;
using benchmarks::Json;
using benchmarks::kBadUse;
using benchmarks::Rounded;

Break BreakOf(const std::string& name) {
  if (name == "answer") return Break::kAnswer;
  if (name == "callback") return Break::kCallback;
  if (name == "twice") return Break::kTwice;
  if (name == "memory") return Break::kMemory;
  if (name == "status") return Break::kStatus;
  if (name.empty()) return Break::kNothing;
  throw Failure("--break '" + name + "' is not answer, callback, twice, memory or status.",
                kBadUse);
}

Options Parse(Arguments& given) {
  Options options;
  options.progress = given.Has("--progress");
  options.seconds = given.Real("--seconds", options.seconds, 0.001);
  options.seed = given.Seed();
  options.device = given.Text("--device", options.device);
  options.policies = given.List("--policies", options.policies);
  options.sim_faults = given.Text("--sim-faults", "");
  options.broken = BreakOf(given.Text("--break", ""));
  given.Finish();
  if (options.device != "cuda" && options.device != "sim") {
    throw Failure("--device is cuda or sim, not '" + options.device + "'.", kBadUse);
  }
  return options;
}

double Mb(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

void Print(const Options& options, const Report& report) {
  Json line = {{"experiment", "soak"},
               {"device", report.device},
               {"seed", options.seed},
               {"seconds", Rounded(report.seconds, 3)}};
  for (const auto& [name, value] : report.counters) {
    line[name] = value;
    std::fprintf(stderr, "%-20s %12lld\n", name, static_cast<long long>(value));
  }
  line["resident_first_mb"] = Rounded(Mb(report.resident.first_bytes), 3);
  line["resident_last_mb"] = Rounded(Mb(report.resident.last_bytes), 3);
  line["resident_grew_mb"] = Rounded(Mb(report.resident.bytes()), 3);
  line["device_memory_grew_mb"] = Rounded(Mb(report.device_memory.bytes()), 3);
  line["memory_checked"] = report.resident.enough;
  line["passed"] = report.failure_count == 0;
  line["first_failures"] = report.failures;
  benchmarks::PrintLine(line);
  for (const std::string& failure : report.failures) {
    std::fprintf(stderr, "FAILED: %s\n", failure.c_str());
  }
  std::fprintf(stderr, "%-20s %12.3f\n%-20s %12.3f\n%s in %.1f s\n", "resident grew, MB",
               Mb(report.resident.bytes()), "device grew, MB", Mb(report.device_memory.bytes()),
               report.failure_count == 0 ? "passed" : "FAILED", report.seconds);
}

int RunProgram(Arguments& given) {
  const Options options = Parse(given);
  std::string why;
  if (options.device == "cuda" && MakeCudaWork(&why) == nullptr) {
    throw Failure("The soak is skipped. " + why, benchmarks::kNoGpu);
  }
  const Report report = RunSoak(options);
  Print(options, report);
  return report.failure_count == 0 ? 0 : benchmarks::kFailed;
}

}  // namespace
}  // namespace gpushare::soak

int main(int argc, char** argv) {
  return gpushare::benchmarks::Main("soak_benchmark", argc, argv, gpushare::soak::RunProgram);
}
