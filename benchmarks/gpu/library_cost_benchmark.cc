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

#include <cuda_runtime_api.h>
#include <gpushare/gpushare.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <utility>
#include <vector>

#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/gpu_device.h"
#include "benchmarks/harness/gpu_kernels.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/harness/quantiles.h"

namespace gpushare::benchmarks {
namespace {

constexpr int kKernels = 72;
constexpr WaitParams kStep = {.wait_ns = 8'000};
constexpr int kThreads = 256;
constexpr int kWarmUps = 20;
constexpr int64_t kPatienceNs = 5'000'000'000;

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Api(gpushare_status status) {
  if (status != GPUSHARE_OK) Fail(gpushare_last_error_message());
}

double QuantileUs(const std::vector<int64_t>& ns, double quantile) {
  return static_cast<double>(Quantile(ns, quantile)) / 1000;
}

int LaunchStep(int blocks, void* stream) {
  return LaunchWait(kStep, static_cast<uint32_t>(blocks), kThreads,
                    static_cast<CUstream_st*>(stream));
}

int32_t CaptureChain(void* user, void* stream, int32_t /*sm_count*/) {
  int code = 0;
  for (int i = 0; i < kKernels && code == 0; ++i) {
    code = LaunchStep(*static_cast<const int*>(user), stream);
  }
  return code;
}

struct Latencies {
  std::vector<int64_t> query;
  std::vector<int64_t> call;  // one launch or submit
};

// The CUDA runtime alone.
class Bare {
 public:
  explicit Bare(int blocks) : blocks_(blocks) {
    Cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    Cuda(cudaEventCreateWithFlags(&done_, cudaEventDisableTiming), "cudaEventCreate");
    cudaGraph_t graph = nullptr;
    Cuda(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed), "cudaStreamBeginCapture");
    Cuda(CaptureChain(&blocks_, stream_, 0), "the chain's launches");
    Cuda(cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
    Cuda(cudaGraphInstantiate(&graph_, graph, 0), "cudaGraphInstantiate");
    Cuda(cudaGraphUpload(graph_, stream_), "cudaGraphUpload");
    Synchronize(stream_);
    Cuda(cudaGraphDestroy(graph), "cudaGraphDestroy");
  }
  void Graph(Latencies& out) {
    const int64_t begin_ns = NowNs();
    Cuda(cudaGraphLaunch(graph_, stream_), "cudaGraphLaunch");
    const int64_t called_ns = NowNs();
    Finish(begin_ns, out);
    out.call.push_back(called_ns - begin_ns);
  }
  void Tasks(Latencies& out) {
    const int64_t begin_ns = NowNs();
    int64_t before_ns = begin_ns;
    for (int i = 0; i < kKernels; ++i) {
      Cuda(LaunchStep(blocks_, stream_), "a bare launch");
      const int64_t now_ns = NowNs();
      out.call.push_back(now_ns - before_ns);
      before_ns = now_ns;
    }
    Finish(begin_ns, out);
  }

 private:
  void Finish(int64_t begin_ns, Latencies& out) {
    Cuda(cudaEventRecord(done_, stream_), "cudaEventRecord");
    while (cudaEventQuery(done_) == cudaErrorNotReady) {
      if (NowNs() - begin_ns > kPatienceNs) Fail("A bare query does not complete.");
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
    Cuda(cudaGetFuncBySymbol(&function, WaitSymbol()), "cudaGetFuncBySymbol");
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
    task.kernel = step_;
    task.block_tasks = blocks_;
    task.arguments = &kStep;
    task.arguments_size_bytes = sizeof(kStep);
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
      if (NowNs() - begin_ns > kPatienceNs) Fail("A query of the library does not complete.");
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

Json Row(const char* name, const Latencies& bare, const Latencies& library) {
  const double bare_p50 = QuantileUs(bare.query, 0.5);
  const double bare_p99 = QuantileUs(bare.query, 0.99);
  const double p50 = QuantileUs(library.query, 0.5);
  const double p99 = QuantileUs(library.query, 0.99);
  const double call_p50 = QuantileUs(library.call, 0.5) - QuantileUs(bare.call, 0.5);
  const double call_p99 = QuantileUs(library.call, 0.99) - QuantileUs(bare.call, 0.99);
  std::fprintf(stderr,
               "%-6s bare %.1f us, library %.1f us: %.4f x (p99 %.4f x); submit +%.2f us "
               "p50, +%.2f us p99\n",
               name, bare_p50, p50, p50 / bare_p50, p99 / bare_p99, call_p50, call_p99);
  return {{"bare_p50_us", Rounded(bare_p50, 2)},
          {"bare_p99_us", Rounded(bare_p99, 2)},
          {"p50_us", Rounded(p50, 2)},
          {"p99_us", Rounded(p99, 2)},
          {"p50_over_bare", Rounded(p50 / bare_p50, 4)},
          {"p99_over_bare", Rounded(p99 / bare_p99, 4)},
          {"bare_call_p50_us", Rounded(QuantileUs(bare.call, 0.5), 2)},
          {"bare_call_p99_us", Rounded(QuantileUs(bare.call, 0.99), 2)},
          {"submit_added_p50_us", Rounded(call_p50, 2)},
          {"submit_added_p99_us", Rounded(call_p99, 2)}};
}

// Host time of the flow behind the submits, per task.
double FlowUs(int blocks) {
  constexpr int kQueries = 200;
  Library driven(blocks, GPUSHARE_DRIVE_POLL);
  Latencies ignored;
  for (int i = 0; i < kWarmUps; ++i) driven.Tasks(ignored);
  driven.TakePollNs();
  for (int i = 0; i < kQueries; ++i) driven.Tasks(ignored);
  return static_cast<double>(driven.TakePollNs()) / 1000 / (kQueries * kKernels);
}

int Run(Arguments& given) {
  const int queries = given.Number("--queries", 2000, 100);
  given.Finish();
  const int blocks = OpenGpu().sms;
  Bare bare(blocks);
  Latencies bare_graph, library_graph, bare_tasks, library_tasks;
  Json result = {{"queries", queries}, {"kernels_of_a_query", kKernels}};
  {
    Library library(blocks, GPUSHARE_DRIVE_THREAD);
    for (int i = -kWarmUps; i < queries; ++i) {
      bare.Graph(bare_graph);
      library.Graph(library_graph);
      bare.Tasks(bare_tasks);
      library.Tasks(library_tasks);
      if (i < 0) bare_graph = library_graph = bare_tasks = library_tasks = Latencies();
    }
    result["fast_path_launches"] = library.fast_path_launches();
  }
  result["graph"] = Row("graph", bare_graph, library_graph);
  result["tasks"] = Row("tasks", bare_tasks, library_tasks);
  const double flow_us = FlowUs(blocks);
  result["flow_us_a_task"] = Rounded(flow_us, 3);
  PrintLine(result);
  std::fprintf(stderr, "the flow behind the submits takes %.3f us a task\n", flow_us);
  return 0;
}

}  // namespace
}  // namespace gpushare::benchmarks

int main(int argc, char** argv) {
  return gpushare::benchmarks::Main("library_cost_benchmark", argc, argv,
                                    gpushare::benchmarks::Run);
}
