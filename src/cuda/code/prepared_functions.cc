// Loads functions before their first launch. See prepared_functions.h.

#include "src/cuda/code/prepared_functions.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gpushare/device/fused_variants.h"
#include "gpushare/device/launch.h"
#include "gpushare/device/shared_memory_split.h"
#include "src/core/base/status.h"
#include "src/core/checks/claim_batch.h"
#include "src/cuda/code/shared_memory.h"
#include "src/cuda/driver/errors.h"

namespace gpushare::cuda {
namespace {

// Per cent of an SM's memory that serves as shared memory instead of L1 cache.
constexpr int kCarveOutMax = 100;

CUfunction FunctionOf(void* handle) { return static_cast<CUfunction>(handle); }

// `kernel` names the kernel within a sentence: "kernel 'sum'".
absl::Status CheckLimit(absl::string_view kernel, absl::string_view what, int64_t value,
                        int64_t limit) {
  if (value <= limit) return absl::OkStatus();
  std::string subject(kernel);
  subject.front() = absl::ascii_toupper(static_cast<unsigned char>(subject.front()));
  return absl::InvalidArgumentError(absl::StrCat(subject, " asks for ", value, " ", what,
                                                 ", and its function allows ", limit, "."));
}

// Asks for the most shared memory unless the caller chose a split. An SM changes its split only
// when it is empty; otherwise LC blocks that need shared memory would wait until the last BE block
// leaves.
absl::Status AskForSharedMemory(const DriverApi& api, CUfunction function) {
  int preferred = kDefaultCarveOut;
  GPUSHARE_CU_RETURN(
      api,
      cuFuncGetAttribute(&preferred, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, function));
  if (preferred != kDefaultCarveOut) return absl::OkStatus();
  return GPUSHARE_CU(
      api, cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                              kCarveOutMax));
}

// How many blocks of the function fit on an SM. Sets `threads_per_block` to the most that the
// function allows if it is 0. INVALID_ARGUMENT if no block fits.
absl::StatusOr<int32_t> BlocksPerSm(const DriverApi& api, CUfunction function,
                                    absl::string_view kernel, int32_t dynamic_shared_bytes,
                                    int32_t& threads_per_block) {
  int threads_max = 0;
  GPUSHARE_CU_RETURN(
      api, cuFuncGetAttribute(&threads_max, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
  if (threads_per_block == 0) threads_per_block = threads_max;
  absl::Status status = CheckLimit(kernel, "threads a block", threads_per_block, threads_max);
  if (status.ok()) status = AllowSharedMemory(api, function, dynamic_shared_bytes);
  if (!status.ok()) return status;
  int blocks = 0;
  GPUSHARE_CU_RETURN(
      api, cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, threads_per_block,
                                                       static_cast<size_t>(dynamic_shared_bytes)));
  if (blocks > 0) return blocks;
  return absl::InvalidArgumentError(
      absl::StrCat("No block of ", kernel, " fits on an SM of this GPU."));
}

}  // namespace

absl::Status PreparedFunctions::Describe(core::KernelDesc& kernel) {
  if (absl::Status status = ptx_.Load(kernel); !status.ok()) return status;
  const core::FunctionCode* const functions = kernel.functions();
  if (functions == nullptr) return absl::OkStatus();
  void* handle = functions->worker;
  if (handle == nullptr) handle = functions->original;
  if (handle == nullptr) handle = functions->slice;
  if (handle == nullptr) return absl::OkStatus();
  const ScopedContext current(context_);
  const DriverApi& api = context_.api();
  const CUfunction function = FunctionOf(handle);
  const std::string name = absl::StrCat("kernel '", kernel.name, "'");
  int registers = 0;
  int shared = 0;
  GPUSHARE_CU_RETURN(api, cuFuncGetAttribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
  GPUSHARE_CU_RETURN(api,
                     cuFuncGetAttribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function));
  const absl::StatusOr<int32_t> workers =
      BlocksPerSm(api, function, name, kernel.resources.dynamic_shared_memory_bytes,
                  kernel.resources.threads_per_block);
  if (!workers.ok()) return workers.status();
  if (kernel.resources.registers_per_thread == 0) kernel.resources.registers_per_thread = registers;
  if (functions->worker != nullptr) {
    int carve_out = kCarveOutMax;
    GPUSHARE_CU_RETURN(
        api, cuFuncGetAttribute(&carve_out, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                FunctionOf(functions->worker)));
    kernel.resources.keeps_l1 = carve_out != kDefaultCarveOut && carve_out != kCarveOutMax;
  }
  if (kernel.resources.shared_memory_bytes == 0) {
    kernel.resources.shared_memory_bytes = shared + kernel.resources.dynamic_shared_memory_bytes;
  }
  if (kernel.resources.workers_per_sm_max == 0) kernel.resources.workers_per_sm_max = *workers;
  return CheckLimit(name, "workers an SM", kernel.resources.workers_per_sm_max, *workers);
}

// `headers`: 1 if a launch header precedes the task's parameters, otherwise 0.
absl::Status PreparedFunctions::LoadFunction(const core::KernelDesc& kernel, void* handle,
                                             size_t headers, PreparedFunction& prepared) const {
  prepared.function = FunctionOf(handle);
  if (handle == nullptr) return absl::OkStatus();
  const DriverApi& api = context_.api();
  GPUSHARE_CU_RETURN(api, cuFuncLoad(prepared.function));
  absl::Status status =
      AllowSharedMemory(api, prepared.function, kernel.resources.dynamic_shared_memory_bytes);
  ParameterLayout& parameters = prepared.parameters;
  if (status.ok()) status = parameters.Read(api, prepared.function, headers, kernel.name);
  if (!status.ok() || headers == 0) return status;
  if (parameters.header_bytes() != sizeof(gpushare_worker_launch)) {
    return absl::InvalidArgumentError(
        absl::StrCat("The first parameter of a worker or slice function of kernel '", kernel.name,
                     "' has ", parameters.header_bytes(), " bytes, and it is a launch header of ",
                     sizeof(gpushare_worker_launch), "."));
  }
  return AskForSharedMemory(api, prepared.function);
}

// kDefaultCarveOut where another one gains nothing, is the caller's choice, or is not known.
int PreparedFunctions::OriginalCarveOut(const core::KernelDesc& kernel,
                                        const PreparedKernel& prepared) const {
  const CUfunction original = prepared.original.function;
  if (original == nullptr || !kernel.resources.keeps_l1) return kDefaultCarveOut;
  const DriverApi& api = context_.api();
  const auto threads = static_cast<int>(prepared.block_x * prepared.block_y * prepared.block_z);
  int preferred = 0;
  int shared = 0;
  int blocks = 0;
  const bool known =
      api.cuFuncGetAttribute(&preferred, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                             original) == CUDA_SUCCESS &&
      api.cuFuncGetAttribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, original) ==
          CUDA_SUCCESS &&
      api.cuOccupancyMaxActiveBlocksPerMultiprocessor(
          &blocks, original, threads, prepared.dynamic_shared_bytes) == CUDA_SUCCESS;
  if (!known || preferred != kDefaultCarveOut || blocks <= 0) return kDefaultCarveOut;
  const int reserved = context_.Attribute(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK);
  const int of_sm = context_.Attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  return device::SharedMemorySplitPercent(
      blocks, static_cast<size_t>(shared) + prepared.dynamic_shared_bytes,
      static_cast<size_t>(reserved), static_cast<size_t>(of_sm));
}

