// Modules of PTX and their functions. See ptx_functions.h.

#include "src/cuda/code/ptx_functions.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "src/core/base/status.h"
#include "src/cuda/code/cubin.h"
#include "src/cuda/code/driver_jit.h"
#include "src/cuda/code/nvjitlink.h"
#include "src/cuda/code/shared_memory.h"
#include "src/cuda/driver/errors.h"
#include "src/ptx/twin.h"

namespace gpushare::cuda {
namespace {

// Registers are given to warps in units of 8 a thread.
constexpr int kRegisterUnit = 8;

// Whether the caller's own original is all that there is to run.
bool NeedsNoModule(const core::PtxCode& ptx) {
  return ptx.functions.original != nullptr && !ptx.worker.made() && !ptx.slice.made();
}

// Which forms a text has, for the cache.
std::string FormsOf(const core::PtxCode& ptx) {
  return absl::StrCat("original", ptx.worker.made() ? "+worker" : "",
                      ptx.slice.made() ? "+slice" : "");
}

int ThreadsOf(const core::KernelResources& block) {
  if (block.threads_per_block > 0) return block.threads_per_block;
  return block.block_x * std::max(block.block_y, 1) * std::max(block.block_z, 1);
}

}  // namespace

PtxFunctions::~PtxFunctions() {
  if (leaked_) return;
  const ScopedContext current(context_);
  const ScopedRelaxedCapture relaxed(context_.api());
  loaded_ = {};
  kept_ = {};
}

void PtxFunctions::Leak() {
  leaked_ = true;
  if (loaded_.library != nullptr) loaded_.library->Leak();
  kept_.ForEach([](Module& module) { module.library->Leak(); });
}

absl::Status PtxFunctions::Load(core::KernelDesc& kernel) {
  core::PtxCode* const ptx = kernel.ptx();
  if (ptx == nullptr) return absl::OkStatus();
  const ScopedContext current(context_);
  loaded_ = {};
  if (NeedsNoModule(*ptx)) return absl::OkStatus();
  if (ptx->entry.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("Kernel '", kernel.name,
                     "' is not named in its text: ptx_code.entry is null, "
                     "and the text is not understood. ",
                     ptx->worker.refusal));
  }
  GPUSHARE_ASSIGN_OR_RETURN(Module module,
                            LoadModule(*ptx, ptx->module.empty() ? ptx->text : ptx->module));
  GPUSHARE_RETURN_IF_ERROR(FitWorkers(kernel, module));
  GPUSHARE_RETURN_IF_ERROR(RefuseWhatDoesNotFit(kernel, module));
  if (ptx->functions.original == nullptr) ptx->functions.original = module.original;
  ptx->functions.worker = module.worker;
  ptx->functions.slice = module.slice;
  loaded_ = std::move(module);
  return absl::OkStatus();
}

void PtxFunctions::Keep(const core::KernelDesc& kernel) {
  if (kernel.ptx() == nullptr || loaded_.library == nullptr) return;
  kept_.Put(kernel.id, std::make_unique<Module>(std::move(loaded_)));
  loaded_ = {};
}

void PtxFunctions::Release(core::KernelId id) {
  if (kept_.Find(id) == nullptr) return;
  const ScopedContext current(context_);
  kept_.Erase(id);
}

std::shared_ptr<KernelLibrary> PtxFunctions::LibraryOf(core::KernelId id) const {
  const Module* const module = kept_.Find(id);
  return module == nullptr ? nullptr : module->library;
}

CUfunction PtxFunctions::OriginalOf(core::KernelId id) const {
  const Module* const module = kept_.Find(id);
  return module == nullptr ? nullptr : module->original;
}

const Assembly& PtxFunctions::assembly() {
  if (assembly_ != nullptr) return *assembly_;
  assembly_ = std::make_unique<Assembly>(
      CodeCache(CodeCache::FolderOfEnvironment()),
      ArchitectureOf(context_.Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                     context_.Attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)));
  absl::StatusOr<std::unique_ptr<Assembler>> toolkit = OpenNvJitLink();
  if (toolkit.ok()) assembly_->Add(*std::move(toolkit));
  assembly_->Add(std::make_unique<DriverJit>(context_.api()));
  return *assembly_;
}

absl::StatusOr<PtxFunctions::Module> PtxFunctions::LoadModule(const core::PtxCode& ptx,
                                                              const std::string& text) {
  Module module;
  absl::Status status =
      assembly().Make(text, FormsOf(ptx), [&](absl::string_view code) -> absl::Status {
        absl::StatusOr<Module> loaded = LoadCode(ptx, code);
        if (loaded.ok()) module = *std::move(loaded);
        return loaded.status();
      });
  if (!status.ok()) return status;
  return module;
}

