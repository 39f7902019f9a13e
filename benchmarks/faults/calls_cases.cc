// Calls at the wrong time or place: after a shutdown, in a forked child, in CUDA's host functions,
// in callbacks, and a shutdown while work is in flight.

#include <cuda_runtime_api.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "benchmarks/faults/cases.h"
#include "benchmarks/faults/gpu_app.h"
#include "benchmarks/harness/gpu_device.h"

namespace gpushare::benchmarks {
namespace {

void ExpectRefused(const Status& status, gpushare_status code, const char* call) {
  Expect(status.code() == code && !status.message().empty(),
         std::string(call) + " answers " + status.ToString());
}

Json AfterShutdown() {
  GpuApp app;
  app.ExpectHealthy();
  Ticket ticket = app.SubmitQuery();
  app.ShutdownMs(2'000 * kMs);
  const auto refused = [](const Status& status, const char* call) {
    ExpectRefused(status, GPUSHARE_FAILED_PRECONDITION, call);
  };
  refused(app.TrySubmitQuery().status(), "A submit after the shutdown");
  refused(app.lc.BeginQuery().status(), "A query after the shutdown");
  refused(app.be.BeginRegion(1000).status(), "A region after the shutdown");
  refused(app.lc_app.CreateQueue().status(), "A queue after the shutdown");
  refused(app.runtime.Resume(), "resume after the shutdown");
  KernelOptions kernel;
  kernel.name = "late";
  refused(app.runtime.RegisterKernel(kernel).status(), "A registration after the shutdown");
  Require(ticket.Record().status());
  Require(app.runtime.Stats().status());
  Require(app.runtime.Shutdown(app.NowNs()));
  return {{"refused", 6}};
}

// With work in flight. The child is refused everything; the parent does not notice.
Json Fork() {
  GpuApp app;
  app.ExpectHealthy();
  std::vector<Ticket> tickets;
  for (int i = 0; i < 50; ++i) tickets.push_back(app.SubmitQuery());
  const pid_t child = fork();
  if (child == 0) {
    gpushare_runtime* runtime = nullptr;
    const bool refused =
        app.TrySubmitQuery().status().code() == GPUSHARE_FAILED_PRECONDITION &&
        gpushare_runtime_release(app.runtime.get()) == GPUSHARE_FAILED_PRECONDITION &&
        gpushare_runtime_create(nullptr, &runtime) == GPUSHARE_FAILED_PRECONDITION;
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  Expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "The forked child was not refused.");
  for (Ticket& ticket : tickets) {
    Expect(app.Finish(std::move(ticket)).verdict == GPUSHARE_VERDICT_OK, "A query is not OK.");
  }
  app.ExpectHealthy();
  return {{"shutdown_ms", Rounded(app.ShutdownMs(2'000 * kMs), 1)}};
}

// What a host function of CUDA submits. CUDA allows no CUDA call there: a BE submit makes none, an
// LC submit on the fast path does.
struct FromHostFunction {
  GpuApp* app = nullptr;
  const TaskOptions* be_task = nullptr;
  Ticket be;
  Ticket lc;
  std::atomic<int> calls{0};
  std::string error;
};

void SubmitFromHostFunction(void* user) {
  auto& from = *static_cast<FromHostFunction*>(user);
  Result<Ticket> be = from.app->be.SubmitBe(*from.be_task);
  Result<Ticket> lc = from.app->TrySubmitQuery();
  if (!be.ok()) from.error = be.status().ToString();
  if (!lc.ok()) from.error = lc.status().ToString();
  if (be.ok()) from.be = *std::move(be);
  if (lc.ok()) from.lc = *std::move(lc);
  ++from.calls;
}

Json HostFunction() {
  GpuApp app;
  app.ExpectHealthy();
  const std::unique_ptr<soak::Task> task = app.MakeBe(1);
  TaskOptions be_task;
  std::string error = task->Fill(be_task);
  Expect(error.empty(), error);
  FromHostFunction from;
  from.app = &app;
  from.be_task = &be_task;
  cudaStream_t stream = nullptr;
  Cuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
  Cuda(cudaLaunchHostFunc(stream, &SubmitFromHostFunction, &from), "cudaLaunchHostFunc");
  Cuda(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  Expect(from.calls == 1 && from.error.empty(), "In the host function: " + from.error);
  const CompletionRecord be = app.Finish(std::move(from.be));
  const CompletionRecord lc = app.Finish(std::move(from.lc));
  Expect(be.verdict == GPUSHARE_VERDICT_OK,
         std::string("The BE task ends ") + gpushare_verdict_name(be.verdict) + ".");
  error = task->Check(be);
  Expect(error.empty(), error);
  app.ExpectHealthy();
  return {{"be", gpushare_verdict_name(be.verdict)},
          {"lc", gpushare_verdict_name(lc.verdict)},
          {"lc_launched_by", gpushare_reason_name(lc.launch_reason)},
          {"lc_error_code", lc.error_code},
          {"shutdown_ms", Rounded(app.ShutdownMs(2'000 * kMs), 1)}};
}

// Each completion submits the next task, and tries what may not wait.
struct Chain {
  GpuApp* app = nullptr;
  const TaskOptions* task = nullptr;
  std::atomic<int> left{0};
  std::atomic<int> calls{0};
  std::atomic<int> waits_accepted{0};
};

void OnChainComplete(void* user, const gpushare_completion_record* record) {
  auto& chain = *static_cast<Chain*>(user);
  gpushare_runtime* const runtime = chain.app->runtime.get();
  for (const gpushare_status status :
       {gpushare_ticket_wait(runtime, record->ticket, 0), gpushare_runtime_drain(runtime, 0),
        gpushare_runtime_shutdown(runtime, 0), gpushare_runtime_quiesce(runtime, 0)}) {
    if (status == GPUSHARE_OK) ++chain.waits_accepted;
  }
  ++chain.calls;
  if (--chain.left > 0) gpushare_submit_lc(chain.app->lc.get(), chain.task, nullptr);
}

Json Callbacks() {
  constexpr int kLength = 500;
  GpuApp app;
  app.ExpectHealthy();
  const Kernel kernel = app.WaitKernel("link", 10'000);
  const WaitParams wait = {.wait_ns = 10'000};
  TaskOptions task = GpuApp::WaitTask(kernel, wait, 132);
  Chain chain;
  task.callback = &OnChainComplete;
  task.callback_user = &chain;
  task.detached = 1;
  chain.app = &app;
  chain.task = &task;
  chain.left = kLength;
  const int64_t begin_ns = app.NowNs();
  Require(app.lc.SubmitLc(task).status());
  while (chain.left > 0 && app.NowNs() - begin_ns < kPatienceNs) std::this_thread::yield();
  Require(app.runtime.Drain(app.NowNs() + kPatienceNs));
  const int64_t took_ns = app.NowNs() - begin_ns;
  Expect(chain.calls == kLength,
         "The chain ended after " + std::to_string(chain.calls) + " calls.");
  Expect(chain.waits_accepted == 0, "A callback was allowed to wait.");
  app.ExpectHealthy();
  app.ShutdownMs(2'000 * kMs);
  return {{"links", kLength},
          {"us_a_link", Rounded(static_cast<double>(took_ns) / 1000 / kLength, 1)}};
}

Json ShutdownInFlight(gpushare_drive drive) {
  GpuApp app(GpuApp::Options{.drive = drive});
  app.ExpectHealthy();
  const std::unique_ptr<soak::Task> be = app.MakeBe(20);
  TaskOptions be_task;
  const std::string error = be->Fill(be_task);
  Expect(error.empty(), error);
  std::atomic<int> calls{0};
  be_task.callback = [](void* user, const gpushare_completion_record*) {
    ++*static_cast<std::atomic<int>*>(user);
  };
  be_task.callback_user = &calls;
  be_task.detached = 1;
  constexpr int kTasks = 40;
  for (int i = 0; i < kTasks; ++i) Require(app.be.SubmitBe(be_task).status());
  std::vector<Ticket> queries;
  for (int i = 0; i < kTasks; ++i) queries.push_back(app.SubmitQuery());
  const double took_ms = app.ShutdownMs(2'000 * kMs);
  Expect(calls == kTasks, std::to_string(calls) + " of " + std::to_string(kTasks) +
                              " callbacks had run when the shutdown returned.");
  for (Ticket& ticket : queries) {
    Expect(Take(ticket.IsComplete()), "A query is not complete after the shutdown.");
  }
  return {{"shutdown_ms", Rounded(took_ms, 1)}};
}

Json ShutdownThreaded() { return ShutdownInFlight(GPUSHARE_DRIVE_THREAD); }
Json ShutdownPolled() { return ShutdownInFlight(GPUSHARE_DRIVE_POLL); }

}  // namespace

std::vector<FaultCase> CallCases() {
  static constexpr char kShutdown[] = "every task has ended, and its callback with it, in time";
  return {
      {"after_shutdown", "every call is refused with a sentence, records stay", 20, AfterShutdown},
      {"fork", "the child is refused, the parent goes on", 20, Fork},
      {"host_function", "what it submits completes once, nothing deadlocks", 20, HostFunction},
      {"callbacks", "they submit, and may not wait", 20, Callbacks},
      {"shutdown_threaded", kShutdown, 20, ShutdownThreaded},
      {"shutdown_polled", kShutdown, 20, ShutdownPolled},
  };
}

}  // namespace gpushare::benchmarks
