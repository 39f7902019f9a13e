// The forms of a launch. See launcher.h.

#include "src/cuda/launcher.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "src/core/limits.h"
#include "src/cuda/errors.h"

namespace gpushare::cuda {
namespace {

// CUDA's bounds on a grid's dimensions; block tasks are numbered by 32 bits in a worker launch.
constexpr int64_t kGridXMax = 2147483647;
constexpr int64_t kGridYzMax = 65535;

struct Grid {
  unsigned int x = 1, y = 1, z = 1;
};

absl::Status GridOf(const core::LaunchRequest& request, int64_t block_tasks, Grid& grid) {
  const bool shaped = request.grid_x > 0;
  const int64_t x = shaped ? request.grid_x : block_tasks;
  const int64_t y = shaped ? std::max(1, request.grid_y) : 1;
  const int64_t z = shaped ? std::max(1, request.grid_z) : 1;
  if (x > kGridXMax || y > kGridYzMax || z > kGridYzMax || x * y * z > kGridXMax) {
    return absl::InvalidArgumentError(absl::StrCat("Kernel '", request.kernel->name,
                                                   "' has a grid of ", x, " x ", y, " x ", z,
                                                   " block tasks, and a launch holds ", kGridXMax,
                                                   " with at most ", kGridYzMax, " in y and z."));
  }
  grid = {static_cast<unsigned int>(x), static_cast<unsigned int>(y), static_cast<unsigned int>(z)};
  return absl::OkStatus();
}

absl::Status NoWorkerFunction(const core::LaunchRequest& request) {
  return absl::InvalidArgumentError(
      absl::StrCat("Kernel '", request.kernel->name,
                   "' has no worker function, and slices and workers need it."));
}

template <class T>
T* Shifted(T* pointer, int64_t offset) {
  using Byte = std::conditional_t<std::is_const_v<T>, const std::byte, std::byte>;
  return static_cast<Byte*>(pointer) + offset;
}

}  // namespace

absl::Status Launcher::WaitForEvents(const CudaLane& lane,
                                     const core::LaunchRequest& request) const {
  for (void* const event : request.wait_events) {
    GPUSHARE_CU_RETURN(context_.api(),
                       cuStreamWaitEvent(lane.stream, static_cast<CUevent>(event), 0));
  }
  return absl::OkStatus();
}

absl::Status Launcher::Enqueue(CudaLane& lane, uint64_t sequence,
                               const core::LaunchRequest& request) {
  const DriverApi& api = context_.api();
  if (request.form != core::Form::kOpaque) {
    if (absl::Status status = WaitForEvents(lane, request); !status.ok()) return status;
  }
  if (absl::Status status = EnqueueWork(lane, sequence, request); !status.ok()) return status;
  if (request.signal_event == nullptr) return absl::OkStatus();
  return GPUSHARE_CU(api, cuEventRecord(static_cast<CUevent>(request.signal_event), lane.stream));
}

absl::Status Launcher::EnqueueWork(CudaLane& lane, uint64_t sequence,
                                   const core::LaunchRequest& request) {
  switch (request.form) {
    case core::Form::kMemcpy:
      return Copy(lane, request.copy);
    case core::Form::kOpaque:
      // Its work is on the stream already, as that of a region is at the region's end.
      return absl::OkStatus();
    case core::Form::kLibrary:
      return Library(request);
    case core::Form::kFused:
      return absl::UnimplementedError(
          absl::StrCat("Fused kernel '", request.fused->name,
                       "' cannot be launched: this version of the CUDA device runs no fused "
                       "kernels."));
    case core::Form::kOriginal:
    case core::Form::kWorkers:
    case core::Form::kSlice:
    case core::Form::kGraph:
      break;
  }
  const PreparedKernel* kernel = kernels_.Find(request.kernel->id);
  if (kernel == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("Kernel '", request.kernel->name, "' was not prepared for this device."));
  }
  if (request.form == core::Form::kGraph) return Graph(lane, *kernel);
  if (request.form == core::Form::kWorkers) return Workers(lane, *kernel, sequence, request);
  if (request.form == core::Form::kSlice) return Slice(lane, *kernel, request);
  return Original(lane, *kernel, request);
}

