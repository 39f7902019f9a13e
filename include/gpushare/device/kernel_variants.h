// The description of a compiled kernel body for the host: the handles of its variants, and how many
// blocks of them an SM holds. NAME_variants, which GPUSHARE_KERNEL(NAME) defines, fills it. Plain
// C, so that a host file needs no CUDA header to register a kernel.

#ifndef GPUSHARE_DEVICE_KERNEL_VARIANTS_H_
#define GPUSHARE_DEVICE_KERNEL_VARIANTS_H_

#include <stdint.h>

typedef struct gpushare_kernel_variants {
  void* original_function;  // CUfunction: (Params), the kernel's own grid
  void* worker_function;    // CUfunction: (gpushare_worker_launch, Params), a grid of workers
  void* slice_function;     // CUfunction: (gpushare_worker_launch, Params), one block a block task
  const void* original_symbol;  // the same three for cudaLaunchKernel
  const void* worker_symbol;
  const void* slice_symbol;
  uint32_t threads_per_block;
  uint32_t params_bytes;
  uint32_t original_registers;  // a thread
  uint32_t worker_registers;
  uint32_t slice_registers;
  uint32_t static_shared_bytes;   // of the worker variant
  uint32_t dynamic_shared_bytes;  // the launch must give it; the same for all variants
  uint32_t local_bytes;           // a thread, of the worker variant: spilled registers and arrays
  uint32_t original_blocks_per_sm;
  uint32_t workers_per_sm;  // M of CapSM
  uint32_t yields;          // 1: has yield points inside a block task
  uint32_t reserved;        // zero
} gpushare_kernel_variants;

#endif  // GPUSHARE_DEVICE_KERNEL_VARIANTS_H_
