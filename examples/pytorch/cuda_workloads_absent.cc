// Replaces cuda_workloads.cc in a build without CUDA: every function fails and says so.

#include <stdexcept>

#include "examples/pytorch/catalogue.h"
#include "examples/pytorch/errors.h"

namespace {

int32_t Absent() {
  return gpushare::example::Guard(
      [] { throw std::runtime_error("The catalogue was built without CUDA."); });
}

}  // namespace

int32_t gpushare_example_has_cuda(void) { return 0; }

int32_t gpushare_example_workload_new(const char* /*kernel*/, double /*block_task_us*/,
                                      uint32_t /*block_tasks*/, int32_t /*sm_count*/,
                                      gpushare_example_workload** /*out_workload*/) {
  return Absent();
}

int32_t gpushare_example_workload_fill(gpushare_example_workload* /*workload*/,
                                       gpushare_kernel_options* /*kernel*/,
                                       gpushare_task_options* /*task*/) {
  return Absent();
}

int32_t gpushare_example_workload_clear(gpushare_example_workload* /*workload*/) {
  return Absent();
}

int32_t gpushare_example_workload_verify(gpushare_example_workload* /*workload*/,
                                         double /*budget_s*/, int64_t* /*out_checked*/,
                                         int64_t* /*out_wrong*/) {
  return Absent();
}

void gpushare_example_workload_free(gpushare_example_workload* /*workload*/) {}

int32_t gpushare_example_graph_new(void* /*graph*/, gpushare_example_graph** /*out_graph*/) {
  return Absent();
}

int32_t gpushare_example_graph_run(gpushare_example_graph* /*graph*/,
                                   const int64_t* /*arrivals_ns*/, int64_t* /*latencies_ns*/,
                                   int32_t /*query_count*/, int64_t* /*out_span_ns*/) {
  return Absent();
}

void gpushare_example_graph_free(gpushare_example_graph* /*graph*/) {}
