// Launches the forms of a kernel by the CUDA runtime alone: the original grid, workers, slices and
// SM-bound workers, with everything that a worker launch needs. For tests and benchmarks of the
// kernel contract; the scheduler's own launches are the CUDA device's.
//
// One launcher serves one task after the other: BeginTask, launches until all block tasks are done.
// Threads: one at a time. Blocks where it says so.

#ifndef GPUSHARE_BENCHMARKS_KERNELS_FORM_LAUNCHER_H_
#define GPUSHARE_BENCHMARKS_KERNELS_FORM_LAUNCHER_H_

#include <gpushare/device/fused_variants.h>
#include <gpushare/device/kernel_variants.h>
#include <gpushare/device/launch.h>

#include <cstdint>

#include "benchmarks/kernels/catalogue.h"
#include "benchmarks/kernels/device_buffer.h"

struct CUstream_st;

namespace gpushare::kernels {

// A task: a kernel, its parameters, its original grid.
struct FormTask {
  gpushare_kernel_variants variants = {};
  const void* params = nullptr;
  Grid grid;
  uint32_t block_tasks() const { return grid.x * grid.y * grid.z; }
};

// One part of a fused launch. Its header comes from a launcher of its own, which then evicts the
// part, waits for its record and launches what is left of it: a launcher has one counter, eviction
// word, scratch and completion record.
struct FusedPart {
  gpushare_worker_launch header = {};
  const void* params = nullptr;
};

class FormLauncher {
 public:
  FormLauncher() = default;
  ~FormLauncher();
  FormLauncher(const FormLauncher&) = delete;
  FormLauncher& operator=(const FormLauncher&) = delete;

  Status Init();  // on the current device; blocks

  int32_t sms() const { return sms_; }
  double clock_mhz() const { return clock_mhz_; }
  uint32_t FullWorkers(const FormTask& task) const {
    return task.variants.workers_per_sm * static_cast<uint32_t>(sms_);
  }

  // Zeroes the counter and the yield list; the eviction word keeps its epoch. Blocks.
  Status BeginTask();
  // The header of a launch of all of the task's block tasks, with the launcher's counter, eviction
  // word, scratch, yield list and completion record, and an epoch of its own. A test changes the
  // fields that it is about.
  gpushare_worker_launch Header(const FormTask& task);

  // Launches go to this stream from here on, of a green context for example; null: to the
  // launcher's own again.
  void UseStream(CUstream_st* stream) { used_stream_ = stream; }
  // These enqueue on the launcher's stream and return.
  Status LaunchOriginal(const FormTask& task);
  Status LaunchWorkers(const FormTask& task, const gpushare_worker_launch& header,
                       uint32_t workers);
  // Launches the header's block tasks from block_begin on, one block each, without the counter.
  Status LaunchSlice(const FormTask& task, gpushare_worker_launch header);
  // The parts' launchers may be this one and another. A part that has nothing to do has a header
  // of zeros and any params of the right size.
  Status LaunchFused(const gpushare_fused_variants& variants, const FusedPart& tensor,
                     const FusedPart& cuda, uint32_t blocks);
  // Writes {epoch, workers to keep}, on a stream of its own.
  Status Evict(uint32_t epoch, uint32_t workers_to_keep);
  // Instead of Evict's stream write, block 0 relays a word in host memory. Such a launch has one
  // block more than workers.
  void UseLeader(gpushare_worker_launch* header);
  void EvictByLeader(uint32_t epoch, uint32_t workers_to_keep);

  // Blocks until the launches have ended, then checks that the record is the last launch's and that
  // the scratch is zero again.
  Status Wait();
  Status Finish(const gpushare_worker_launch& header, gpushare_worker_completion* record);
  // Blocks until the launch's record is there, `limit_s` at most; the other part of a fused launch
  // may run on. An error when it does not come.
  Status AwaitRecord(const gpushare_worker_launch& header, double limit_s,
                     gpushare_worker_completion* record);

  CUstream_st* stream() const { return used_stream_ != nullptr ? used_stream_ : stream_; }
  uint32_t* sm_workers() const { return sm_workers_.as<uint32_t>(); }
  Status ReadSmWorkers(uint32_t* counts) const;  // one an SM
  Status ReadYieldsWaiting(uint64_t* waiting) const;
  Status ReadCounter(uint32_t* counter) const;

 private:
  using StreamWriteValue = int (*)(CUstream_st*, unsigned long long, unsigned long long, unsigned);

  Status InitMemory();
  Status LaunchWithHeader(const void* symbol, const char* what, const FormTask& task,
                          const gpushare_worker_launch& header, uint32_t blocks);

  int32_t sms_ = 0;
  double clock_mhz_ = 0;
  CUstream_st* stream_ = nullptr;
  CUstream_st* used_stream_ = nullptr;  // not the launcher's to destroy
  CUstream_st* eviction_stream_ = nullptr;
  StreamWriteValue stream_write_ = nullptr;
  DeviceBuffer eviction_word_;
  DeviceBuffer counter_;
  DeviceBuffer scratch_;
  DeviceBuffer sm_workers_;
  DeviceBuffer yield_list_;
  uint64_t yield_capacity_ = 0;
  gpushare_worker_completion* completion_ = nullptr;  // mapped host memory
  uint64_t* host_word_ = nullptr;                     // mapped host memory
  uint32_t next_epoch_ = 1;
  uint64_t next_sequence_ = 1;
};

}  // namespace gpushare::kernels

#endif  // GPUSHARE_BENCHMARKS_KERNELS_FORM_LAUNCHER_H_