absl::Status Launcher::Original(CudaLane& lane, const PreparedKernel& kernel,
                                const core::LaunchRequest& request) {
  // Without an ordinary form, all block tasks as one slice are the same grid.
  if (kernel.original == nullptr) return Slice(lane, kernel, request);
  Grid grid;
  if (absl::Status status = GridOf(request, std::max<int64_t>(1, request.block_count), grid);
      !status.ok()) {
    return status;
  }
  size_t bytes = request.arguments_bytes;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<void*>(request.arguments),
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  return GPUSHARE_CU(context_.api(),
                     cuLaunchKernel(kernel.original, grid.x, grid.y, grid.z, kernel.block_x,
                                    kernel.block_y, kernel.block_z, kernel.dynamic_shared_bytes,
                                    lane.stream, nullptr, bytes == 0 ? nullptr : extra));
}

absl::Status Launcher::LaunchWorkerFunction(CUstream stream, const PreparedKernel& kernel,
                                            const gpushare_worker_launch& header,
                                            unsigned int blocks,
                                            const core::LaunchRequest& request) {
  // The header, then the task's arguments, as the worker function's parameters lie.
  alignas(core::kArgumentAlignment)
      std::array<std::byte, sizeof(gpushare_worker_launch) + core::kMaxArgumentBytes>
          buffer;
  std::memcpy(buffer.data(), &header, sizeof(header));
  if (request.arguments_bytes > 0) {
    std::memcpy(buffer.data() + sizeof(header), request.arguments, request.arguments_bytes);
  }
  size_t bytes = sizeof(header) + request.arguments_bytes;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, buffer.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                   &bytes, CU_LAUNCH_PARAM_END};
  return GPUSHARE_CU(
      context_.api(),
      cuLaunchKernel(kernel.worker, blocks, 1, 1, kernel.block_x, kernel.block_y, kernel.block_z,
                     kernel.dynamic_shared_bytes, stream, nullptr, extra));
}

absl::Status Launcher::Workers(CudaLane& lane, const PreparedKernel& kernel, uint64_t sequence,
                               const core::LaunchRequest& request) {
  if (kernel.worker == nullptr) return NoWorkerFunction(request);
  Grid grid;
  if (absl::Status status = GridOf(request, std::max<int64_t>(1, request.block_count), grid);
      !status.ok()) {
    return status;
  }
  const int64_t holds =
      int64_t{places_.place(lane.spec.place).sms} * std::max(1, kernel.workers_per_sm);
  const int64_t asked = request.workers > 0 ? request.workers : holds;
  // One more block leads: where workers would fill the place, it takes the last one's room.
  const int64_t leaders = lane.words.eviction_word == nullptr ? 0 : 1;
  const int64_t workers =
      std::max<int64_t>(1, std::min({asked, holds - leaders, request.block_count}));
  const int side = counters_.SideFor(request.counter, request.reset_counter);
  const size_t slot = lane.Slot(sequence);
  gpushare_worker_launch header = {};
  header.eviction_word = lane.words.eviction_word;
  header.host_eviction_word = lane.words.host_eviction_word_on_device;
  header.counter = counters_.At(request.counter, side);
  header.retired_counter = counters_.At(request.counter, side ^ 1);
  header.scratch = lane.words.scratch + slot;
  header.completion = lane.words.records_on_device + slot;
  header.sequence = sequence;
  header.epoch = static_cast<uint32_t>(request.epoch);
  header.block_count = static_cast<uint32_t>(request.block_count);
  header.grid_x = grid.x;
  header.grid_y = grid.y;
  header.grid_z = grid.z;
  header.claim_batch = kernel.claim_batch;
  if (request.reset_counter) {
    if (absl::Status status =
            counters_.PrepareYieldLists(lane.stream, request.counter, side, kernel.yields);
        !status.ok()) {
      return status;
    }
  }
  if (kernel.yields) {
    header.yield_list = counters_.YieldList(request.counter, side);
    header.yield_capacity = ClaimCounters::kYieldEntries;
  }
  absl::Status status = LaunchWorkerFunction(lane.stream, kernel, header,
                                             static_cast<unsigned int>(workers + leaders), request);
  if (status.ok() && request.reset_counter) counters_.Use(request.counter, side);
  return status;
}

