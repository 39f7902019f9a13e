#include "benchmarks/gpu/form_timer.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <string>
#include <utility>

namespace gpushare::kernels {

double QuantileOf(std::vector<double> values, double quantile) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<size_t>(quantile * static_cast<double>(values.size() - 1) + 0.5)];
}

double Median(std::vector<double> values) { return QuantileOf(std::move(values), 0.5); }

EventTimer::EventTimer() {
  cudaEventCreate(&begin_);
  cudaEventCreate(&end_);
}

EventTimer::~EventTimer() {
  cudaEventDestroy(begin_);
  cudaEventDestroy(end_);
}

void EventTimer::Begin(CUstream_st* stream) { cudaEventRecord(begin_, stream); }

void EventTimer::End(CUstream_st* stream) { cudaEventRecord(end_, stream); }

double EventTimer::Milliseconds() {
  float ms = 0;
  cudaEventSynchronize(end_);
  cudaEventElapsedTime(&ms, begin_, end_);
  return ms;
}

Status TimeOriginal(FormLauncher* launcher, const FormTask& task, EventTimer* timer, double* ms) {
  timer->Begin(launcher->stream());
  const Status status = launcher->LaunchOriginal(task);
  timer->End(launcher->stream());
  *ms = timer->Milliseconds();
  return status.ok() ? launcher->Wait() : status;
}

Status TimeWorkers(FormLauncher* launcher, const FormTask& task, uint32_t claim_batch,
                   EventTimer* timer, double* ms) {
  Status status = launcher->BeginTask();
  if (!status.ok()) return status;
  gpushare_worker_launch header = launcher->Header(task);
  header.claim_batch = claim_batch;
  timer->Begin(launcher->stream());
  status = launcher->LaunchWorkers(task, header, launcher->FullWorkers(task));
  timer->End(launcher->stream());
  *ms = timer->Milliseconds();
  if (!status.ok()) return status;
  gpushare_worker_completion record = {};
  status = launcher->Finish(header, &record);
  if (status.ok() && record.block_tasks_done != task.block_tasks()) {
    status.code = -1;
    status.message = "The workers executed " + std::to_string(record.block_tasks_done) +
                     " block tasks, and the task has " + std::to_string(task.block_tasks()) + ".";
  }
  return status;
}

Status TimeSlices(FormLauncher* launcher, const FormTask& task, uint32_t slice, EventTimer* timer,
                  double* ms) {
  gpushare_worker_launch header = launcher->Header(task);
  // No claims, no evictions and no record: a slice is what an ordinary launch of a few blocks is.
  header.eviction_word = nullptr;
  header.scratch = nullptr;
  header.completion = nullptr;
  header.yield_list = nullptr;
  header.yield_capacity = 0;
  Status status;
  timer->Begin(launcher->stream());
  for (uint32_t begin = 0; begin < task.block_tasks() && status.ok(); begin += header.block_count) {
    header.block_begin = begin;
    header.block_count = std::min(slice, task.block_tasks() - begin);
    status = launcher->LaunchSlice(task, header);
  }
  timer->End(launcher->stream());
  *ms = timer->Milliseconds();
  return status.ok() ? launcher->Wait() : status;
}

}  // namespace gpushare::kernels
