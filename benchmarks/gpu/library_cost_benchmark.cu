// What the library costs an LC app when there is no BE work, against bare launches.
//
// A query is a chain of 72 kernels of 8.4 us, once as one graph and once as 72 launches. Bare: the
// CUDA runtime alone, with an event at the end that the host polls. Library: the same work through
// the C API on its own scheduler thread. Both take turns, query by query, one at a time. Reported:
// median and p99 of the query's latency and their ratios; the time of a submit beside that of a
// bare launch call; and, driven by this thread, the host time of the polls that had something to
// do, per task. One JSON object on stdout.
//
// Use: library_cost_benchmark [--queries N]

#include <cuda_runtime.h>
#include <gpushare/gpushare.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

constexpr int kKernels = 72;
constexpr uint32_t kKernelNs = 8'000;
constexpr int kThreads = 256;
constexpr int64_t kPatienceNs = 5'000'000'000;

struct StepParams {
  uint32_t wait_ns;
};

__device__ uint64_t GlobalTimerNs() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// Bounded by its own clock.
__global__ void Step(StepParams params) {
  const uint64_t end_ns = GlobalTimerNs() + params.wait_ns;
  while (GlobalTimerNs() < end_ns) {
  }
}

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

[[noreturn]] void Fail(const char* why) {
  std::fprintf(stderr, "library_cost_benchmark: %s\n", why);
  std::exit(1);
}
void Cuda(cudaError_t code) {
  if (code != cudaSuccess) Fail(cudaGetErrorString(code));
}
void Api(gpushare_status status) {
  if (status != GPUSHARE_OK) Fail(gpushare_last_error_message());
}

double QuantileUs(std::vector<int64_t>& values, double q) {
  std::sort(values.begin(), values.end());
  return static_cast<double>(
             values[static_cast<size_t>(q * static_cast<double>(values.size() - 1) + 0.5)]) /
         1000;
}

int Blocks() {
  int sms = 0;
  Cuda(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  return sms;
}

int32_t CaptureChain(void* user, void* stream, int32_t /*sm_count*/) {
  const int blocks = *static_cast<const int*>(user);
  for (int i = 0; i < kKernels; ++i) {
    Step<<<blocks, kThreads, 0, static_cast<cudaStream_t>(stream)>>>(StepParams{kKernelNs});
  }
  return cudaGetLastError();
}

struct Latencies {
  std::vector<int64_t> query;
  std::vector<int64_t> call;  // one launch or submit
};

// The CUDA runtime alone.
class Bare {
 public:
  explicit Bare(int blocks) : blocks_(blocks) {
    Cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
    Cuda(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming));
    cudaGraph_t graph = nullptr;
    Cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed));
    CaptureChain(&blocks_, stream_, 0);
    Cuda(cudaStreamEndCapture(stream_, &graph));
    Cuda(cudaGraphInstantiate(&graph_, graph, 0));
    Cuda(cudaGraphUpload(graph_, stream_));
    Cuda(cudaStreamSynchronize(stream_));
    Cuda(cudaGraphDestroy(graph));
  }
  void Graph(Latencies& out) {
    const int64_t begin_ns = NowNs();
    Cuda(cudaGraphLaunch(graph_, stream_));
    const int64_t called_ns = NowNs();
    Finish(begin_ns, out);
    out.call.push_back(called_ns - begin_ns);
  }
  void Tasks(Latencies& out) {
    const int64_t begin_ns = NowNs();
    int64_t before_ns = begin_ns;
    for (int i = 0; i < kKernels; ++i) {
      Step<<<blocks_, kThreads, 0, stream_>>>(StepParams{kKernelNs});
      const int64_t now_ns = NowNs();
      out.call.push_back(now_ns - before_ns);
      before_ns = now_ns;
    }
    Finish(begin_ns, out);
  }

 private:
  void Finish(int64_t begin_ns, Latencies& out) {
    Cuda(cudaEventRecord(done_, stream_));
    while (cudaEventQuery(done_) == cudaErrorNotReady) {
      if (NowNs() - begin_ns > kPatienceNs) Fail("a bare query does not complete");
    }
    out.query.push_back(NowNs() - begin_ns);
  }

  int blocks_;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t done_ = nullptr;
  cudaGraphExec_t graph_ = nullptr;
};