absl::Status PreparedFunctions::Prepare(const core::KernelDesc& kernel) {
  const core::FunctionCode& functions = *kernel.functions();
  if (functions.original == nullptr && functions.worker == nullptr && functions.slice == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Kernel '", kernel.name, "' comes without a function, and a CUDA device needs one."));
  }
  if (kernel.evictable && functions.worker == nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Kernel '", kernel.name, "' is evictable, and it has no worker function to evict."));
  }
  const ScopedContext current(context_);
  auto made = std::make_unique<PreparedKernel>();
  PreparedKernel& prepared = *made;
  absl::Status status = LoadFunction(kernel, functions.original, 0, prepared.original);
  if (status.ok()) status = LoadFunction(kernel, functions.worker, 1, prepared.worker);
  if (status.ok()) status = LoadFunction(kernel, functions.slice, 1, prepared.slice);
  if (!status.ok()) return status;
  if (prepared.slice.function == nullptr) prepared.slice = prepared.worker;
  const bool shaped = kernel.resources.block_x > 0;
  prepared.block_x = static_cast<unsigned int>(shaped ? kernel.resources.block_x
                                                      : kernel.resources.threads_per_block);
  prepared.block_y = static_cast<unsigned int>(shaped ? kernel.resources.block_y : 1);
  prepared.block_z = static_cast<unsigned int>(shaped ? kernel.resources.block_z : 1);
  prepared.dynamic_shared_bytes =
      static_cast<unsigned int>(kernel.resources.dynamic_shared_memory_bytes);
  prepared.workers_per_sm = std::max(1, kernel.resources.workers_per_sm_max);
  prepared.claim_batch =
      core::PredictClaimBatch(static_cast<double>(kernel.simulation.block_task_ns));
  prepared.yields = prepared.worker.function != nullptr && kernel.yield_interval_ns > 0;
  prepared.original_carve_out = OriginalCarveOut(kernel, prepared);
  Forget(kernel.id);  // what an earlier kernel of this number left
  const core::PtxCode* const ptx = kernel.ptx();
  if (ptx != nullptr && ptx->graph_nodes && kernel.evictable && functions.original != nullptr) {
    originals_[prepared.original.function] = {kernel.id, ptx->entry};
  }
  kernels_.Put(kernel.id, std::move(made));
  ptx_.Keep(kernel);
  return absl::OkStatus();
}