absl::StatusOr<PtxFunctions::Module> PtxFunctions::LoadCode(const core::PtxCode& ptx,
                                                            absl::string_view code) const {
  if (ptx.functions.original != nullptr) {
    GPUSHARE_ASSIGN_OR_RETURN(const std::string variable, VariableOf(code));
    if (!variable.empty()) {
      return absl::FailedPreconditionError(
          absl::StrCat("Kernel '", ptx.entry, "' has variables (", variable,
                       "), and its twins would not share those of original_function: leave it "
                       "null."));
    }
  }
  CUlibrary handle = nullptr;
  GPUSHARE_CU_RETURN(context_.api(), cuLibraryLoadData(&handle, code.data(), nullptr, nullptr, 0,
                                                       nullptr, nullptr, 0));
  Module module;
  module.library = std::make_shared<KernelLibrary>(context_.api(), handle);
  GPUSHARE_ASSIGN_OR_RETURN(module.original, FunctionOf(*module.library, ptx.entry));
  if (ptx.worker.made()) {
    GPUSHARE_ASSIGN_OR_RETURN(module.worker, FunctionOf(*module.library, ptx.worker.entry));
  }
  if (ptx.slice.made()) {
    GPUSHARE_ASSIGN_OR_RETURN(module.slice, FunctionOf(*module.library, ptx.slice.entry));
  }
  return module;
}

absl::StatusOr<CUfunction> PtxFunctions::FunctionOf(const KernelLibrary& library,
                                                    const std::string& entry) const {
  CUkernel kernel = nullptr;
  GPUSHARE_CU_RETURN(context_.api(), cuLibraryGetKernel(&kernel, library.handle(), entry.c_str()));
  CUfunction function = nullptr;
  GPUSHARE_CU_RETURN(context_.api(), cuKernelGetFunction(&function, kernel));
  return function;
}

int PtxFunctions::AttributeOf(CUfunction function, CUfunction_attribute attribute) const {
  int value = 0;
  context_.api().cuFuncGetAttribute(&value, attribute, function);
  return value;
}

// How many blocks of the function an SM holds; 0: not even one.
absl::StatusOr<int> PtxFunctions::BlocksOf(const core::KernelDesc& kernel,
                                           CUfunction function) const {
  const DriverApi& api = context_.api();
  const int dynamic = kernel.resources.dynamic_shared_memory_bytes;
  const absl::Status allowed = AllowSharedMemory(api, function, dynamic);
  if (absl::IsDataLoss(allowed)) return allowed;
  if (!allowed.ok()) return 0;  // with its static memory it is more than a block may have
  int threads = ThreadsOf(kernel.resources);
  if (threads == 0) threads = AttributeOf(function, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  int blocks = 0;
  GPUSHARE_CU_RETURN(api, cuOccupancyMaxActiveBlocksPerMultiprocessor(
                              &blocks, function, threads, static_cast<size_t>(dynamic)));
  return blocks;
}

// The twin's loop takes some registers. Where they cross a unit, fewer workers fit than blocks did.
absl::Status PtxFunctions::FitWorkers(const core::KernelDesc& kernel, Module& module) {
  if (module.worker == nullptr) return absl::OkStatus();
  GPUSHARE_ASSIGN_OR_RETURN(const int blocks, BlocksOf(kernel, module.original));
  GPUSHARE_ASSIGN_OR_RETURN(const int workers, BlocksOf(kernel, module.worker));
  if (workers >= blocks) return absl::OkStatus();
  const core::PtxCode& ptx = *kernel.ptx();
  const int registers = AttributeOf(module.original, CU_FUNC_ATTRIBUTE_NUM_REGS);
  ptx::Options options;
  options.worker_registers_max =
      static_cast<uint32_t>((registers + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit);
  const ptx::Twin narrow =
      ptx::Transform(ptx.text, ptx.entry, {.workers = true, .slice = ptx.slice.made()}, options);
  if (!narrow.ok()) return absl::OkStatus();
  absl::StatusOr<Module> again = LoadModule(ptx, narrow.text);
  if (absl::IsDataLoss(again.status())) return again.status();
  if (!again.ok()) return absl::OkStatus();
  GPUSHARE_ASSIGN_OR_RETURN(const int more_workers, BlocksOf(kernel, again->worker));
  const auto spills = [&](CUfunction function) {
    return AttributeOf(function, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  };
  if (more_workers > workers && spills(again->worker) <= spills(module.worker)) {
    module = *std::move(again);
  }
  return absl::OkStatus();
}

// A twin has shared memory of its own, which the original's may leave no room for.
absl::Status PtxFunctions::RefuseWhatDoesNotFit(core::KernelDesc& kernel, Module& module) const {
  core::PtxCode& ptx = *kernel.ptx();
  const auto refuse = [&](CUfunction& function, core::PtxForm& form,
                          const char* name) -> absl::Status {
    if (function == nullptr) return absl::OkStatus();
    GPUSHARE_ASSIGN_OR_RETURN(const int blocks, BlocksOf(kernel, function));
    if (blocks > 0) return absl::OkStatus();
    form = {.refusal = absl::StrCat(
                "Kernel '", ptx.entry, "' has no ", name,
                " form, because no block of it fits on "
                "an SM of this GPU: it has ",
                AttributeOf(function, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES), " bytes of static and ",
                kernel.resources.dynamic_shared_memory_bytes, " of dynamic shared memory.")};
    function = nullptr;
    return absl::OkStatus();
  };
  GPUSHARE_RETURN_IF_ERROR(refuse(module.worker, ptx.worker, "worker"));
  if (ptx.must_evict && module.worker == nullptr) {
    return absl::UnimplementedError(ptx.worker.refusal);
  }
  GPUSHARE_RETURN_IF_ERROR(refuse(module.slice, ptx.slice, "slice"));
  if (module.worker == nullptr) kernel.evictable = false;
  return absl::OkStatus();
}

}  // namespace gpushare::cuda