absl::Status Launcher::Slice(CudaLane& lane, const PreparedKernel& kernel,
                             const core::LaunchRequest& request) {
  if (kernel.worker == nullptr) return NoWorkerFunction(request);
  Grid grid;
  const int64_t count = std::max<int64_t>(1, request.block_count);
  if (absl::Status status = GridOf(request, request.block_begin + count, grid); !status.ok()) {
    return status;
  }
  gpushare_worker_launch header = {};
  header.block_begin = static_cast<uint32_t>(request.block_begin);
  header.block_count = static_cast<uint32_t>(count);
  header.grid_x = grid.x;
  header.grid_y = grid.y;
  header.grid_z = grid.z;
  header.claim_batch = 1;
  return LaunchWorkerFunction(lane.stream, kernel, header, static_cast<unsigned int>(count),
                              request);
}

absl::Status Launcher::Graph(CudaLane& lane, const PreparedKernel& kernel) {
  CUgraphExec instance =
      kernel.instances[static_cast<size_t>(lane.spec.place)].load(std::memory_order_acquire);
  // A place too small for one of its kernels: the graph runs, in the lane's order, on every SM.
  if (instance == nullptr) instance = kernel.instances[core::kWholeDevice].load();
  return GPUSHARE_CU(context_.api(), cuGraphLaunch(instance, lane.stream));
}

absl::Status Launcher::Copy(CudaLane& lane, const core::CopyRequest& copy) {
  if (copy.destination == nullptr || copy.source == nullptr) {
    return absl::InvalidArgumentError("A copy has no source or no destination.");
  }
  void* const destination = Shifted(copy.destination, copy.offset);
  const void* const source = Shifted(copy.source, copy.offset);
  const auto bytes = static_cast<size_t>(copy.bytes);
  const auto to_device = reinterpret_cast<CUdeviceptr>(destination);
  const auto from_device = reinterpret_cast<CUdeviceptr>(source);
  const DriverApi& api = context_.api();
  switch (copy.direction) {
    case core::CopyDirection::kHostToDevice:
      return GPUSHARE_CU(api, cuMemcpyHtoDAsync(to_device, source, bytes, lane.stream));
    case core::CopyDirection::kDeviceToHost:
      return GPUSHARE_CU(api, cuMemcpyDtoHAsync(destination, from_device, bytes, lane.stream));
    // Unified addresses say where they lie: this GPU or another. Between two GPUs the copy is
    // direct where the application enabled peer access, and passes through the host elsewhere.
    case core::CopyDirection::kPeer:
    case core::CopyDirection::kNone:
      break;
  }
  return GPUSHARE_CU(api, cuMemcpyAsync(to_device, from_device, bytes, lane.stream));
}

absl::Status Launcher::Library(const core::LaunchRequest& request) {
  if (request.kernel == nullptr || request.arguments_bytes != sizeof(core::LibraryArguments)) {
    return absl::InvalidArgumentError(
        absl::StrCat("A library call carries ", request.arguments_bytes,
                     " bytes of arguments, and gpushare_library_arguments has ",
                     sizeof(core::LibraryArguments), "."));
  }
  core::LibraryArguments arguments;
  std::memcpy(&arguments, request.arguments, sizeof(arguments));
  return library_.Enqueue(request.kernel->id, request.lane, arguments);
}

}  // namespace gpushare::cuda
