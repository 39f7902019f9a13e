// device_experiments NAME | all: questions about one GPU that the CUDA device depends on.
//
// `all` runs each experiment in a process of its own, one after the other, with a bound on its
// time, so that a failure or a hang of one does not lose the others. No CUDA call is made here.
// Output: one JSON object an experiment on stdout, lines for people on stderr.

#include "benchmarks/device/device_experiments.h"

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

namespace {

constexpr int kProcessBoundMs = 20'000;
// An experiment prints what it has before `all` would end it.
constexpr int kReportBoundMs = 18'000;
constexpr char kConnections[] = "CUDA_DEVICE_MAX_CONNECTIONS";

struct Experiment {
  const char* name;
  const char* connections;  // CUDA_DEVICE_MAX_CONNECTIONS; null: unset
  void (*run)();
  const char* question;
};

constexpr Experiment kExperiments[] = {
    {"smset", nullptr, experiments::RunSmSet,
     "Which SMs belong to each group of 8, and to each GPC?"},
    {"graph_place", nullptr, experiments::RunGraphPlace,
     "Which ways of capturing, rebinding and launching confine a graph to a green context, and "
     "what "
     "do unions of groups cost?"},
    {"evict_signal", nullptr, experiments::RunEvictSignal,
     "How long from the host's eviction until a running kernel saw the word, by way, busy BE "
     "streams "
     "and idle streams? (us)"},
    {"evict_signal_connections32", "32", experiments::RunEvictSignal,
     "As evict_signal, with CUDA_DEVICE_MAX_CONNECTIONS=32. (us)"},
    {"evict_to_lc", nullptr, experiments::RunEvictToLc,
     "How long from the LC submit to the start of its first and last block, with a full GPU of "
     "evicting BE workers? (us)"},
    {"yield_points", nullptr, experiments::RunYieldPoints,
     "What do yield points in a long block task cost, and how fast do they evict?"},
    {"completion", nullptr, experiments::RunCompletion,
     "What does each way of completion cost on the GPU, and when does the host see it? (us)"},
    {"threads", nullptr, experiments::RunThreads,
     "What does a launch cost when two host threads use one context or two? (us)"},
    {"lanes", nullptr, experiments::RunLanes,
     "How many streams can there be, and do idle ones slow an LC launch? (us)"},
    {"relaunch_gap", nullptr, experiments::RunRelaunchGap,
     "How long is the GPU idle between two worker launches? (us)"},
    {"clock", nullptr, experiments::RunClock,
     "How does %globaltimer move against CLOCK_MONOTONIC?"},
};

const Experiment* Find(const char* name) {
  for (const Experiment& experiment : kExperiments) {
    if (std::strcmp(experiment.name, name) == 0) return &experiment;
  }
  return nullptr;
}

// The driver reads its environment when it starts, and the libraries of this process may have
// copied theirs before main: so the process starts again with the environment that it needs.
void EnsureEnvironment(const Experiment& experiment, char** arguments) {
  constexpr char kMark[] = "GPUSHARE_EXPERIMENT_ENVIRONMENT";
  const char* const mark = std::getenv(kMark);
  if (mark != nullptr && std::strcmp(mark, experiment.name) == 0) return;
  setenv(kMark, experiment.name, 1);
  setenv("CUDA_MODULE_LOADING", "EAGER", 1);  // loading lazily would wait for kernels that spin
  if (experiment.connections != nullptr) {
    setenv(kConnections, experiment.connections, 1);
  } else {
    unsetenv(kConnections);
  }
  execv("/proc/self/exe", arguments);
  std::perror("execv");
  std::_Exit(1);
}

[[noreturn]] void RunOne(const Experiment& experiment, char** arguments) {
  EnsureEnvironment(experiment, arguments);
  experiments::BeginReport(experiment.name, experiment.question);
  std::thread([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(kReportBoundMs));
    experiments::PrintReport("The experiment did not end within " + std::to_string(kReportBoundMs) +
                             " ms.");
    std::_Exit(3);
  }).detach();
  experiment.run();
  experiments::PrintReport("");
  std::_Exit(0);
}

// Waits for a child, at most kProcessBoundMs; returns whether it ended well.
bool Await(pid_t child, const char* name) {
  const auto start = std::chrono::steady_clock::now();
  while (true) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) {
      const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
      const bool good = WIFEXITED(status) && WEXITSTATUS(status) == 0;
      std::fprintf(stderr, "== %s %s in %.1f s\n", name, good ? "ended" : "FAILED", took.count());
      return good;
    }
    if (std::chrono::steady_clock::now() - start > std::chrono::milliseconds(kProcessBoundMs)) {
      kill(child, SIGKILL);
      waitpid(child, &status, 0);
      std::fprintf(stderr, "== %s was ended after %d ms\n", name, kProcessBoundMs);
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

int RunAll(char* program) {
  int failures = 0;
  for (const Experiment& experiment : kExperiments) {
    std::fprintf(stderr, "== %s: %s\n", experiment.name, experiment.question);
    const pid_t child = fork();
    if (child == 0) {
      std::string name = experiment.name;
      char* arguments[] = {program, name.data(), nullptr};
      RunOne(experiment, arguments);
    }
    if (child < 0 || !Await(child, experiment.name)) ++failures;
  }
  return failures == 0 ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 2 && std::strcmp(arguments[1], "all") == 0) return RunAll(arguments[0]);
  const Experiment* const experiment = count == 2 ? Find(arguments[1]) : nullptr;
  if (experiment != nullptr) RunOne(*experiment, arguments);
  std::fprintf(stderr, "Usage: device_experiments all | NAME, where NAME is one of\n");
  for (const Experiment& known : kExperiments) {
    std::fprintf(stderr, "  %-28s %s\n", known.name, known.question);
  }
  return 2;
}
