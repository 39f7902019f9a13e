// From a kernel body to a verified result. The example makes the variants of a body and registers
// them. It serves latency-critical (LC) queries alone, then beside best-effort (BE) steps of the
// same kernel. It prints latencies and evictions, and compares every element with a reference.
//
// Without a GPU, or with GPUSHARE_DEVICE=sim, it runs on the simulated device: no kernel runs, and
// no result is compared. Exit code 1: a failure or a wrong result; 77: GPUSHARE_DEVICE=cuda without
// GPU.

#include <algorithm>
#include <cstring>
#include <gpushare/device/variants.cuh>
#include <gpushare/gpushare.hpp>
#include <iostream>
#include <string>
#include <vector>

// y = a x + y, in place. That is right because each block task runs exactly once, evicted or not.
struct Saxpy {
  struct Params {  // its bytes are the packed arguments of a submit
    const float* x;
    float* y;
    float a;
    uint32_t n;
  };
  struct Shared {};
  struct State {};
  static constexpr int kThreads = 256;
  // Elements of a block task: long enough to hide its claim, short enough for an LC query to wait
  // for. At the rate of DRAM it takes 25 us on an H200 with eight workers an SM.
  static constexpr uint32_t kElements = 8192;

  template <class Ctx>
  __device__ static void Run(const Params& p, Shared&, State&, Ctx& ctx) {
    const uint32_t begin = ctx.block_index() * kElements;
    const uint32_t end = min(begin + kElements, p.n);
    for (uint32_t i = begin + ctx.thread(); i < end; i += kThreads) p.y[i] = p.a * p.x[i] + p.y[i];
  }
};
GPUSHARE_KERNEL(Saxpy);

namespace {

constexpr uint32_t kStepElements = 1U << 26;   // BE: 256 MiB a vector, 8192 block tasks
constexpr uint32_t kQueryElements = 1U << 18;  // LC: 1 MiB a vector, 32 block tasks
constexpr int kSteps = 400;
constexpr int kQueries = 200;
constexpr int64_t kGapNs = 400'000;  // between the arrivals of two queries
// Far above an eviction, which takes a block task. The looser a target, the more BE it buys.
constexpr int64_t kTargetNs = 1'000'000;

// Whole numbers far below 2^24: floats are exact, and the comparison is for equality.
constexpr float kA = 2;
constexpr float kYAtFirst = 1;
float XAt(uint32_t i) { return static_cast<float>(i % 7); }

void Check(const gpushare::Status& status) {
  if (!status.ok()) throw gpushare::Error(status);
}

void Check(cudaError_t code, const char* what) {
  if (code == cudaSuccess) return;
  throw std::runtime_error(std::string(what) + " fails: " + cudaGetErrorString(code) + ".");
}

// x and y of one app, and the tasks on them. Without a GPU there are only the tasks.
class Vectors {
 public:
  explicit Vectors(uint32_t n) { params_.n = n; }
  ~Vectors() {
    cudaFree(x_);
    cudaFree(params_.y);
  }
  Vectors(const Vectors&) = delete;
  Vectors& operator=(const Vectors&) = delete;

  void Upload() {
    host_.resize(params_.n);
    for (uint32_t i = 0; i < params_.n; ++i) host_[i] = XAt(i);
    params_.x = x_ = ToDevice();
    std::fill(host_.begin(), host_.end(), kYAtFirst);
    params_.y = ToDevice();
  }

  // Elements of y that `times` executions of the kernel, no more and no fewer, do not explain.
  uint32_t CountWrong(int times) {
    Check(cudaMemcpy(host_.data(), params_.y, bytes(), cudaMemcpyDeviceToHost), "Copying back");
    uint32_t wrong = 0;
    for (uint32_t i = 0; i < params_.n; ++i) {
      wrong += host_[i] == kYAtFirst + static_cast<float>(times) * kA * XAt(i) ? 0 : 1;
    }
    return wrong;
  }

  // One execution of the kernel. The submit copies the arguments, but not what they point to.
  gpushare::TaskOptions Task(const gpushare::Kernel& kernel) const {
    gpushare::TaskOptions task;
    task.kernel = kernel.get();
    task.block_tasks = (params_.n + Saxpy::kElements - 1) / Saxpy::kElements;
    task.arguments = &params_;
    task.arguments_size_bytes = sizeof(params_);
    return task;
  }

 private:
  size_t bytes() const { return host_.size() * sizeof(float); }
  float* ToDevice() const {
    float* device = nullptr;
    Check(cudaMalloc(&device, bytes()), "Allocating");
    Check(cudaMemcpy(device, host_.data(), bytes(), cudaMemcpyHostToDevice), "Copying");
    // A copy of pageable memory may be under way when cudaMemcpy returns, and the library's streams
    // do not wait for the default stream.
    Check(cudaDeviceSynchronize(), "Copying");
    return device;
  }