class Library {
 public:
  Library(int blocks, gpushare_drive drive) : blocks_(blocks), drive_(drive) {
    gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
    options.device = "cuda";
    options.drive = drive;
    Api(gpushare_runtime_create(&options, &runtime_));
    gpushare_app_options app = GPUSHARE_APP_OPTIONS_INIT;
    app.app_class = GPUSHARE_CLASS_LATENCY_CRITICAL;
    app.name = "chain";
    app.p99_bound = 1.05;
    Api(gpushare_app_create(runtime_, &app, &app_));
    Api(gpushare_queue_create(app_, &queue_));
    gpushare_kernel_options graph = GPUSHARE_KERNEL_OPTIONS_INIT;
    graph.name = "chain_graph";
    graph.kind = GPUSHARE_TASK_GRAPH;
    graph.capture = &CaptureChain;
    graph.capture_user = &blocks_;
    Api(gpushare_kernel_register(runtime_, &graph, &graph_));
    gpushare_kernel_options step = GPUSHARE_KERNEL_OPTIONS_INIT;
    step.name = "chain_step";
    cudaFunction_t function = nullptr;
    Cuda(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(&Step)));
    step.original_function = function;
    step.threads_per_block = kThreads;
    Api(gpushare_kernel_register(runtime_, &step, &step_));
  }
  ~Library() {
    gpushare_kernel_release(step_);
    gpushare_kernel_release(graph_);
    gpushare_queue_release(queue_);
    gpushare_app_release(app_);
    gpushare_runtime_release(runtime_);
  }

  void Graph(Latencies& out) {
    gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
    task.kernel = graph_;
    gpushare_ticket ticket;
    const int64_t begin_ns = NowNs();
    Api(gpushare_submit_lc(queue_, &task, &ticket));
    const int64_t called_ns = NowNs();
    Finish(ticket, begin_ns, out);
    out.call.push_back(called_ns - begin_ns);
  }
  void Tasks(Latencies& out) {
    gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
    const StepParams params = {kKernelNs};
    task.kernel = step_;
    task.block_tasks = blocks_;
    task.arguments = &params;
    task.arguments_size_bytes = sizeof(params);
    gpushare_ticket last = {0};
    const int64_t begin_ns = NowNs();
    Api(gpushare_query_begin(queue_, 0, &task.query));
    int64_t before_ns = NowNs();
    for (int i = 0; i < kKernels; ++i) {
      Api(gpushare_submit_lc(queue_, &task, i + 1 == kKernels ? &last : nullptr));
      const int64_t now_ns = NowNs();
      out.call.push_back(now_ns - before_ns);
      before_ns = now_ns;
    }
    Api(gpushare_query_end(runtime_, task.query));
    Finish(last, begin_ns, out);
  }

  // Host time of the polls that had something to do since the last call.
  int64_t TakePollNs() {
    const int64_t taken = poll_ns_;
    poll_ns_ = 0;
    return taken;
  }
  int64_t fast_path_launches() const {
    gpushare_runtime_stats stats = GPUSHARE_RUNTIME_STATS_INIT;
    Api(gpushare_runtime_stats_get(runtime_, &stats));
    return stats.fast_path_launches;
  }

 private:
  void Finish(gpushare_ticket ticket, int64_t begin_ns, Latencies& out) {
    gpushare_bool complete = 0;
    while (complete == 0) {
      if (drive_ == GPUSHARE_DRIVE_POLL) Poll();
      Api(gpushare_ticket_poll(runtime_, ticket, &complete));
      if (NowNs() - begin_ns > kPatienceNs) Fail("a query of the library does not complete");
    }
    out.query.push_back(NowNs() - begin_ns);
    Api(gpushare_ticket_release(runtime_, ticket));
  }
  void Poll() {
    gpushare_bool progress = 0;
    const int64_t begin_ns = NowNs();
    Api(gpushare_poll(runtime_, &progress));
    if (progress != 0) poll_ns_ += NowNs() - begin_ns;
  }

  int blocks_;
  gpushare_drive drive_;
  gpushare_runtime* runtime_ = nullptr;
  gpushare_app* app_ = nullptr;
  gpushare_queue* queue_ = nullptr;
  gpushare_kernel* graph_ = nullptr;
  gpushare_kernel* step_ = nullptr;
  int64_t poll_ns_ = 0;
};

