// What registration leaves of kernels and fused kernels: their loaded functions, with what a launch
// needs to know of them.
//
// Functions are loaded ahead, with their modules and local memory, because implicit loading at the
// first launch would wait for BE workers.
// Invariants: an entry that Find or FindFused returns never changes.
// Threads: one at a time prepares; any calls Find and FindFused.

#ifndef GPUSHARE_SRC_CUDA_CODE_PREPARED_FUNCTIONS_H_
#define GPUSHARE_SRC_CUDA_CODE_PREPARED_FUNCTIONS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "absl/status/status.h"
#include "src/core/seams/kernel.h"
#include "src/cuda/code/kernel_table.h"
#include "src/cuda/code/parameter_layout.h"
#include "src/cuda/code/ptx_functions.h"
#include "src/cuda/driver/context.h"

namespace gpushare::cuda {

// The driver chooses how an SM divides its memory between L1 and shared memory.
inline constexpr int kDefaultCarveOut = -1;

struct PreparedFunction {
  CUfunction function = nullptr;
  // Of workers and slices: the launch header, then the task's parameters.
  ParameterLayout parameters;
};

struct PreparedKernel {
  PreparedFunction original;
  PreparedFunction worker;
  PreparedFunction slice;  // the worker function if the kernel has no slice function
  unsigned int block_x = 1, block_y = 1, block_z = 1;
  unsigned int dynamic_shared_bytes = 0;
  // Of the original function, where the kernel's body keeps L1: the shared memory of all its blocks
  // on an SM, in per cent of the SM's memory.
  int original_carve_out = kDefaultCarveOut;
  int32_t workers_per_sm = 1;
  uint32_t claim_batch = 1;
  bool yields = false;  // block tasks have yield points
};

// The worker form of a kernel of PTX, and the module that has it.
struct WorkerTwin {
  core::KernelId id;
  PreparedKernel kernel;
  std::shared_ptr<KernelLibrary> library;
  std::string entry;              // of the original, in the text
  CUfunction original = nullptr;  // the module's, not the application's
};

struct PreparedFused {
  CUfunction function = nullptr;
  unsigned int threads = 1;
  unsigned int dynamic_shared_bytes = 0;
  int32_t blocks_per_sm = 1;
  int32_t tensor_blocks = 1;
  int32_t cuda_blocks = 1;
  // Bytes that the function reads at the address of each part's parameters.
  size_t tensor_arguments_bytes = 0;
  size_t cuda_arguments_bytes = 0;
};

class PreparedFunctions {
 public:
  explicit PreparedFunctions(const Context& context) : context_(context), ptx_(context) {}

  // Makes the functions of a kernel of PTX. Derives from the functions of a kernel what the caller
  // left at 0 (src/core/seams/device.h). Leaves work without functions as it is.
  absl::Status Describe(core::KernelDesc& kernel);
  // Loads the functions of a kernel of that code, whose identifier passed CheckKernelId.
  absl::Status Prepare(const core::KernelDesc& kernel);
  // Loads a fused kernel and fills in what its function says. Accepts one without a function, which
  // cannot be launched.
  absl::Status PrepareFused(core::FusedKernelDesc& fused);

  // Unloads what was made of the kernel's PTX, unless a graph has its twin. Nothing launches it any
  // more.
  void Release(core::KernelId id);
  // The kernel's original may become another function: nothing gets its twin from now on.
  void Forget(core::KernelId id);
  // The context is lost or busy: nothing is unloaded.
  void Leak() { ptx_.Leak(); }

  const PreparedKernel* Find(core::KernelId id) const { return kernels_.Find(id); }
  // Whether any function has a twin for nodes of graphs. Called by the thread that prepares.
  bool HasTwins() const { return !originals_.empty(); }
  // The twin of the function, where it is the original of an evictable kernel of PTX that serves
  // nodes of graphs; of several the one that was prepared last. Called by the thread that prepares.
  std::optional<WorkerTwin> TwinOf(CUfunction original) const;
  const PreparedFused* FindFused(core::KernelId id) const { return fused_.Find(id); }

  // As PtxFunctions::UseAssembly. For tests.
  void UseAssembly(std::unique_ptr<Assembly> assembly) { ptx_.UseAssembly(std::move(assembly)); }

 private:
  absl::Status LoadFunction(const core::KernelDesc& kernel, void* handle, size_t headers,
                            PreparedFunction& prepared) const;
  int OriginalCarveOut(const core::KernelDesc& kernel, const PreparedKernel& prepared) const;
  absl::Status LoadFused(core::FusedKernelDesc& fused, PreparedFused& prepared) const;

  const Context& context_;
  PtxFunctions ptx_;
  KernelTable<PreparedKernel> kernels_;
  struct Original {
    core::KernelId kernel;
    std::string entry;
  };
  std::unordered_map<CUfunction, Original> originals_;  // of those that serve nodes of graphs
  KernelTable<PreparedFused> fused_;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_CODE_PREPARED_FUNCTIONS_H_
