// One function for each form of launch. See launcher.h.

#include "src/cuda/launcher.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/base/limits.h"
#include "src/core/checks/claim_batch.h"
#include "src/core/seams/native_code.h"
#include "src/cuda/driver/errors.h"

namespace gpushare::cuda {
namespace {

// CUDA's bounds on the dimensions of a grid. A worker launch numbers its block tasks with 32 bits.
constexpr int64_t kGridXMax = 2147483647;
constexpr int64_t kGridYzMax = 65535;

using Grid = std::array<unsigned int, 3>;

// `block_tasks` in one dimension unless the work has a shape.
absl::Status GridOf(const core::Work& work, int64_t block_tasks, Grid& grid) {
  const bool shaped = work.grid[0] > 0;
  const int64_t x = shaped ? work.grid[0] : block_tasks;
  const int64_t y = shaped ? std::max(1, work.grid[1]) : 1;
  const int64_t z = shaped ? std::max(1, work.grid[2]) : 1;
  if (x > kGridXMax || y > kGridYzMax || z > kGridYzMax || x * y * z > kGridXMax) {
    return absl::InvalidArgumentError(absl::StrCat("Kernel '", work.kernel->name,
                                                   "' has a grid of ", x, " x ", y, " x ", z,
                                                   " block tasks, and a launch holds ", kGridXMax,
                                                   " with at most ", kGridYzMax, " in y and z."));
  }
  grid = {static_cast<unsigned int>(x), static_cast<unsigned int>(y), static_cast<unsigned int>(z)};
  return absl::OkStatus();
}

absl::Status NotPrepared(const core::KernelDesc& kernel) {
  return absl::InvalidArgumentError(
      absl::StrCat("Kernel '", kernel.name, "' was not prepared for this device."));
}

absl::Status NoFunctionFor(const core::LaunchRequest& request) {
  const bool slice = request.form == core::Form::kSlice;
  return absl::InvalidArgumentError(
      absl::StrCat("Kernel '", request.parts[0].work.kernel->name, "' has ",
                   slice ? "neither a slice nor a worker function, and a slice needs one of them."
                         : "no worker function, and workers need it."));
}

// Of launch `number` of workers in a lane's segments: no launch of the lane has this one.
uint64_t NodeSequence(uint64_t number) { return uint64_t{1} << 63 | number; }

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
  if (request.form != core::Form::kOpaque) {
    if (absl::Status status = WaitForEvents(lane, request); !status.ok()) return status;
  }
  return EnqueueWork(lane, sequence, request);
}

CUresult Launcher::Signal(const CudaLane& lane, const core::LaunchRequest& request) const {
  if (request.signal_event == nullptr) return CUDA_SUCCESS;
  return context_.api().cuEventRecord(static_cast<CUevent>(request.signal_event), lane.stream);
}

absl::Status Launcher::EnqueueWork(CudaLane& lane, uint64_t sequence,
                                   const core::LaunchRequest& request) {
  switch (request.form) {
    case core::Form::kMemcpy:
      return Copy(lane, request.parts[0].work.copy);
    case core::Form::kOpaque:
      // The host function, or the caller's region, has put the work on the stream.
      return absl::OkStatus();
    case core::Form::kLibrary:
      return Library(request);
    case core::Form::kSegments:
      return absl::InternalError("A launch in segments belongs to the feed of its lane.");
    case core::Form::kFused:
      return absl::InternalError("A fused launch has two lanes, and EnqueueFused takes them.");
    case core::Form::kOriginal:
    case core::Form::kWorkers:
    case core::Form::kSlice:
    case core::Form::kGraph:
      break;
  }
  const core::KernelDesc& desc = *request.parts[0].work.kernel;
  if (request.form == core::Form::kGraph) return Graph(lane, desc);
  const PreparedKernel* kernel = functions_.Find(desc.id);
  if (kernel == nullptr) return NotPrepared(desc);
  if (request.form == core::Form::kWorkers) return Workers(lane, *kernel, sequence, request);
  if (request.form == core::Form::kSlice) return Slice(lane, *kernel, request);
  return Original(lane, *kernel, request);
}

absl::Status Launcher::Original(CudaLane& lane, const PreparedKernel& kernel,
                                const core::LaunchRequest& request) {
  // A kernel without an original function runs as one slice of all block tasks: the same grid.
  if (kernel.original.function == nullptr) return Slice(lane, kernel, request);
  Grid grid;
  if (absl::Status status =
          GridOf(request.parts[0].work, std::max<int64_t>(1, request.parts[0].block_count), grid);
      !status.ok()) {
    return status;
  }
  if (absl::Status status = kernel.original.parameters.Check(request.parts[0].work.arguments_bytes,
                                                             request.parts[0].work.kernel->name);
      !status.ok()) {
    return status;
  }
  ParameterAddresses addresses;
  kernel.original.parameters.Fill(request.parts[0].work.arguments, addresses);
  if (request.waits_for_empty_sms && kernel.original_carve_out != kDefaultCarveOut) {
    return LaunchWithCarveOut(lane.stream, kernel, grid, addresses);
  }
  return GPUSHARE_CU(context_.api(), cuLaunchKernel(kernel.original.function, grid[0], grid[1],
                                                    grid[2], kernel.block_x, kernel.block_y,
                                                    kernel.block_z, kernel.dynamic_shared_bytes,
                                                    lane.stream, addresses.data(), nullptr));
}

// The blocks start only on SMs whose memory is divided by this carve-out, and on empty SMs, which
// take it.
absl::Status Launcher::LaunchWithCarveOut(CUstream stream, const PreparedKernel& kernel,
                                          const std::array<unsigned int, 3>& grid,
                                          ParameterAddresses& addresses) const {
  CUlaunchAttribute carve_out = {};
  carve_out.id = CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT;
  carve_out.value.sharedMemCarveout = static_cast<unsigned int>(kernel.original_carve_out);
  CUlaunchConfig config = {};
  config.gridDimX = grid[0];
  config.gridDimY = grid[1];
  config.gridDimZ = grid[2];
  config.blockDimX = kernel.block_x;
  config.blockDimY = kernel.block_y;
  config.blockDimZ = kernel.block_z;
  config.sharedMemBytes = kernel.dynamic_shared_bytes;
  config.hStream = stream;
  config.attrs = &carve_out;
  config.numAttrs = 1;
  return GPUSHARE_CU(context_.api(), cuLaunchKernelEx(&config, kernel.original.function,
                                                      addresses.data(), nullptr));
}

absl::Status Launcher::LaunchWithHeader(CUstream stream, const PreparedKernel& kernel,
                                        const PreparedFunction& function,
                                        const gpushare_worker_launch& header, unsigned int blocks,
                                        const core::LaunchRequest& request) {
  if (absl::Status status = function.parameters.Check(request.parts[0].work.arguments_bytes,
                                                      request.parts[0].work.kernel->name);
      !status.ok()) {
    return status;
  }
  ParameterAddresses addresses;
  addresses[0] = const_cast<gpushare_worker_launch*>(&header);
  function.parameters.Fill(request.parts[0].work.arguments, addresses);
  return GPUSHARE_CU(context_.api(),
                     cuLaunchKernel(function.function, blocks, 1, 1, kernel.block_x, kernel.block_y,
                                    kernel.block_z, kernel.dynamic_shared_bytes, stream,
                                    addresses.data(), nullptr));
}

absl::Status Launcher::Workers(CudaLane& lane, const PreparedKernel& kernel, uint64_t sequence,
                               const core::LaunchRequest& request) {
  if (kernel.worker.function == nullptr) return NoFunctionFor(request);
  Grid grid;
  if (absl::Status status =
          GridOf(request.parts[0].work, std::max<int64_t>(1, request.parts[0].block_count), grid);
      !status.ok()) {
    return status;
  }
  const int64_t holds =
      int64_t{places_.place(lane.spec.place).sms} * std::max(1, kernel.workers_per_sm);
  const int64_t asked = request.workers > 0 ? request.workers : holds;
  // The leader is one more block. If workers would fill the place, the leader takes one worker's
  // room.
  const int64_t leaders = lane.words.eviction_word == nullptr ? 0 : 1;
  const int64_t workers =
      std::max<int64_t>(1, std::min({asked, holds - leaders, request.parts[0].block_count}));
  WorkerPart worker;
  worker.part = &request.parts[0];
  worker.lane = &lane;
  worker.kernel = &kernel;
  worker.sequence = sequence;
  worker.grid = grid;
  worker.workers = workers;
  gpushare_worker_launch header = {};
  if (absl::Status status = MakeHeader(lane.stream, worker, header); !status.ok()) return status;
  absl::Status status = LaunchWithHeader(lane.stream, kernel, kernel.worker, header,
                                         static_cast<unsigned int>(workers + leaders), request);
  if (status.ok() && request.parts[0].reset_counter)
    counters_.Use(worker.part->counter, worker.side);
  return status;
}

absl::Status Launcher::MakeHeader(CUstream stream, WorkerPart& worker,
                                  gpushare_worker_launch& header) {
  const core::LaunchPart& part = *worker.part;
  const LaneWords& words = worker.lane->words;
  const size_t slot = worker.lane->Slot(worker.sequence);
  worker.side = counters_.SideFor(part.counter, part.reset_counter);
  header.eviction_word = words.eviction_word;
  header.host_eviction_word = words.host_eviction_word_on_device;
  header.counter = counters_.At(part.counter, worker.side);
  header.retired_counter = counters_.At(part.counter, worker.side ^ 1);
  header.scratch = words.scratch + slot;
  header.completion = words.records_on_device + slot;
  header.sequence = worker.sequence;
  header.epoch = static_cast<uint32_t>(part.epoch);
  header.block_count = static_cast<uint32_t>(part.block_count);
  header.grid_x = worker.grid[0];
  header.grid_y = worker.grid[1];
  header.grid_z = worker.grid[2];
  header.claim_batch =
      core::ClaimBatchOfLaunch(worker.kernel->claim_batch, part.block_count, worker.workers);
  const bool yields = worker.kernel->yields;
  if (part.reset_counter) {
    if (absl::Status status =
            counters_.PrepareYieldLists(stream, part.counter, worker.side, yields);
        !status.ok()) {
      return status;
    }
  }
  if (yields) {
    header.yield_list = counters_.YieldList(part.counter, worker.side);
    header.yield_capacity = ClaimCounters::kYieldEntries;
  }
  return WriteEarlyEviction(stream, words, header.epoch);
}

// A leader relays the host's word some us after the launch's first workers have claimed. So a word
// that counts when the launch is made, such as a fused partner's quota, goes ahead of the launch by
// the same stream. The leader relays later words.
absl::Status Launcher::WriteEarlyEviction(CUstream stream, const LaneWords& words,
                                          uint32_t epoch) const {
  if (words.eviction_word == nullptr || words.host_eviction_word == nullptr) {
    return absl::OkStatus();
  }
  const uint64_t word = words.host_eviction_word->load(std::memory_order_acquire);
  if (static_cast<int32_t>(static_cast<uint32_t>(word >> 32) - epoch) < 0) return absl::OkStatus();
  const auto address = reinterpret_cast<CUdeviceptr>(words.eviction_word);
  return GPUSHARE_CU(context_.api(),
                     cuStreamWriteValue64(stream, address, word, CU_STREAM_WRITE_VALUE_DEFAULT));
}

CUresult Launcher::LaunchNode(CudaLane& lane, const SegmentRun& run, size_t segment, bool begins,
                              uint64_t number) {
  const NodeTwin& node = graphs_.TwinOf(run.graph, segment);
  const PreparedKernel& kernel = node.twin.kernel;
  const int64_t leaders = lane.words.eviction_word == nullptr ? 0 : 1;
  const int64_t holds =
      int64_t{places_.place(lane.spec.place).sms} * std::max(1, kernel.workers_per_sm);
  core::LaunchPart part;
  part.counter = run.counter;
  part.reset_counter = begins;
  part.epoch = run.epoch;
  part.block_count = node.block_tasks;
  WorkerPart worker;
  worker.part = &part;
  worker.lane = &lane;
  worker.kernel = &kernel;
  worker.sequence = run.sequence;
  worker.grid = node.grid;
  worker.workers = std::max<int64_t>(1, std::min(holds - leaders, node.block_tasks));
  gpushare_worker_launch header = {};
  if (absl::Status status = MakeHeader(lane.stream, worker, header); !status.ok()) {
    const int32_t code = core::NativeCodeOf(status);
    return code == 0 ? CUDA_ERROR_UNKNOWN : static_cast<CUresult>(code);
  }
  // The workers of one launch in segments share a record, so each has a number of its own.
  header.sequence = NodeSequence(number);
  ParameterAddresses addresses;
  addresses[0] = &header;
  node.Fill(addresses);
  const CUresult code = context_.api().cuLaunchKernel(
      kernel.worker.function, static_cast<unsigned int>(worker.workers + leaders), 1, 1,
      kernel.block_x, kernel.block_y, kernel.block_z, kernel.dynamic_shared_bytes, lane.stream,
      addresses.data(), nullptr);
  if (code == CUDA_SUCCESS && begins) counters_.Use(run.counter, worker.side);
  return code;
}

NodeWorkers::Ended Launcher::EndOfNode(const CudaLane& lane, const SegmentRun& run, size_t segment,
                                       uint64_t number) const {
  const gpushare_worker_completion& record = lane.words.records[lane.Slot(run.sequence)];
  const uint64_t written = *const_cast<const volatile uint64_t*>(&record.sequence);
  std::atomic_thread_fence(std::memory_order_acquire);
  if (written != NodeSequence(number)) return {};
  return {true, record.block_tasks_left, graphs_.TwinOf(run.graph, segment).block_tasks};
}

absl::Status Launcher::EnqueueFused(CudaLane& lane, uint64_t sequence, CudaLane& partner_lane,
                                    uint64_t partner_sequence, const core::LaunchRequest& request) {
  const PreparedFused* const fused = functions_.FindFused(request.fused->id);
  if (fused == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("Fused kernel '", request.fused->name,
                     "' comes without a function, and a CUDA device needs one."));
  }
  const bool swapped = !core::FirstIsTensorPart(request);
  std::array<WorkerPart, core::kMaxLaunchParts> parts;
  int64_t useful = 1;
  for (size_t i = 0; i < parts.size(); ++i) {
    const core::LaunchPart& part = request.parts[static_cast<int>(i)];
    const core::KernelDesc& kernel = *part.work.kernel;
    const bool tensor = swapped == (i == 1);
    const size_t wanted = tensor ? fused->tensor_arguments_bytes : fused->cuda_arguments_bytes;
    // A parameter struct without members has one byte, which callers do not pass.
    if (part.work.arguments_bytes < wanted && wanted > 1) {
      return absl::InvalidArgumentError(
          absl::StrCat("Kernel '", kernel.name, "' comes with ", part.work.arguments_bytes,
                       " bytes of arguments, and its part of fused kernel '", request.fused->name,
                       "' takes ", wanted, "."));
    }
    WorkerPart& worker = parts[i];
    worker.part = &part;
    worker.lane = i == 0 ? &lane : &partner_lane;
    worker.sequence = i == 0 ? sequence : partner_sequence;
    worker.kernel = functions_.Find(kernel.id);
    if (worker.kernel == nullptr) return NotPrepared(kernel);
    const int64_t count = part.block_count;
    if (absl::Status status = GridOf(part.work, std::max<int64_t>(1, count), worker.grid);
        !status.ok()) {
      return status;
    }
    worker.workers = tensor ? fused->tensor_blocks : fused->cuda_blocks;
    useful = std::max(useful, (count + worker.workers - 1) / worker.workers);
  }
  const int64_t holds =
      int64_t{places_.place(lane.spec.place).sms} * std::max(1, fused->blocks_per_sm);
  const bool led =
      lane.words.eviction_word != nullptr || partner_lane.words.eviction_word != nullptr;
  const int64_t leaders = led ? 1 : 0;
  const int64_t asked = request.workers > 0 ? request.workers : holds;
  const int64_t blocks = std::max<int64_t>(1, std::min({asked, holds - leaders, useful}));
  for (WorkerPart& worker : parts) worker.workers *= blocks;
  if (absl::Status status = WaitForEvents(lane, request); !status.ok()) return status;
  if (swapped) std::swap(parts[0], parts[1]);
  return LaunchFused(lane.stream, *fused, blocks + leaders, parts);
}

