// What the kernels of a scenario are on a device: the functions, graphs and library calls behind
// their names, the buffers and arguments of each task, and whether the answers are right.
//
// On the simulated device there is nothing behind a name but the profile's record
// (MakeNoWorkloads); on a GPU cuda_workloads.cc has the programs. One object serves all runs of a
// process: buffers are allocated once, in the first Bind of an app, and kept.
//
// Threads: one at a time, between runs; what is bound may then be submitted from any thread. The
// object must outlive every runtime that its kernels are registered in.

#ifndef GPUSHARE_TOOLS_GPUSHARE_WORKLOADS_H_
#define GPUSHARE_TOOLS_GPUSHARE_WORKLOADS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/gpushare/library.h"
#include "tools/gpushare/scenario.h"

namespace gpushare::tool {

// What one task is submitted with, beside its kernel's handle. Pointers belong to the Workloads.
struct TaskBinding {
  gpushare_task_kind kind = GPUSHARE_TASK_DEFAULT;  // OPAQUE: no kernel is registered
  int64_t block_tasks = 0;                          // KERNEL; 0 for all others
  int32_t grid_x = 0, grid_y = 0, grid_z = 0;
  const void* arguments = nullptr;
  uint64_t arguments_size_bytes = 0;
  int64_t declared_ns = 0;                      // OPAQUE and LIBRARY
  gpushare_enqueue_callback enqueue = nullptr;  // OPAQUE
  void* enqueue_user = nullptr;
  int64_t copy_size_bytes = 0;  // MEMCPY
  gpushare_copy_direction copy_direction = GPUSHARE_COPY_NONE;
  gpushare_bool copy_pageable = 0;
  void* copy_destination = nullptr;
  const void* copy_source = nullptr;
};

// The fields of a task that its work decides; `kernel` is null for copies and opaque work.
gpushare_task_options TaskOptionsOf(const TaskBinding& binding, gpushare_kernel* kernel);

// A stream's place among the streams of the device.
enum class RawPriority : uint8_t { kNormal, kHighest, kLowest };

// What is launched without the library must end by itself: its kernels are bounded.
inline constexpr int64_t kRawDrainNs = int64_t{60} * 1'000'000'000;

struct RawOptions {
  RawPriority priority = RawPriority::kNormal;
  bool carveout_max = false;  // its kernels prefer the maximum shared-memory carve-out
  bool best_effort = false;
  size_t marks = 1;
  int64_t drain_ns = kRawDrainNs;  // work that takes longer to end counts as hung
};

// One app's tasks as bare launches on a stream of its own, without the library.
// Threads: one at a time. Errors: RunError.
class RawApp {
 public:
  RawApp() = default;
  RawApp(const RawApp&) = delete;
  RawApp& operator=(const RawApp&) = delete;
  // Waits for what was launched, for RawOptions::drain_ns at most.
  virtual ~RawApp() = default;
  virtual void Launch(size_t task) = 0;
  // Mark `mark` (below RawOptions::marks, not pending) is reached when all that was launched is
  // done.
  virtual void Mark(size_t mark) = 0;
  virtual bool Reached(size_t mark) = 0;
};

// What a report says of a real device.
struct HardwareFacts {
  std::string gpu;     // "NVIDIA H200", empty: not a real device
  std::string driver;  // "580.95.05", empty: unknown
};

// A fused kernel that this program has, of two kernels of which it has programs.
struct FusedChoice {
  std::string name;
  std::string tensor;
  std::string cuda;
  void* function = nullptr;
  int32_t tensor_blocks = 1;
  int32_t cuda_blocks = 1;
  int32_t threads_per_block = 0;
  int32_t dynamic_shared_memory_bytes = 0;
  int32_t blocks_per_sm = 0;
  int32_t local_bytes = 0;  // of a thread
};

class Workloads {
 public:
  virtual ~Workloads() = default;

  // Kernels that can run whether or not a profile knows them: the catalogue's.
  virtual std::vector<std::string> CatalogueNames() const { return {}; }
  // Fused kernels that the device can run, of parts of these names.
  virtual std::vector<FusedChoice> FusedOf(const std::vector<std::string>& /*kernels*/) {
    return {};
  }

  // Whether `kernel` can run on this device. `in_profile`: the runtime's profile has a record.
  virtual bool CanRun(const std::string& kernel, bool in_profile) const = 0;
  // Whether `kernel` needs block_tasks in a scenario; `kind` is the profile's, DEFAULT: no record.
  virtual bool CountsBlocks(const std::string& kernel, gpushare_task_kind kind) const = 0;

  // Fills what `kernel` is registered with: kind, functions, capture callback, library call.
  // options.name is set by the caller, the profile's record fills the rest. false: this kernel is
  // opaque work, and nothing is registered. `kind` as above.
  virtual bool FillKernel(const std::string& kernel, gpushare_task_kind kind,
                          gpushare_kernel_options& options) = 0;

  // One binding for each of the app's tasks, in order; the same buffers for the same app and tasks
  // every time. Throws InputError when the tasks make no sense together, RunError without memory.
  virtual std::vector<TaskBinding> Bind(const std::string& app,
                                        const std::vector<WorkItem>& tasks) = 0;

  // Clears every output, so that the answers of an earlier run cannot pass for this one's.
  // No runtime has work of these workloads on the device.
  virtual void BeginRun() = 0;

  // Checks what the app's tasks computed since BeginRun, once the device is idle. false: there is
  // nothing to check here. Throws RunError with one sentence for a wrong answer. `completed`:
  // tasks of the app that completed; without any there is no answer.
  virtual bool Verify(const std::string& app, int64_t completed) = 0;

  virtual HardwareFacts Hardware() const = 0;

  // Whether MakeRaw makes anything: there are launches to make without the library.
  virtual bool HasRaw() const { return false; }
  // The app's tasks ready for bare launches, bound as by Bind; null where there are none. After
  // BeginRun, and gone before the next one.
  virtual std::unique_ptr<RawApp> MakeRaw(const std::string& /*app*/,
                                          const std::vector<WorkItem>& /*tasks*/,
                                          const RawOptions& /*options*/) {
    return nullptr;
  }
};

// The simulated and the null device: kernels are the profile's records.
std::unique_ptr<Workloads> MakeNoWorkloads();

// Real programs on the current CUDA device `ordinal`. Null in a build without CUDA. Throws RunError
// when the device or cuBLAS cannot be used.
std::unique_ptr<Workloads> MakeCudaWorkloads(int ordinal);

// What belongs to the device of `facts`: CUDA's on "cuda", none elsewhere.
std::unique_ptr<Workloads> MakeWorkloads(const DeviceFacts& facts);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_WORKLOADS_H_