void Print(const char* name, Latencies& bare, Latencies& library, bool last) {
  const double bare_p50 = QuantileUs(bare.query, 0.5);
  const double bare_p99 = QuantileUs(bare.query, 0.99);
  const double p50 = QuantileUs(library.query, 0.5);
  const double p99 = QuantileUs(library.query, 0.99);
  const double call_p50 = QuantileUs(library.call, 0.5) - QuantileUs(bare.call, 0.5);
  const double call_p99 = QuantileUs(library.call, 0.99) - QuantileUs(bare.call, 0.99);
  std::printf(
      "  \"%s\": {\"bare_p50_us\": %.2f, \"bare_p99_us\": %.2f, \"p50_us\": %.2f, \"p99_us\": "
      "%.2f, "
      "\"p50_over_bare\": %.4f, \"p99_over_bare\": %.4f, \"bare_call_p50_us\": %.2f, "
      "\"bare_call_p99_us\": %.2f, \"submit_added_p50_us\": %.2f, \"submit_added_p99_us\": "
      "%.2f}%s\n",
      name, bare_p50, bare_p99, p50, p99, p50 / bare_p50, p99 / bare_p99,
      QuantileUs(bare.call, 0.5), QuantileUs(bare.call, 0.99), call_p50, call_p99, last ? "" : ",");
  std::fprintf(stderr,
               "%-6s bare %.1f us, library %.1f us: %.4f x (p99 %.4f x); submit +%.2f us "
               "p50, +%.2f us p99\n",
               name, bare_p50, p50, p50 / bare_p50, p99 / bare_p99, call_p50, call_p99);
}

}  // namespace

int main(int argc, char** argv) {
  int queries = 2000;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--queries") == 0) queries = std::max(100, std::atoi(argv[i + 1]));
  }
  const int blocks = Blocks();
  Bare bare(blocks);
  Latencies bare_graph, library_graph, bare_tasks, library_tasks;
  std::printf("{\"queries\": %d, \"kernels_of_a_query\": %d,\n", queries, kKernels);
  {
    Library library(blocks, GPUSHARE_DRIVE_THREAD);
    for (int i = -20; i < queries; ++i) {
      bare.Graph(bare_graph);
      library.Graph(library_graph);
      bare.Tasks(bare_tasks);
      library.Tasks(library_tasks);
      if (i < 0) bare_graph = library_graph = bare_tasks = library_tasks = Latencies();
    }
    std::printf("  \"fast_path_launches\": %lld,\n",
                static_cast<long long>(library.fast_path_launches()));
  }
  Print("graph", bare_graph, library_graph, false);
  Print("tasks", bare_tasks, library_tasks, false);
  Library driven(blocks, GPUSHARE_DRIVE_POLL);
  Latencies ignored;
  for (int i = 0; i < 20; ++i) driven.Tasks(ignored);
  driven.TakePollNs();
  constexpr int kDriven = 200;
  for (int i = 0; i < kDriven; ++i) driven.Tasks(ignored);
  const double poll_us = static_cast<double>(driven.TakePollNs()) / 1000 / (kDriven * kKernels);
  std::printf("  \"flow_us_a_task\": %.3f\n}\n", poll_us);
  std::fprintf(stderr, "the flow behind the submits takes %.3f us a task\n", poll_us);
  return 0;
}