// `parts` has the tensor part first, as the function's parameters have.
absl::Status Launcher::LaunchFused(CUstream stream, const PreparedFused& fused, int64_t blocks,
                                   std::array<WorkerPart, 2>& parts) {
  std::array<gpushare_worker_launch, 2> headers = {};
  for (size_t i = 0; i < parts.size(); ++i) {
    absl::Status status = MakeHeader(stream, parts[i], headers[i]);
    if (!status.ok()) return status;
  }
  char none = 0;
  const auto arguments_of = [&none](const WorkerPart& worker) {
    const void* const arguments = worker.part->work.arguments;
    return arguments == nullptr ? &none : const_cast<void*>(arguments);
  };
  void* parameters[] = {headers.data(), arguments_of(parts[0]), &headers[1],
                        arguments_of(parts[1])};
  absl::Status status = GPUSHARE_CU(
      context_.api(),
      cuLaunchKernel(fused.function, static_cast<unsigned int>(blocks), 1, 1, fused.threads, 1, 1,
                     fused.dynamic_shared_bytes, stream, parameters, nullptr));
  if (!status.ok()) return status;
  for (const WorkerPart& worker : parts) {
    if (worker.part->reset_counter) counters_.Use(worker.part->counter, worker.side);
  }
  return status;
}

