// What a task does on the device: kernel, grid and arguments, a copy, or a callback.
//
// One shape from submit to the device: TaskSpec, Task and LaunchRequest embed a Work. Submit fills
// it, a launch narrows it to what is left, a device reads it. Plain data; pointers belong to the
// caller, but for `arguments`, which submit copies into the task's slot. Threads: as plain data.

#ifndef GPUSHARE_SRC_CORE_SEAMS_WORK_H_
#define GPUSHARE_SRC_CORE_SEAMS_WORK_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "src/core/base/types.h"
#include "src/core/seams/kernel.h"

namespace gpushare::core {

struct CopyRequest {
  CopyDirection direction = CopyDirection::kNone;
  bool pinned = true;
  int64_t bytes = 0;   // of this launch
  int64_t offset = 0;  // into the buffers
  void* destination = nullptr;
  const void* source = nullptr;
};

// Enqueues the caller's work on the stream.
using HostFunction = void (*)(void* stream, void* user);

struct Work {
  TaskKind kind = TaskKind::kKernel;
  const KernelDesc* kernel = nullptr;  // null for memcpy and opaque work
  // kKernel: the original grid; zeros: one dimension. Its product is block_tasks.
  std::array<int32_t, 3> grid{};
  // kKernel: blocks of the original grid. Submit sets it for the other kinds: the bytes of a copy,
  // the segments of a BE graph, else 1.
  int64_t block_tasks = 0;
  const void* arguments = nullptr;
  size_t arguments_bytes = 0;
  CopyRequest copy;                      // kMemcpy
  HostFunction host_function = nullptr;  // kOpaque
  void* host_user = nullptr;
  int64_t declared_ns = 0;  // kOpaque, kLibrary: the caller's bound, 0 unknown
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_SEAMS_WORK_H_
