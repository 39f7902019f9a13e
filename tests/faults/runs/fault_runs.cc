// Seeded fault runs through the public C API: each seed draws faults of the simulated device, a
// policy, options and an application, then drains and shuts down. Whatever fails, each accepted
// task completes exactly once and its record is true (checks.h).
//
// Use: fault_runs [--seeds N] [--from SEED] [--seconds S] [--runs-min N] [--profile FILE]
//      fault_runs --seed SEED [--profile FILE]     one run, with every action printed
// S: stop after so long. Fewer runs than --runs-min are a failure then (default 1).
// Exit code: 0; 1 a run broke a promise, and its seed is printed, or too little was tested; 2 bad
// use.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/faults/runs/actions.h"
#include "tests/faults/runs/checks.h"
#include "tests/faults/runs/run_plan.h"
#include "tests/faults/runs/session.h"

namespace gpushare::fault_runs {
namespace {

constexpr int kFailuresMax = 20;  // printed
constexpr int kVerdicts = 8;
// From so many runs on, the share of those without a device is judged; in a few it is chance.
constexpr int64_t kRunsJudged = 100;

struct Options {
  int64_t seeds = 5000;
  uint64_t from = 1;
  double seconds = 1e9;
  int64_t runs_min = 1;
  const char* profile_path = nullptr;
  bool verbose = false;
};

struct Totals {
  int64_t runs = 0;
  int64_t refused_opens = 0;
  int64_t accepted = 0;
  int64_t refused = 0;
  int64_t verdicts[kVerdicts] = {};
  int64_t failed_runs = 0;
};

void Use(Session& session, const RunPlan& plan) {
  for (int i = 0; i < plan.actions; ++i) Act(session);
  if (session.random().Chance(0.5)) {
    session.Call("gpushare_runtime_drain",
                 gpushare_runtime_drain(session.runtime(), session.NowNs() + kS / 2),
                 {GPUSHARE_DEADLINE_EXCEEDED});
  }
}

void Count(const Ledger& ledger, Totals& totals) {
  totals.refused += ledger.refused;
  for (const auto& entry : ledger.entries) {
    totals.accepted += entry->accepted ? 1 : 0;
    const int32_t verdict = entry->record.verdict;
    if (entry->callbacks > 0 && verdict >= 0 && verdict < kVerdicts) ++totals.verdicts[verdict];
  }
}

// Whether every promise was kept.
bool Run(uint64_t seed, const Options& options, Totals& totals) {
  Random random(seed);
  const RunPlan plan = DrawPlan(random);
  if (options.verbose)
    std::printf("seed %llu: %s\n", (unsigned long long)seed, Describe(plan).c_str());
  Session session(random, options.verbose);
  const bool opened = session.Open(plan, OptionsOf(plan, options.profile_path, seed));
  if (opened) Use(session, plan);
  if (session.runtime() != nullptr) {
    session.Shutdown();
    CheckAll(session);
    session.Release();
  }
  ++totals.runs;
  totals.refused_opens += opened ? 0 : 1;
  Count(session.ledger(), totals);
  if (session.ledger().problems.empty()) return true;
  if (++totals.failed_runs > kFailuresMax) return false;
  std::printf("FAILED: seed %llu (%s)\n", (unsigned long long)seed, Describe(plan).c_str());
  for (const std::string& problem : session.ledger().problems) {
    std::printf("  %s\n", problem.c_str());
  }
  std::printf("  Replay: fault_runs --seed %llu", (unsigned long long)seed);
  if (options.profile_path != nullptr) std::printf(" --profile %s", options.profile_path);
  std::printf("\n");
  return false;
}

void Print(const Totals& totals, double seconds) {
  std::printf("%lld runs in %.1f s, %lld without a device; %lld tasks accepted, %lld refused;",
              (long long)totals.runs, seconds, (long long)totals.refused_opens,
              (long long)totals.accepted, (long long)totals.refused);
  for (int32_t i = 0; i < kVerdicts; ++i) {
    std::printf(" %s %lld", gpushare_verdict_name(i), (long long)totals.verdicts[i]);
  }
  std::printf("; %lld runs FAILED\n", (long long)totals.failed_runs);
}

// Whether enough runs were made, and most of them on a device.
bool TestedEnough(const Totals& totals, const Options& options) {
  bool enough = true;
  if (totals.runs < options.runs_min) {
    std::printf("FAILED: %lld runs were made, and --runs-min is %lld.\n", (long long)totals.runs,
                (long long)options.runs_min);
    enough = false;
  }
  if (totals.runs >= kRunsJudged && totals.refused_opens > totals.runs / 2) {
    std::printf("FAILED: %lld of %lld runs had no device; at most half may have none.\n",
                (long long)totals.refused_opens, (long long)totals.runs);
    enough = false;
  }
  return enough;
}

bool Parse(int argc, char** argv, Options& options) {
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const char* const value = argv[i + 1];
    if (name == "--seeds") {
      options.seeds = std::strtoll(value, nullptr, 10);
    } else if (name == "--from") {
      options.from = std::strtoull(value, nullptr, 10);
    } else if (name == "--seconds") {
      options.seconds = std::strtod(value, nullptr);
    } else if (name == "--runs-min") {
      options.runs_min = std::strtoll(value, nullptr, 10);
    } else if (name == "--profile") {
      options.profile_path = value;
    } else if (name == "--seed") {
      options.from = std::strtoull(value, nullptr, 10);
      options.seeds = 1;
      options.verbose = true;
    } else {
      return false;
    }
  }
  return argc % 2 == 1 && options.seeds > 0;
}

int Main(int argc, char** argv) {
  Options options;
  if (!Parse(argc, argv, options)) {
    std::fprintf(stderr,
                 "fault_runs [--seeds N] [--from SEED] [--seconds S] [--runs-min N] "
                 "[--seed SEED] [--profile FILE]\n");
    return 2;
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto elapsed_s = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  Totals totals;
  for (int64_t i = 0; i < options.seeds && elapsed_s() < options.seconds; ++i) {
    Run(options.from + static_cast<uint64_t>(i), options, totals);
  }
  Print(totals, elapsed_s());
  return TestedEnough(totals, options) && totals.failed_runs == 0 ? 0 : 1;
}

}  // namespace
}  // namespace gpushare::fault_runs

int main(int argc, char** argv) { return gpushare::fault_runs::Main(argc, argv); }