absl::Status Launcher::Slice(CudaLane& lane, const PreparedKernel& kernel,
                             const core::LaunchRequest& request) {
  if (kernel.slice.function == nullptr) return NoFunctionFor(request);
  Grid grid;
  const int64_t count = std::max<int64_t>(1, request.parts[0].block_count);
  if (absl::Status status = GridOf(request.parts[0].work, request.block_begin + count, grid);
      !status.ok()) {
    return status;
  }
  gpushare_worker_launch header = {};
  header.block_begin = static_cast<uint32_t>(request.block_begin);
  header.block_count = static_cast<uint32_t>(count);
  header.grid_x = grid[0];
  header.grid_y = grid[1];
  header.grid_z = grid[2];
  header.claim_batch = 1;
  return LaunchWithHeader(lane.stream, kernel, kernel.slice, header,
                          static_cast<unsigned int>(count), request);
}

absl::Status Launcher::Graph(const CudaLane& lane, const core::KernelDesc& kernel) {
  const PreparedGraph* const graph = graphs_.Find(kernel.id);
  if (graph == nullptr) return NotPrepared(kernel);
  return GPUSHARE_CU(context_.api(),
                     cuGraphLaunch(graph->InstanceFor(lane.spec.place), lane.stream));
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
    // Unified addresses tell the driver which GPU holds each end. A copy between two GPUs is direct
    // if the application enabled peer access; otherwise it passes through the host.
    case core::CopyDirection::kPeer:
    case core::CopyDirection::kNone:
      break;
  }
  return GPUSHARE_CU(api, cuMemcpyAsync(to_device, from_device, bytes, lane.stream));
}

absl::Status Launcher::Library(const core::LaunchRequest& request) {
  if (request.parts[0].work.kernel == nullptr ||
      request.parts[0].work.arguments_bytes != sizeof(core::LibraryArguments)) {
    return absl::InvalidArgumentError(
        absl::StrCat("A library call carries ", request.parts[0].work.arguments_bytes,
                     " bytes of arguments, and gpushare_library_arguments has ",
                     sizeof(core::LibraryArguments), "."));
  }
  core::LibraryArguments arguments;
  std::memcpy(&arguments, request.parts[0].work.arguments, sizeof(arguments));
  return library_.Enqueue(request.parts[0].work.kernel->id, request.parts[0].lane, arguments);
}

}  // namespace gpushare::cuda
