// Tasks of catalogue kernels, and the times of their forms alone on the device: original grid,
// workers, slices.
//
// Times are of events around the launches: no time of the host between two launches of one
// measurement is in them unless the host is slower than the device. Every failure is a Failure; a
// launch that does not execute all of its block tasks is one. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_HARNESS_GPU_FORMS_H_
#define GPUSHARE_BENCHMARKS_HARNESS_GPU_FORMS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "benchmarks/kernels/catalogue.h"
#include "benchmarks/kernels/form_launcher.h"

struct CUevent_st;

namespace gpushare::benchmarks {

const kernels::CatalogueKernel& KernelNamed(const std::string& name);
gpushare_kernel_variants VariantsOf(const char* name, int (*variants)(gpushare_kernel_variants*));

// A task and the workload that owns its memory.
struct WorkloadTask {
  std::unique_ptr<kernels::Workload> workload;
  kernels::FormTask task;
};
WorkloadTask MakeTask(const kernels::CatalogueKernel& kernel,
                      const kernels::WorkloadOptions& options);

uint64_t ChecksumOf(kernels::Workload& workload);
// Of an output that was compared with the reference, for about so long.
uint64_t VerifiedChecksum(kernels::Workload& workload, double seconds);

// An ordinary launch of the original grid by the CUDA runtime.
void LaunchGrid(const kernels::FormTask& task, CUstream_st* stream);

class EventTimer {
 public:
  EventTimer();
  ~EventTimer();
  EventTimer(const EventTimer&) = delete;
  EventTimer& operator=(const EventTimer&) = delete;

  // Milliseconds of what `enqueue` puts on the stream. Blocks until it has ended.
  double Ms(CUstream_st* stream, const std::function<void()>& enqueue);

 private:
  CUevent_st* begin_ = nullptr;
  CUevent_st* end_ = nullptr;
};

// Milliseconds; each blocks until its launches have ended.
double TimeOriginal(EventTimer& timer, kernels::FormLauncher& launcher,
                    const kernels::FormTask& task);
double TimeWorkers(EventTimer& timer, kernels::FormLauncher& launcher,
                   const kernels::FormTask& task, uint32_t claim_batch);
// The whole task as slices of so many block tasks, back to back.
double TimeSlices(EventTimer& timer, kernels::FormLauncher& launcher, const kernels::FormTask& task,
                  uint32_t slice);

// A header for a launch that is what an ordinary launch of its blocks is: no claims, no evictions,
// no record.
gpushare_worker_launch WithoutRecord(gpushare_worker_launch header);

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_HARNESS_GPU_FORMS_H_
