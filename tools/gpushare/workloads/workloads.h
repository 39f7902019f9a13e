// The programs behind the kernel names of a scenario: functions, graphs and library calls, the
// buffers and arguments of each task, and the checks of results.
//
// On the simulated device a name has only the profile's record (MakeNoWorkloads). On a GPU
// cuda/workloads.cc has the programs. One object serves all runs of a process: the first Bind of an
// app allocates its buffers, and they are kept.
//
// Threads: one at a time, between runs; bound tasks may then be submitted from any thread. The
// object must outlive every runtime in which its kernels are registered.

#ifndef GPUSHARE_TOOLS_GPUSHARE_WORKLOADS_WORKLOADS_H_
#define GPUSHARE_TOOLS_GPUSHARE_WORKLOADS_WORKLOADS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/gpushare/base/library.h"
#include "tools/gpushare/scenario/scenario.h"

namespace gpushare::tool {

// The fields of one task for a submit, without its kernel's handle. Pointers belong to the
// Workloads.
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

// Task options with the fields of `binding`; `kernel` is null for copies and opaque work.
gpushare_task_options TaskOptionsOf(const TaskBinding& binding, gpushare_kernel* kernel);

// The priority of a stream among the streams of the device.
enum class RawPriority : uint8_t { kNormal, kHighest, kLowest };

// Bare launches are given this long to end. Their kernels are bounded, so that they end by
// themselves.
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
  // Waits for all launches, for RawOptions::drain_ns at most.
  virtual ~RawApp() = default;
  virtual void Launch(size_t task) = 0;
  // Sets mark `mark`, which is reached when all launches before it are done. `mark` is below
  // RawOptions::marks and not pending.
  virtual void Mark(size_t mark) = 0;
  virtual bool Reached(size_t mark) = 0;
};

// The facts of a real device for the report.
struct HardwareFacts {
  std::string gpu;     // "NVIDIA H200", empty: not a real device
  std::string driver;  // "580.95.05", empty: unknown
};

// A fused kernel of this program, made of two of its kernels.
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

// A library call to time, with operands that nobody checks.
struct LibraryShape {
  std::string name;
  gpushare_library_call call = GPUSHARE_LIBRARY_CALL_INIT;
  gpushare_library_arguments arguments = {};
};

// A graph to time, whose result nobody checks.
struct GraphChoice {
  std::string name;
  int32_t (*capture)(void* user, void* stream, int32_t sms) = nullptr;
  void* user = nullptr;
};

// Which library calls are listed: shapes of networks, shapes that were drawn at random, some that
// are measured on every number of SMs, or those of a draw that judges models and trains none.
enum class ShapeSet : uint8_t { kKnown, kDrawn, kPlaced, kBlind };

class Workloads {
 public:
  virtual ~Workloads() = default;

  // Library calls of many shapes; none on the simulated device. They live as long as this object.
  virtual const std::vector<LibraryShape>& LibraryShapes(ShapeSet set);
  // Whole queries at several input sizes; none on the simulated device. They live as long.
  virtual const std::vector<GraphChoice>& SizedQueries();

  // The kernels of the catalogue, which can run without a record in a profile.
  virtual std::vector<std::string> CatalogueNames() const { return {}; }
  // The fused kernels that the device can run and whose parts are both in `kernels`.
  virtual std::vector<FusedChoice> FusedOf(const std::vector<std::string>& /*kernels*/) {
    return {};
  }

  // Whether `kernel` can run on this device. `in_profile`: the runtime's profile has a record.
  virtual bool CanRun(const std::string& kernel, bool in_profile) const = 0;
  // Whether `kernel` needs block_tasks in a scenario. `kind` is the profile's; DEFAULT: no record.
  virtual bool CountsBlocks(const std::string& kernel, gpushare_task_kind kind) const = 0;

  // Fills the options to register `kernel` with: kind, functions, capture callback, library call.
  // The caller sets options.name, and the profile's record fills the rest. False for opaque work,
  // which is not registered. `kind` as above.
  virtual bool FillKernel(const std::string& kernel, gpushare_task_kind kind,
                          gpushare_kernel_options& options) = 0;

  // One binding for each of the app's tasks, in order. The same app and tasks get the same buffers
  // every time. Throws InputError if the tasks do not fit together, RunError without memory.
  virtual std::vector<TaskBinding> Bind(const std::string& app,
                                        const std::vector<WorkItem>& tasks) = 0;

  // Clears every output, so that results of an earlier run cannot pass for those of this run. No
  // work of these workloads may be on the device.
  virtual void BeginRun() = 0;

  // Checks the results of the app's tasks since BeginRun; the device must be idle. False if there
  // is nothing to check. Throws RunError with one sentence for a wrong result. `completed` is the
  // number of the app's tasks that completed; with 0 there is no result.
  virtual bool Verify(const std::string& app, int64_t completed) = 0;

  virtual HardwareFacts Hardware() const = 0;

  // Whether MakeRaw works: the device has bare launches without the library.
  virtual bool HasRaw() const { return false; }
  // The app's tasks for bare launches, bound as by Bind; null without HasRaw. Make it after
  // BeginRun and destroy it before the next BeginRun.
  virtual std::unique_ptr<RawApp> MakeRaw(const std::string& /*app*/,
                                          const std::vector<WorkItem>& /*tasks*/,
                                          const RawOptions& /*options*/) {
    return nullptr;
  }
};

// For the simulated and the null device: a kernel is its record in the profile.
std::unique_ptr<Workloads> MakeNoWorkloads();

// For CUDA device `ordinal`: real programs. Null in a build without CUDA. Throws RunError if the
// device or cuBLAS cannot be used.
std::unique_ptr<Workloads> MakeCudaWorkloads(int ordinal);

// The workloads for the device of `facts`: MakeCudaWorkloads on "cuda", else MakeNoWorkloads.
std::unique_ptr<Workloads> MakeWorkloads(const DeviceFacts& facts);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_WORKLOADS_WORKLOADS_H_
