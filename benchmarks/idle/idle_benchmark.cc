// What the library's own thread costs the process that waits: processor time, wake-ups, and what it
// adds to submits and callbacks.
//
//   idle     a runtime without work
//   lc_N     N queries of 0.7 ms a second; the submitting thread sleeps between them, so that its
//            submits are cold
//   cold_N   the same, in turn with launches of the same kernel without the library (bare): what a
//            cold submit costs beyond a cold launch
//   step     one task of 0.2 ms after another: one thread submits it, awaits it, and then works on
//            its own for a while (60 us), as an engine's loop does; step_0.7 the same with 0.7 ms.
//            Each also with callers that sleep: what the wake-up costs. Goals: a step adds at most
//            20 us to the task at p50, and with --limits the program fails above 40 us
//   be       BE tasks of 5 ms, one on the device and two behind it
//   waiters  one query of a few microseconds after another, while 0, 8, 32 and 256 threads wait for
//            other tickets
//
// Each case runs in both modes, balanced and spin, one after the other, so that they see the same
// machine. Processor time and wake-ups (voluntary context switches) are those of the scheduler's
// thread, from /proc. One JSON object on stdout, a table on stderr.
//
// Use: idle_benchmark [--device paced|cuda] [--seconds S] [--only CASE,...] [--rounds N] [--limits]

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/harness/quantiles.h"
#include "benchmarks/idle/idle_subject.h"

namespace gpushare::benchmarks {
namespace {

constexpr char kThread[] = "gpushare-sched";
constexpr int kWarmUps = 40;
constexpr int kRates[] = {10, 50, 100};
constexpr int64_t kHostWorkNs = 60'000;  // of an engine between two steps (Steps)
// Most that a step of a caller that spins may add to its task at p50, us, with --limits. A sleep
// and a wake-up add 50 to 80 us.
constexpr double kStepLimitUs = 40;
constexpr int kWaiters[] = {0, 8, 32, 256};

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void SleepUntil(int64_t time_ns) {
  const timespec at = {time_ns / 1'000'000'000, time_ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) != 0) {
  }
}

// What the scheduler's thread has used so far.
struct Use {
  int64_t cpu_ns = 0;
  int64_t wakes = 0;
  int64_t at_ns = 0;
};

std::string FirstLine(const std::filesystem::path& path) {
  std::string line;
  std::getline(std::ifstream(path), line);
  return line;
}

Use UseNow() {
  Use use;
  use.at_ns = NowNs();
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    if (FirstLine(entry.path() / "comm") != kThread) continue;
    use.cpu_ns += std::stoll(FirstLine(entry.path() / "schedstat"));
    std::ifstream status(entry.path() / "status");
    for (std::string line; std::getline(status, line);) {
      if (line.rfind("voluntary_ctxt_switches:", 0) == 0) use.wakes += std::stoll(line.substr(24));
    }
  }
  return use;
}

Json UseSince(const Use& begin) {
  const Use end = UseNow();
  const auto seconds = static_cast<double>(end.at_ns - begin.at_ns) / 1e9;
  return {
      {"cpu_percent", Rounded(static_cast<double>(end.cpu_ns - begin.cpu_ns) / 1e7 / seconds, 2)},
      {"wakes_per_second", Rounded(static_cast<double>(end.wakes - begin.wakes) / seconds, 1)}};
}

// A query's way: submitted, and called back.
struct Flight {
  std::atomic<int64_t> done_ns{0};
};

void Land(void* user) { static_cast<Flight*>(user)->done_ns.store(NowNs()); }

struct Times {
  std::vector<int64_t> submit_ns;
  std::vector<int64_t> latency_ns;

