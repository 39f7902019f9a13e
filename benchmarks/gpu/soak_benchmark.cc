// The soak as a program: runs everything at once for a while (soak.h), prints one JSON line on
// stdout and a table on stderr. 0: every check held; 1: one did not; 77: there is no such device.
//
// Use: soak_benchmark [--seconds N] [--seed N] [--device cuda|sim] [--policies a,b,...]
//                     [--sim-faults name=value,...] [--break answer|callback|twice|memory|status]
//                     [--progress]

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "benchmarks/gpu/soak.h"
#include "benchmarks/gpu/soak_work.h"

namespace {

using gpushare::soak::Break;
using gpushare::soak::Growth;
using gpushare::soak::Options;
using gpushare::soak::Report;

constexpr int kSkipped = 77;

[[noreturn]] void Refuse(const std::string& why) {
  std::fprintf(stderr, "soak_benchmark: %s\n", why.c_str());
  std::exit(2);
}

Break BreakOf(const std::string& name) {
  if (name == "answer") return Break::kAnswer;
  if (name == "callback") return Break::kCallback;
  if (name == "twice") return Break::kTwice;
  if (name == "memory") return Break::kMemory;
  if (name == "status") return Break::kStatus;
  Refuse("--break '" + name + "' is not answer, callback, twice, memory or status.");
}

Options Parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--progress") {
      options.progress = true;
      continue;
    }
    if (i + 1 >= argc) Refuse("The option '" + name + "' has no value.");
    const std::string value = argv[++i];
    if (name == "--seconds") {
      options.seconds = std::atof(value.c_str());
      if (!(options.seconds > 0)) Refuse("--seconds is '" + value + "', and must be above 0.");
    } else if (name == "--seed") {
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (name == "--device") {
      options.device = value;
      if (value != "cuda" && value != "sim")
        Refuse("--device is cuda or sim, not '" + value + "'.");
    } else if (name == "--policies") {
      options.policies.clear();
      for (size_t at = 0; at <= value.size();) {
        const size_t end = std::min(value.find(',', at), value.size());
        if (end > at) options.policies.push_back(value.substr(at, end - at));
        at = end + 1;
      }
    } else if (name == "--sim-faults") {
      options.sim_faults = value;
    } else if (name == "--break") {
      options.broken = BreakOf(value);
    } else {
      Refuse("The option '" + name + "' is not known.");
    }
  }
  return options;
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return quoted + '"';
}

double Mb(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

// Names and values of the counters, in the order in which they are printed.
struct Counter {
  const char* name;
  int64_t value;
};

void Print(const Options& options, const Report& report) {
  const Counter counters[] = {{"accepted", report.accepted},
                              {"ok", report.ok},
                              {"cancelled", report.cancelled},
                              {"refused", report.refused},
                              {"queries", report.queries},
                              {"answers_checked", report.answers_checked},
                              {"callbacks", report.callbacks},
                              {"callbacks_expected", report.callbacks_expected},
                              {"failed_waiting", report.failed_waiting},
                              {"cancels", report.cancels},
                              {"cancels_overtaken", report.cancels_overtaken},
                              {"waits_timed_out", report.waits_timed_out},
                              {"apps", report.apps},
                              {"releases_refused", report.releases_refused},
                              {"reservations", report.reservations},
                              {"quiesces", report.quiesces},
                              {"policy_changes", report.policy_changes},
                              {"evictions", report.evictions},
                              {"launches", report.launches},
                              {"failures", report.failure_count}};
  std::printf("{\"experiment\": \"soak\", \"device\": %s, \"seed\": %llu, \"seconds\": %.3f",
              Quoted(report.device).c_str(), static_cast<unsigned long long>(options.seed),
              report.seconds);
  for (const Counter& counter : counters) {
    std::printf(", \"%s\": %lld", counter.name, static_cast<long long>(counter.value));
    std::fprintf(stderr, "%-20s %12lld\n", counter.name, static_cast<long long>(counter.value));
  }
  std::printf(
      ", \"resident_first_mb\": %.3f, \"resident_last_mb\": %.3f, \"resident_grew_mb\": %.3f",
      Mb(report.resident.first_bytes), Mb(report.resident.last_bytes), Mb(report.resident.bytes()));
  std::printf(", \"device_memory_grew_mb\": %.3f, \"memory_checked\": %s, \"passed\": %s",
              Mb(report.device_memory.bytes()), report.resident.enough ? "true" : "false",
              report.failure_count == 0 ? "true" : "false");
  std::printf(", \"first_failures\": [");
  for (size_t i = 0; i < report.failures.size(); ++i) {
    std::printf("%s%s", i == 0 ? "" : ", ", Quoted(report.failures[i]).c_str());
    std::fprintf(stderr, "FAILED: %s\n", report.failures[i].c_str());
  }
  std::printf("]}\n");
  std::fprintf(stderr, "%-20s %12.3f\n%-20s %12.3f\n%s in %.1f s\n", "resident grew, MB",
               Mb(report.resident.bytes()), "device grew, MB", Mb(report.device_memory.bytes()),
               report.failure_count == 0 ? "passed" : "FAILED", report.seconds);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = Parse(argc, argv);
  std::string why;
  if (options.device == "cuda" && gpushare::soak::MakeCudaWork(&why) == nullptr) {
    std::fprintf(stderr, "soak_benchmark is skipped: %s\n", why.c_str());
    return kSkipped;
  }
  const Report report = gpushare::soak::RunSoak(options);
  Print(options, report);
  return report.failure_count == 0 ? 0 : 1;
}
