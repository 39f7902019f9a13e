// The part of libgpushare_catalogue that needs CUDA: workloads of the kernel catalogue, and bare
// launches of a graph.
//
// Each bare launch has an event without timing, which is polled, as in the library's own baseline.
// Threads: one at a time for each object, with the device's primary context current.

#include <cuda_runtime_api.h>

#include <array>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>

#include "benchmarks/kernels/registration.h"
#include "examples/pytorch/catalogue.h"
#include "examples/pytorch/errors.h"

namespace gpushare::example {
namespace {

constexpr int64_t kLeadNs = 1'000'000;
constexpr int64_t kDrainNs = int64_t{60} * 1'000'000'000;

void CheckCuda(cudaError_t code, const char* step) {
  if (code == cudaSuccess) return;
  throw std::runtime_error(std::string(step) + " fails: " + cudaGetErrorString(code) + ".");
}

void CheckKernels(const kernels::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.message);
}

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace
}  // namespace gpushare::example

using gpushare::example::CheckCuda;
using gpushare::example::CheckKernels;
using gpushare::example::Guard;

struct gpushare_example_workload {
  std::unique_ptr<gpushare::kernels::Workload> workload;
};

struct gpushare_example_graph {
  gpushare_example_graph() = default;
  gpushare_example_graph(const gpushare_example_graph&) = delete;
  gpushare_example_graph& operator=(const gpushare_example_graph&) = delete;
  ~gpushare_example_graph() {
    for (cudaEvent_t event : done) {
      if (event != nullptr) cudaEventDestroy(event);
    }
    if (exec != nullptr) cudaGraphExecDestroy(exec);
    if (stream != nullptr) cudaStreamDestroy(stream);
  }

  void Make(cudaGraph_t graph) {
    CheckCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "Making a stream");
    CheckCuda(cudaGraphInstantiate(&exec, graph, 0), "Instantiating the graph");
    CheckCuda(cudaGraphUpload(exec, stream), "Uploading the graph");
    CheckCuda(cudaStreamSynchronize(stream), "Uploading the graph");
    for (cudaEvent_t& event : done) {
      CheckCuda(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "Making an event");
    }
  }

  // Most queries in flight. Further queries wait, and their latency includes the wait.
  static constexpr size_t kInFlightMax = 1024;

  void Run(const int64_t* arrivals_ns, int64_t* latencies_ns, int32_t count, int64_t* out_span_ns) {
    const int64_t start_ns = gpushare::example::NowNs() + gpushare::example::kLeadNs;
    const int64_t give_up_ns =
        start_ns + (count > 0 ? arrivals_ns[count - 1] : 0) + gpushare::example::kDrainNs;
    int64_t end_ns = start_ns + 1;
    int32_t launched = 0;
    for (int32_t seen = 0; seen < count;) {
      const int64_t now_ns = gpushare::example::NowNs();
      const bool room = static_cast<size_t>(launched - seen) < kInFlightMax;
      if (launched < count && room && now_ns >= start_ns + arrivals_ns[launched]) {
        Launch(launched++);
        end_ns = gpushare::example::NowNs();
      } else if (seen < launched && Done(seen)) {
        latencies_ns[seen] = gpushare::example::NowNs() - (start_ns + arrivals_ns[seen]);
        ++seen;
      } else if (now_ns > give_up_ns) {
        throw std::runtime_error("The bare launches do not complete within 60 s.");
      }
    }
    if (out_span_ns != nullptr) *out_span_ns = end_ns - start_ns;
  }

  void Launch(int32_t query) {
    CheckCuda(cudaGraphLaunch(exec, stream), "Launching the graph");
    CheckCuda(cudaEventRecord(EventOf(query), stream), "Recording an event");
  }

  bool Done(int32_t query) {
    const cudaError_t code = cudaEventQuery(EventOf(query));
    if (code == cudaErrorNotReady) return false;
    CheckCuda(code, "Running the graph");
    return true;
  }

  cudaEvent_t EventOf(int32_t query) const {
    return done[static_cast<size_t>(query) % kInFlightMax];
  }

  cudaStream_t stream = nullptr;
  cudaGraphExec_t exec = nullptr;
  std::array<cudaEvent_t, kInFlightMax> done = {};
};

int32_t gpushare_example_workload_new(const char* kernel, double block_task_us,
                                      uint32_t block_tasks, int32_t sm_count,
                                      gpushare_example_workload** out_workload) {
  return Guard([&] {
    const gpushare::kernels::CatalogueKernel* found = gpushare::kernels::FindKernel(kernel);
    if (found == nullptr) {
      throw std::invalid_argument(std::string("The catalogue has no kernel '") + kernel + "'.");
    }
    gpushare::kernels::WorkloadOptions options;
    options.block_task_us = block_task_us;
    options.block_tasks = block_tasks;
    options.sms = sm_count;
    auto made = std::make_unique<gpushare_example_workload>();
    CheckKernels(gpushare::kernels::MakeWorkload(*found, options, &made->workload));
    *out_workload = made.release();
  });
}

int32_t gpushare_example_workload_fill(gpushare_example_workload* workload,
                                       gpushare_kernel_options* kernel,
                                       gpushare_task_options* task) {
  return Guard([&] {
    const gpushare::kernels::Workload& made = *workload->workload;
    gpushare_kernel_variants variants = {};
    CheckCuda(static_cast<cudaError_t>(made.kernel().variants(&variants)), "Loading the kernel");
    gpushare::kernels::FillOptions(variants, *kernel);
    gpushare::kernels::FillTask(made, *task);
  });
}

int32_t gpushare_example_workload_clear(gpushare_example_workload* workload) {
  return Guard([&] { CheckKernels(workload->workload->ClearOutput()); });
}

int32_t gpushare_example_workload_verify(gpushare_example_workload* workload, double budget_s,
                                         int64_t* out_checked, int64_t* out_wrong) {
  return Guard([&] {
    gpushare::kernels::Verification verification;
    CheckKernels(workload->workload->Verify(budget_s, &verification));
    *out_checked = static_cast<int64_t>(verification.checked);
    *out_wrong = static_cast<int64_t>(verification.wrong);
    if (verification.wrong > 0) gpushare::example::SetError(verification.first_wrong);
  });
}

void gpushare_example_workload_free(gpushare_example_workload* workload) { delete workload; }

int32_t gpushare_example_graph_new(void* graph, gpushare_example_graph** out_graph) {
  return Guard([&] {
    auto made = std::make_unique<gpushare_example_graph>();
    made->Make(static_cast<cudaGraph_t>(graph));
    *out_graph = made.release();
  });
}

int32_t gpushare_example_graph_run(gpushare_example_graph* graph, const int64_t* arrivals_ns,
                                   int64_t* latencies_ns, int32_t query_count,
                                   int64_t* out_span_ns) {
  return Guard([&] { graph->Run(arrivals_ns, latencies_ns, query_count, out_span_ns); });
}

void gpushare_example_graph_free(gpushare_example_graph* graph) { delete graph; }