  void Add(int64_t begin_ns, int64_t called_ns, const Flight& flight) {
    submit_ns.push_back(called_ns - begin_ns);
    latency_ns.push_back(flight.done_ns.load() - begin_ns);
  }
  void Into(Json& row) const {
    const auto us = [](const std::vector<int64_t>& ns, double quantile) {
      return Rounded(static_cast<double>(Quantile(ns, quantile)) / 1000, 2);
    };
    row["submit_p50_us"] = us(submit_ns, 0.5);
    row["submit_p99_us"] = us(submit_ns, 0.99);
    row["latency_p50_us"] = us(latency_ns, 0.5);
    row["latency_p99_us"] = us(latency_ns, 0.99);
  }
};

using Subject = std::unique_ptr<IdleSubject>;

// One query, which this thread waits for asleep.
void OneQuery(IdleSubject& subject, Times& times) {
  Flight flight;
  const int64_t begin_ns = NowNs();
  subject.Submit(Job::kQuery, &Land, &flight);
  const int64_t called_ns = NowNs();
  while (flight.done_ns.load() == 0) SleepUntil(NowNs() + 200'000);
  times.Add(begin_ns, called_ns, flight);
}

Json Idle(const Subject& subject, double seconds) {
  subject->Drain();
  SleepUntil(NowNs() + 100'000'000);
  const Use begin = UseNow();
  SleepUntil(NowNs() + static_cast<int64_t>(seconds * 1e9));
  return UseSince(begin);
}

Json Queries(const Subject& subject, int rate, double seconds) {
  Times times;
  for (int i = 0; i < kWarmUps; ++i) OneQuery(*subject, times);
  times = Times();
  const int64_t gap_ns = 1'000'000'000 / rate;
  const Use begin = UseNow();
  int64_t arrival_ns = NowNs() + gap_ns;
  for (int i = 0; i < static_cast<int>(seconds * rate); ++i, arrival_ns += gap_ns) {
    SleepUntil(arrival_ns);
    OneQuery(*subject, times);
  }
  Json row = UseSince(begin);
  times.Into(row);
  return row;
}

// A submit, then a bare launch, and so on: the processor is as cold for both.
Json ColdSubmits(const Subject& subject, int rate, double seconds) {
  Times times;
  std::vector<int64_t> bare_ns;
  const int64_t gap_ns = 1'000'000'000 / rate;
  int64_t arrival_ns = NowNs() + gap_ns;
  for (int i = 0; i < kWarmUps + static_cast<int>(seconds * rate); ++i) {
    if (i == kWarmUps) {
      times = Times();
      bare_ns.clear();
    }
    SleepUntil(arrival_ns);
    if (i % 2 == 0) {
      OneQuery(*subject, times);
    } else {
      bare_ns.push_back(subject->LaunchBare());
    }
    arrival_ns += gap_ns;
  }
  Json row;
  times.Into(row);
  row["bare_p50_us"] = Rounded(static_cast<double>(Quantile(bare_ns, 0.5)) / 1000, 2);
  row["bare_p99_us"] = Rounded(static_cast<double>(Quantile(bare_ns, 0.99)) / 1000, 2);
  return row;
}

int64_t OwnCpuNs() {
  timespec time = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * 1'000'000'000 + time.tv_nsec;
}

// What a step adds to its task, and what the caller's wait takes of a core.
Json Steps(const Subject& subject, Job job, double seconds) {
  const int64_t task_ns = job == Job::kStep ? kStepNs : kQueryNs;
  for (int i = 0; i < kWarmUps; ++i) subject->RunLc(job);
  std::vector<int64_t> added_ns;
  int64_t waits_cpu_ns = 0;
  const Use begin = UseNow();
  const int64_t end_ns = NowNs() + static_cast<int64_t>(seconds * 1e9);
  while (NowNs() < end_ns) {
    const int64_t cpu_ns = OwnCpuNs();
    const int64_t begin_ns = NowNs();
    subject->RunLc(job);
    const int64_t done_ns = NowNs();
    waits_cpu_ns += OwnCpuNs() - cpu_ns;
    added_ns.push_back(done_ns - begin_ns - task_ns);
    while (NowNs() < done_ns + kHostWorkNs) {
    }
  }
  const auto steps = static_cast<double>(added_ns.size());
  Json row = UseSince(begin);
  row["added_p50_us"] = Rounded(static_cast<double>(Quantile(added_ns, 0.5)) / 1000, 2);
  row["added_p99_us"] = Rounded(static_cast<double>(Quantile(added_ns, 0.99)) / 1000, 2);
  row["wait_cpu_us"] = Rounded(static_cast<double>(waits_cpu_ns) / steps / 1000, 2);
  row["steps"] = added_ns.size();
  return row;
}

// Keeps three BE tasks in the library, from the callbacks.
struct Refill {
  IdleSubject* subject = nullptr;
  std::atomic<bool> ends{false};
  std::atomic<int64_t> done{0};

  void Feed() {
    subject->Submit(
        Job::kBe,
        [](void* user) {
          auto* const refill = static_cast<Refill*>(user);
          refill->done.fetch_add(1);
          if (!refill->ends.load()) refill->Feed();
        },
        this);
  }
};

Json BestEffort(const Subject& subject, double seconds) {
  Refill refill;
  refill.subject = subject.get();
  for (int i = 0; i < 3; ++i) refill.Feed();
  SleepUntil(NowNs() + 300'000'000);
  const int64_t before = refill.done.load();
  const Use begin = UseNow();
  SleepUntil(NowNs() + static_cast<int64_t>(seconds * 1e9));
  Json row = UseSince(begin);
  const int64_t took_ns = NowNs() - begin.at_ns;
  row["be_share"] = Rounded(
      static_cast<double>((refill.done.load() - before) * kBeNs) / static_cast<double>(took_ns), 3);
  refill.ends.store(true);
  subject->Drain();
  return row;
}

// What the other threads wait for.
enum class Others { kTickets, kDrain };

// Submit to callback, one after another, while others wait.
Json BesideWaiters(const Subject& subject, Others others, int waiters, double seconds) {
  const uint64_t region = subject->BeginRegion();
  std::vector<std::thread> threads;
  for (int i = 0; i < waiters; ++i) {
    if (others == Others::kDrain) {
      threads.emplace_back([&subject] { subject->Drain(); });
      continue;
    }
    const uint64_t ticket = subject->Submit(Job::kShort, nullptr, nullptr, true, region);
    threads.emplace_back([&subject, ticket] { subject->Wait(ticket); });
  }
  SleepUntil(NowNs() + 50'000'000);
  Times times;
  const int64_t begin_ns = NowNs();
  const int64_t end_ns = begin_ns + static_cast<int64_t>(seconds * 1e9);
  while (NowNs() < end_ns) {
    Flight flight;
    const int64_t submit_ns = NowNs();
    subject->Submit(Job::kShort, &Land, &flight);
    const int64_t called_ns = NowNs();
    while (flight.done_ns.load() == 0) {
    }
    times.Add(submit_ns, called_ns, flight);
  }
  Json row;
  row["tasks_per_second"] = Rounded(static_cast<double>(times.latency_ns.size()) /
                                        (static_cast<double>(NowNs() - begin_ns) / 1e9),
                                    0);
  times.Into(row);
  subject->EndRegion(region);
  for (std::thread& thread : threads) thread.join();
  subject->Wait(region);
  return row;
}

int Run(Arguments& given) {
  const std::string device = given.Text("--device", GpuModel().empty() ? "paced" : "cuda");
  const double seconds = given.Real("--seconds", 4, 0.1);
  const int rounds = given.Number("--rounds", 1, 1);
  const std::vector<std::string> only = given.List("--only", {});
  const bool limits = given.Has("--limits");
  given.Finish();
  const auto open = [&](const SubjectOptions& options) {
    return device == "cuda" ? MakeCudaSubject(options) : MakePacedSubject(options);
  };
  Report report({{"device", device == "cuda" ? GpuModel() : "paced"}, {"seconds", seconds}},
                "cases");
  const auto row_of = [&](const std::string& name, const SubjectOptions& options, const auto& run) {
    const Subject subject = open(options);
    Json row = {{"case", name}, {"mode", options.spin ? "spin" : "balanced"}};
    if (options.callers_sleep) row["callers"] = "sleep";
    row.update(run(subject));
    report.Row(row);
    std::fprintf(stderr, "%s\n", row.dump().c_str());
    return row;
  };
  const auto measure = [&](const std::string& name, const auto& run) {
    if (!IsChosen(only, name)) return;
    for (int round = 0; round < rounds; ++round) {
      for (const bool spin : {false, true}) row_of(name, {.spin = spin}, run);
    }
  };
  const auto measure_steps = [&](const std::string& name, Job job) {
    if (!IsChosen(only, name)) return;
    const auto run = [&](const Subject& subject) { return Steps(subject, job, seconds); };
    for (int round = 0; round < rounds; ++round) {
      for (const bool spin : {false, true}) {
        row_of(name, {.spin = spin, .callers_sleep = true}, run);
        const Json row = row_of(name, {.spin = spin}, run);
        const double added_us = row["added_p50_us"];
        if (limits && added_us > kStepLimitUs) {
          Fail("A step adds " + std::to_string(added_us) + " us to its task at p50.");
        }
      }
    }
  };
  measure_steps("step", Job::kStep);
  measure_steps("step_0.7", Job::kQuery);
  measure("idle", [&](const Subject& subject) { return Idle(subject, seconds); });
  for (const int rate : kRates) {
    measure("lc_" + std::to_string(rate),
            [&](const Subject& subject) { return Queries(subject, rate, seconds); });
  }
  measure("cold_100", [&](const Subject& subject) { return ColdSubmits(subject, 100, seconds); });
  measure("be", [&](const Subject& subject) { return BestEffort(subject, seconds); });
  for (const int waiters : kWaiters) {
    measure("waiters_" + std::to_string(waiters), [&](const Subject& subject) {
      return BesideWaiters(subject, Others::kTickets, waiters, seconds / 4);
    });
  }
  measure("drains_256", [&](const Subject& subject) {
    return BesideWaiters(subject, Others::kDrain, 256, seconds / 4);
  });
  report.End();
  return 0;
}

}  // namespace
}  // namespace gpushare::benchmarks

int main(int argc, char** argv) {
  return gpushare::benchmarks::Main("idle_benchmark", argc, argv, gpushare::benchmarks::Run);
}