  std::vector<float> host_;
  float* x_ = nullptr;
  Saxpy::Params params_ = {nullptr, nullptr, kA, 0};
};

gpushare::Kernel Register(const gpushare::Runtime& runtime, bool on_gpu) {
  // What the simulated device runs, and the first guess on a GPU: the library learns as it runs,
  // and gpushare_calibrate measures.
  gpushare::SimulationRecord record;
  record.block_task_ns = 30'000;
  record.memory_parallelism = 1;
  record.demand.issue = 0.1;
  record.demand.dram = 0.9;
  gpushare::KernelOptions options;
  options.name = "saxpy";
  options.evictable = GPUSHARE_CHOICE_YES;
  options.simulation = &record;
  if (!on_gpu) return runtime.RegisterKernel(options).value();
  gpushare_kernel_variants made;
  Check(static_cast<cudaError_t>(Saxpy_variants(&made)), "Loading the kernel");
  options.original_function = made.original_function;
  options.worker_function = made.worker_function;
  options.slice_function = made.slice_function;
  options.threads_per_block = static_cast<int32_t>(made.threads_per_block);
  options.registers_per_thread = static_cast<int32_t>(made.worker_registers);
  options.shared_memory_bytes =
      static_cast<int32_t>(made.static_shared_bytes + made.dynamic_shared_bytes);
  options.dynamic_shared_memory_bytes = static_cast<int32_t>(made.dynamic_shared_bytes);
  options.workers_per_sm_max = static_cast<int32_t>(made.workers_per_sm);
  return runtime.RegisterKernel(options).value();
}

gpushare::App MakeApp(const gpushare::Runtime& runtime, gpushare_app_class app_class,
                      const char* name) {
  gpushare::AppOptions options;
  options.app_class = app_class;
  options.name = name;
  if (app_class == GPUSHARE_CLASS_LATENCY_CRITICAL) options.target_ns = kTargetNs;
  return runtime.CreateApp(options).value();
}

// Queries at equal gaps. Prints quantiles (nearest rank) of their latencies, counted from the
// intended arrival.
void Serve(const char* where, const gpushare::Runtime& runtime, const gpushare::Queue& queue,
           gpushare::TaskOptions query) {
  std::vector<int64_t> latencies_ns;
  query.arrival_ns = runtime.NowNs();
  for (int i = 0; i < kQueries; ++i) {
    query.arrival_ns += kGapNs;
    Check(runtime.PollUntil(query.arrival_ns));
    const gpushare::Ticket ticket = queue.SubmitLc(query).value();
    Check(ticket.Wait());
    const gpushare::CompletionRecord record = ticket.Record().value();
    if (record.verdict != GPUSHARE_VERDICT_OK) throw std::runtime_error("A query fails.");
    latencies_ns.push_back(record.complete_ns - query.arrival_ns);
  }
  std::sort(latencies_ns.begin(), latencies_ns.end());
  std::cout << "LC " << where << ": p50 " << latencies_ns[kQueries / 2 - 1] / 1000 << " us, p99 "
            << latencies_ns[kQueries * 99 / 100 - 1] / 1000 << " us\n";
}

int Run() {
  Vectors query(kQueryElements);  // before the runtime: they outlive its tasks
  Vectors step(kStepElements);
  gpushare::RuntimeOptions options;
  options.drive = GPUSHARE_DRIVE_POLL;  // this thread drives; a server leaves it to the library's
  gpushare::Result<gpushare::Runtime> opened = gpushare::Runtime::Create(options);
  if (opened.status().code() == GPUSHARE_UNAVAILABLE) {
    std::cout << "Skipped: " << opened.status().message() << "\n";
    return 77;
  }
  const gpushare::Runtime runtime = opened.value();
  const bool on_gpu = std::strcmp(runtime.Device().value().name, "cuda") == 0;
  if (on_gpu) {
    query.Upload();
    step.Upload();
  }
  const gpushare::Kernel kernel = Register(runtime, on_gpu);
  const gpushare::App service = MakeApp(runtime, GPUSHARE_CLASS_LATENCY_CRITICAL, "service");
  const gpushare::App training = MakeApp(runtime, GPUSHARE_CLASS_BEST_EFFORT, "training");
  const gpushare::Queue lc = service.CreateQueue().value();
  const gpushare::Queue be = training.CreateQueue().value();

  std::cout << "LC is promised: 99 of 100 queries within " << kTargetNs / 1000 << " us\n";
  Serve("alone", runtime, lc, query.Task(kernel));
  gpushare::TaskOptions one_step = step.Task(kernel);
  one_step.detached = 1;  // no ticket: the app's counters are enough
  for (int i = 0; i < kSteps; ++i) Check(be.SubmitBe(one_step).status());
  Serve("beside BE", runtime, lc, query.Task(kernel));
  Check(runtime.Drain());

  const gpushare::AppStats stats = training.Stats().value();
  std::cout << "BE: " << stats.completed << " of " << kSteps << " steps, " << stats.failed
            << " failed, " << stats.block_tasks << " block tasks, " << stats.evictions
            << " evictions\n";
  if (stats.completed != kSteps || stats.failed != 0) return 1;
  if (stats.block_tasks != kSteps * one_step.block_tasks) return 1;  // lost or repeated
  if (!on_gpu) {
    std::cout << "No GPU is used: no kernel ran, the times are not a GPU's, and no result was "
                 "compared.\n";
    return 0;
  }
  const uint32_t wrong = query.CountWrong(2 * kQueries) + step.CountWrong(kSteps);
  std::cout << wrong << " of " << kQueryElements + kStepElements << " results are wrong.\n";
  return wrong == 0 ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return Run();
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
