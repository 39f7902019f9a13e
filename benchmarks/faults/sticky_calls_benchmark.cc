// A sticky error at every CUDA call in turn (docs/reliability.md): each function of the driver
// fails at its first call while a runtime is created, and at its first call while work is in
// flight. Whatever fails, a creation answers with an error of the device, each task ends once, and
// the shutdown keeps its deadline.
//
// One line a function on stderr, one JSON object on stdout. 1: a promise was broken, or a function
// that is not in kCalledAtRelease did not fail while work was in flight.
//
// Use: sticky_calls_benchmark [--seconds S]    no function is begun later

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <string>
#include <vector>

#include "benchmarks/faults/failing_driver.h"
#include "benchmarks/faults/gpu_app.h"
#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/gpu_device.h"
#include "benchmarks/harness/json.h"

namespace gpushare::benchmarks {
namespace {

constexpr int kSticky = 700;  // CUDA_ERROR_ILLEGAL_ADDRESS
constexpr int kTasks = 10;    // of each kind

// The run without a fault calls these as well, but only when the runtime is released: by then the
// work has ended, so that no call in flight can fail.
constexpr std::array<const char*, 7> kCalledAtRelease = {"cuDevicePrimaryCtxRelease_v2",
                                                         "cuEventDestroy_v2",
                                                         "cuGreenCtxDestroy",
                                                         "cuMemFree_v2",
                                                         "cuMemFreeHost",
                                                         "cuStreamDestroy_v2",
                                                         "cuStreamQuery"};
constexpr std::array<gpushare_status, 3> kCreationAnswers = {
    GPUSHARE_DATA_LOSS, GPUSHARE_UNAVAILABLE, GPUSHARE_RESOURCE_EXHAUSTED};

struct Completions {
  std::atomic<int> calls{0};
};

// LC and BE kernels and copies, with a counted callback each. What is refused is not counted.
int SubmitWork(GpuApp& app, const Kernel& kernel, const WaitParams& wait,
               Completions& completions) {
  int accepted = 0;
  const auto submit = [&](const Queue& queue, TaskOptions task, bool lc) {
    task.detached = 1;
    task.callback_user = &completions;
    task.callback = [](void* user, const gpushare_completion_record*) {
      ++static_cast<Completions*>(user)->calls;
    };
    const auto result = lc ? queue.SubmitLc(task) : queue.SubmitBe(task);
    accepted += result.ok() ? 1 : 0;
  };
  static char host[64];
  for (int i = 0; i < kTasks; ++i) {
    submit(app.lc, GpuApp::WaitTask(kernel, wait, 8), true);
    submit(app.be, GpuApp::WaitTask(kernel, wait, 8), false);
    TaskOptions copy;
    copy.kind = GPUSHARE_TASK_MEMCPY;
    copy.copy_direction = GPUSHARE_COPY_HOST_TO_DEVICE;
    copy.copy_pageable = 1;
    copy.copy_source = copy.copy_destination = host;  // unified addressing: host to host
    copy.copy_size_bytes = sizeof(host);
    submit(app.be, copy, false);
  }
  return accepted;
}

struct Outcome {
  bool fired = false;
  bool device_lost = false;
  std::string problem;
};

// A runtime with work, while the function fails; `function` past the end: nothing fails.
Outcome RunWork(size_t function) {
  Outcome outcome;
  try {
    GpuApp app(GpuApp::Options{.policy = "priority"});
    const Kernel kernel = app.WaitKernel("work", 50'000);
    const WaitParams wait = {.wait_ns = 50'000};
    Completions completions;
    ResetCallCounts();
    if (function < DriverFunctions().size()) Arm(function, 1, kSticky);
    const int accepted = SubmitWork(app, kernel, wait, completions);
    static_cast<void>(app.runtime.Drain(app.NowNs() + 500 * kMs).ok());
    const int64_t begin_ns = app.NowNs();
    static_cast<void>(app.runtime.Shutdown(begin_ns + 500 * kMs).ok());
    const int64_t took_ns = app.NowNs() - begin_ns;
    outcome.fired = HasFired();
    outcome.device_lost = app.Stats().device_lost == 1;
    if (took_ns > 900 * kMs) outcome.problem = "the shutdown took more than 900 ms";
    if (completions.calls != accepted) {
      outcome.problem = std::to_string(completions.calls) + " callbacks for " +
                        std::to_string(accepted) + " accepted tasks";
    }
  } catch (const Failure& failure) {
    outcome.problem = failure.what();
  }
  Disarm();
  return outcome;
}

struct Creation {
  std::string answer;
  std::string problem;
};

// A creation while the function fails.
Creation CreateWhileFailing(size_t function) {
  RuntimeOptions options;
  options.device = "cuda";
  Arm(function, 1, kSticky);
  Creation creation;
  {
    const auto runtime = Runtime::Create(options);
    const gpushare_status status = runtime.status().code();
    creation.answer = gpushare_status_name(status);
    if (!HasFired()) {
      creation.problem = "the creation did not call it";
    } else if (std::find(kCreationAnswers.begin(), kCreationAnswers.end(), status) ==
               kCreationAnswers.end()) {
      creation.problem = "the creation answers " + creation.answer;
    }
  }
  Disarm();
  return creation;
}

bool CalledAtRelease(const std::string& function) {
  return std::find(kCalledAtRelease.begin(), kCalledAtRelease.end(), function) !=
         kCalledAtRelease.end();
}

std::vector<bool> CalledFunctions() {
  std::vector<bool> called;
  for (size_t i = 0; i < DriverFunctions().size(); ++i) called.push_back(CallsOf(i) > 0);
  return called;
}

struct Calls {
  std::vector<bool> at_creation;
  std::vector<bool> in_flight;
};

// Of a run in which nothing fails.
Calls FindCalls() {
  Calls calls;
  {
    RuntimeOptions options;
    options.device = "cuda";
    ResetCallCounts();
    const Runtime runtime = Take(Runtime::Create(options));
    calls.at_creation = CalledFunctions();
  }
  const Outcome whole = RunWork(DriverFunctions().size());
  Expect(whole.problem.empty(), "With a whole driver: " + whole.problem);
  calls.in_flight = CalledFunctions();
  calls.at_creation.resize(calls.in_flight.size());
  return calls;
}

// How a function did in each state that calls it; "problem" where a promise was broken.
Json RowOf(size_t function, const std::string& name, const Calls& calls) {
  Json row = {{"function", name}};
  if (calls.at_creation[function]) {
    const Creation creation = CreateWhileFailing(function);
    row["create"] = creation.answer;
    if (!creation.problem.empty()) row["problem"] = creation.problem;
  }
  if (calls.in_flight[function]) {
    const Outcome outcome = RunWork(function);
    row["fired"] = outcome.fired;
    row["device_lost"] = outcome.device_lost;
    if (!outcome.problem.empty()) row["problem"] = outcome.problem;
    if (!outcome.fired && CalledAtRelease(name)) {
      row["not_reached"] = "it is called when the runtime is released";
    } else if (!outcome.fired && outcome.problem.empty()) {
      row["problem"] = "the work in flight did not call it";
    }
  }
  return row;
}

int Run(Arguments& given) {
  const double seconds = given.Real("--seconds", 60, 1);
  given.Finish();
  OpenGpu();
  const double begin = NowSeconds();
  const Calls calls = FindCalls();
  const std::vector<std::string> names = DriverFunctions();
  int failed = 0;
  int tried = 0;
  int not_reached = 0;
  int left = 0;  // when the time was over
  Report report({{"experiment", "sticky_calls"}, {"functions", names.size()}}, "calls");
  for (size_t i = 0; i < names.size(); ++i) {
    if (!calls.at_creation[i] && !calls.in_flight[i]) continue;
    if (NowSeconds() - begin > seconds) {
      ++left;
      continue;
    }
    const Json row = RowOf(i, names[i], calls);
    ++tried;
    not_reached += row.contains("not_reached") ? 1 : 0;
    failed += row.contains("problem") ? 1 : 0;
    report.Row(row);
    std::fprintf(stderr, "%s\n", row.dump().c_str());
  }
  report.End({{"tried", tried}, {"not_reached", not_reached}, {"left", left}, {"failed", failed}});
  std::fprintf(stderr, "%d functions tried, %d not reached in flight, %d left, %d FAILED\n", tried,
               not_reached, left, failed);
  std::fflush(nullptr);
  std::_Exit(failed == 0 && tried > 0 && left == 0 ? 0 : kFailed);
}

}  // namespace
}  // namespace gpushare::benchmarks

int main(int argc, char** argv) {
  return gpushare::benchmarks::Main("sticky_calls_benchmark", argc, argv,
                                    gpushare::benchmarks::Run);
}
