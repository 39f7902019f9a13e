// The functions of kernels of PTX: assembles a module, loads it, and unloads it with its kernel.
//
//   Load(kernel)    // DescribeKernel: fills kernel.ptx()->functions; the kernel has no number yet
//   Keep(kernel)    // PrepareKernel: the module now belongs to that number
//   Release(id)     // ReleaseKernel
//
// One module has the original and its twins, so that they share its variables. A module is loaded
// as a library, because the driver copies the code then.
// Invariants: what Load made and nobody kept is unloaded by the next Load. A twin that would have
// fewer workers on an SM than the original has blocks is assembled again with fewer registers, and
// that one counts unless it spills more. A twin that fits on no SM is refused here.
// Threads: one at a time.

#ifndef GPUSHARE_SRC_CUDA_CODE_PTX_FUNCTIONS_H_
#define GPUSHARE_SRC_CUDA_CODE_PTX_FUNCTIONS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/core/seams/kernel.h"
#include "src/cuda/code/assemble.h"
#include "src/cuda/code/kernel_library.h"
#include "src/cuda/code/kernel_table.h"
#include "src/cuda/driver/context.h"

namespace gpushare::cuda {

class PtxFunctions {
 public:
  explicit PtxFunctions(const Context& context) : context_(context) {}
  ~PtxFunctions();
  PtxFunctions(const PtxFunctions&) = delete;
  PtxFunctions& operator=(const PtxFunctions&) = delete;

  // Does nothing for a kernel of other code.
  // Errors: INVALID_ARGUMENT no assembler takes the text, or nobody says which kernel of it;
  // FAILED_PRECONDITION the caller's own original would not share the module's variables;
  // UNIMPLEMENTED the kernel must be evictable, and no worker fits on an SM;
  // UNAVAILABLE there is no assembler; otherwise the driver's.
  absl::Status Load(core::KernelDesc& kernel);
  void Keep(const core::KernelDesc& kernel);
  void Release(core::KernelId id);
  // The kernel's module, for whoever uses its functions longer than the kernel lives; null: it has
  // none.
  std::shared_ptr<KernelLibrary> LibraryOf(core::KernelId id) const;
  // The original of that module, which is not the caller's own; null: there is no module.
  CUfunction OriginalOf(core::KernelId id) const;
  // The context is lost: nothing is unloaded.
  void Leak();

  // In place of nvJitLink and the driver's, before the first Load. For tests.
  void UseAssembly(std::unique_ptr<Assembly> assembly) { assembly_ = std::move(assembly); }

 private:
  struct Module {
    std::shared_ptr<KernelLibrary> library;
    CUfunction original = nullptr;
    CUfunction worker = nullptr;
    CUfunction slice = nullptr;
  };

  const Assembly& assembly();
  absl::StatusOr<Module> LoadModule(const core::PtxCode& ptx, const std::string& text);
  absl::StatusOr<Module> LoadCode(const core::PtxCode& ptx, absl::string_view code) const;
  absl::StatusOr<CUfunction> FunctionOf(const KernelLibrary& library,
                                        const std::string& entry) const;
  absl::StatusOr<int> BlocksOf(const core::KernelDesc& kernel, CUfunction function) const;
  int AttributeOf(CUfunction function, CUfunction_attribute attribute) const;
  absl::Status FitWorkers(const core::KernelDesc& kernel, Module& module);
  absl::Status RefuseWhatDoesNotFit(core::KernelDesc& kernel, Module& module) const;

  const Context& context_;
  std::unique_ptr<Assembly> assembly_;  // made by the first Load
  Module loaded_;                       // of the last Load, until Keep
  KernelTable<Module> kept_;
  bool leaked_ = false;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_CODE_PTX_FUNCTIONS_H_
