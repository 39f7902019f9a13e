#include "benchmarks/faults/gpu_app.h"

#include <cuda_runtime_api.h>

#include <chrono>
#include <thread>

#include "benchmarks/harness/gpu_device.h"

namespace gpushare::benchmarks {
namespace {

constexpr int kThreads = 256;
constexpr int kQueryBlocks = 132;
constexpr int64_t kQueryNs = kMs;
constexpr WaitParams kQueryWait = {.wait_ns = kQueryNs};

void* FunctionOf(const void* symbol) {
  cudaFunction_t function = nullptr;
  Cuda(cudaGetFuncBySymbol(&function, symbol), "cudaGetFuncBySymbol");
  return function;
}

Runtime OpenRuntime(const GpuApp::Options& given) {
  OpenGpu();
  RuntimeOptions options;
  options.device = "cuda";
  options.policy = given.policy;
  options.drive = given.drive;
  options.hang_floor_ns = given.hang_floor_ns;
  options.hang_factor = given.hang_factor;
  return Take(Runtime::Create(options));
}

// No bound is stated: kernels without measured pairs would not run beside one
// (docs/reliability.md).
App MakeApp(const Runtime& runtime, gpushare_app_class app_class, const char* name) {
  AppOptions options;
  options.app_class = app_class;
  options.name = name;
  return Take(runtime.CreateApp(options));
}

}  // namespace

void Expect(bool condition, const std::string& what) {
  if (!condition) Fail(what);
}

GpuApp::GpuApp(const Options& options)
    : runtime(OpenRuntime(options)),
      lc_app(MakeApp(runtime, GPUSHARE_CLASS_LATENCY_CRITICAL, "service")),
      be_app(MakeApp(runtime, GPUSHARE_CLASS_BEST_EFFORT, "training")),
      lc(Take(lc_app.CreateQueue())),
      be(Take(be_app.CreateQueue())) {
  std::string why;
  work_ = soak::MakeCudaWork(&why);
  if (work_ == nullptr) throw Failure(why, kNoGpu);
  query_kernel_ = WaitKernel("query", kQueryNs);
}

Kernel GpuApp::WaitKernel(const std::string& name, int64_t solo_ns) {
  KernelOptions options;
  options.name = name.c_str();
  options.original_function = FunctionOf(WaitSymbol());
  options.threads_per_block = kThreads;
  options.solo_ns = solo_ns;
  return Take(runtime.RegisterKernel(options));
}

TaskOptions GpuApp::WaitTask(const Kernel& kernel, const WaitParams& wait, int64_t blocks) {
  TaskOptions task;
  task.kernel = kernel.get();
  task.block_tasks = blocks;
  task.arguments = &wait;
  task.arguments_size_bytes = sizeof(wait);
  return task;
}

Result<Ticket> GpuApp::TrySubmitQuery() const {
  return lc.SubmitLc(WaitTask(query_kernel_, kQueryWait, kQueryBlocks));
}

std::vector<double> GpuApp::RunQueries(int n, double period_ms) {
  std::vector<double> latencies_ms;
  auto next = std::chrono::steady_clock::now();
  for (int i = 0; i < n; ++i) {
    std::this_thread::sleep_until(next);
    next += std::chrono::microseconds(static_cast<int64_t>(period_ms * 1000));
    const CompletionRecord record = Finish(SubmitQuery());
    Expect(record.verdict == GPUSHARE_VERDICT_OK,
           std::string("A query ends ") + gpushare_verdict_name(record.verdict) + ".");
    latencies_ms.push_back(static_cast<double>(record.complete_ns - record.submit_ns) / kMs);
  }
  return latencies_ms;
}

std::unique_ptr<soak::Task> GpuApp::MakeBe(double solo_ms, uint32_t seed) {
  std::unique_ptr<soak::Task> made[2];
  const std::string error = work_->Make(runtime, soak::Kind::kSincos, solo_ms, seed, made);
  Expect(error.empty(), error);
  return std::move(made[0]);
}

void GpuApp::RunBe(soak::Task& task) {
  TaskOptions options;
  std::string error = task.Fill(options);
  Expect(error.empty(), error);
  const CompletionRecord record = Finish(Take(be.SubmitBe(options)));
  Expect(record.verdict == GPUSHARE_VERDICT_OK,
         std::string("A BE task ends ") + gpushare_verdict_name(record.verdict) + ".");
  error = task.Check(record);
  Expect(error.empty(), error);
}

CompletionRecord GpuApp::Finish(Ticket ticket, int64_t patience_ns) {
  Require(ticket.Wait(NowNs() + patience_ns));
  return Take(ticket.Record());
}

RuntimeStats GpuApp::Stats() { return Take(runtime.Stats()); }

void GpuApp::ExpectHealthy() {
  Expect(Stats().device_lost == 0, "The device is lost, and only one task failed.");
  RunQueries(3, 1);
  const std::unique_ptr<soak::Task> task = MakeBe(1, static_cast<uint32_t>(100 + ++made_));
  RunBe(*task);
}

double GpuApp::ShutdownMs(int64_t limit_ns, gpushare_status status) {
  constexpr int64_t kExcessNs = 300 * kMs;
  const int64_t begin_ns = NowNs();
  const Status answer = runtime.Shutdown(begin_ns + limit_ns);
  const int64_t took_ns = NowNs() - begin_ns;
  Expect(answer.code() == status, "The shutdown answers " + answer.ToString());
  Expect(took_ns < limit_ns + kExcessNs, "The shutdown took " + std::to_string(took_ns / kMs) +
                                             " ms, and its limit is " +
                                             std::to_string(limit_ns / kMs) + " ms.");
  Expect(Stats().tasks_pending == 0, "Tasks are pending after the shutdown.");
  return static_cast<double>(took_ns) / kMs;
}

BeLoop::BeLoop(GpuApp& app, double solo_ms)
    : app_(app), task_(app.MakeBe(solo_ms)), thread_([this] { Run(); }) {}

BeLoop::~BeLoop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void BeLoop::Run() {
  try {
    while (!stop_) {
      app_.RunBe(*task_);
      ++done_;
    }
  } catch (const Failure& failure) {
    error_ = failure.what();
  }
}

int BeLoop::Stop() {
  stop_ = true;
  thread_.join();
  Expect(error_.empty(), "In the BE loop: " + error_);
  return done_;
}

}  // namespace gpushare::benchmarks