void PreparedFunctions::Release(core::KernelId id) {
  Forget(id);
  ptx_.Release(id);
}

void PreparedFunctions::Forget(core::KernelId id) {
  for (auto original = originals_.begin(); original != originals_.end();) {
    original = original->second.kernel == id ? originals_.erase(original) : std::next(original);
  }
}

std::optional<WorkerTwin> PreparedFunctions::TwinOf(CUfunction original) const {
  const auto found = originals_.find(original);
  if (found == originals_.end()) return std::nullopt;
  const auto& [kernel, entry] = found->second;
  WorkerTwin twin{kernel, *kernels_.Find(kernel), ptx_.LibraryOf(kernel), entry,
                  ptx_.OriginalOf(kernel)};
  if (twin.kernel.worker.function == nullptr || twin.library == nullptr) return std::nullopt;
  return twin;
}

absl::Status PreparedFunctions::PrepareFused(core::FusedKernelDesc& fused) {
  if (fused.function == nullptr) {
    fused.blocks_per_sm = std::max(1, fused.blocks_per_sm);
    return absl::OkStatus();
  }
  const ScopedContext current(context_);
  auto prepared = std::make_unique<PreparedFused>();
  if (absl::Status status = LoadFused(fused, *prepared); !status.ok()) return status;
  fused_.Put(fused.id, std::move(prepared));
  return absl::OkStatus();
}

absl::Status PreparedFunctions::LoadFused(core::FusedKernelDesc& fused,
                                          PreparedFused& prepared) const {
  const DriverApi& api = context_.api();
  const CUfunction function = prepared.function = FunctionOf(fused.function);
  GPUSHARE_CU_RETURN(api, cuFuncLoad(function));
  // The function takes (header, tensor parameters, header, CUDA-core parameters).
  std::array<size_t, 4> bytes{};
  for (size_t i = 0; i < bytes.size(); ++i) {
    size_t offset = 0;
    GPUSHARE_CU_RETURN(api, cuFuncGetParamInfo(function, i, &offset, &bytes[i]));
  }
  if (bytes[0] == sizeof(gpushare_direct_launch) && bytes[2] == sizeof(gpushare_direct_launch)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "Fused kernel '", fused.name,
        "' is of form GPUSHARE_FUSED_DIRECT, a baseline for benchmarks whose launches report no "
        "end; register one of form GPUSHARE_FUSED_PLAIN or GPUSHARE_FUSED_SETMAXNREG."));
  }
  if (bytes[0] != sizeof(gpushare_worker_launch) || bytes[2] != sizeof(gpushare_worker_launch)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "The parameters of fused kernel '", fused.name, "' have ", bytes[0], ", ", bytes[1], ", ",
        bytes[2], " and ", bytes[3], " bytes, and the first and third are launch headers of ",
        sizeof(gpushare_worker_launch), "."));
  }
  const absl::StatusOr<int32_t> blocks =
      BlocksPerSm(api, function, absl::StrCat("fused kernel '", fused.name, "'"),
                  fused.dynamic_shared_memory_bytes, fused.threads_per_block);
  if (!blocks.ok()) return blocks.status();
  // Compiled fused kernels have asked already (fused.cuh); nobody has for those of PTX.
  GPUSHARE_RETURN_IF_ERROR(AskForSharedMemory(api, function));
  if (fused.blocks_per_sm == 0) fused.blocks_per_sm = *blocks;
  prepared.tensor_arguments_bytes = bytes[1];
  prepared.cuda_arguments_bytes = bytes[3];
  prepared.threads = static_cast<unsigned int>(fused.threads_per_block);
  prepared.dynamic_shared_bytes = static_cast<unsigned int>(fused.dynamic_shared_memory_bytes);
  prepared.blocks_per_sm = std::min(*blocks, fused.blocks_per_sm);
  prepared.tensor_blocks = fused.tensor_blocks;
  prepared.cuda_blocks = fused.cuda_blocks;
  return absl::OkStatus();
}

}  // namespace gpushare::cuda
