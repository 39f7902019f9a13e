/* The description of a fused kernel for the host: its handle, the contents of a block, and how many
 * blocks an SM holds. NAME_variants, which GPUSHARE_FUSED_KERNEL(NAME, ...) of fused.cuh defines,
 * fills it. Plain C, so that a host file needs no CUDA header to register a kernel. */

#ifndef GPUSHARE_DEVICE_FUSED_DESCRIPTION_H_
#define GPUSHARE_DEVICE_FUSED_DESCRIPTION_H_

#include <gpushare/device/launch.h>
#include <stdint.h>

/* How the parts share a block. */
#define GPUSHARE_FUSED_PLAIN 0 /* workers; every thread has the same number of registers */
/* Workers; the tensor part takes registers from the CUDA-core part (sm_90a only). */
#define GPUSHARE_FUSED_SETMAXNREG 1
/* No workers: block k executes block task k of each part. A baseline for benchmarks. It reports no
 * end, so that a device refuses to register it. */
#define GPUSHARE_FUSED_DIRECT 2

/* The header of each part in the form GPUSHARE_FUSED_DIRECT: gpushare_worker_launch without its
 * last word. A caller may give the address of a whole gpushare_worker_launch. The device recognises
 * the form by the size of this parameter. */
typedef struct gpushare_direct_launch {
  uint64_t words[sizeof(gpushare_worker_launch) / sizeof(uint64_t) - 1];
} gpushare_direct_launch;

typedef struct gpushare_fused_variants {
  /* CUfunction: (gpushare_worker_launch, tensor Params, gpushare_worker_launch, CUDA-core Params);
   * in the direct form gpushare_direct_launch instead. Null when blocks_per_sm is 0. */
  void* function;
  const void* symbol; /* the same for cudaLaunchKernel */
  uint32_t threads_per_block;
  uint32_t tensor_blocks; /* blocks of the tensor kernel in a fused block */
  uint32_t cuda_blocks;   /* blocks of the CUDA-core kernel in it */
  uint32_t tensor_params_bytes;
  uint32_t cuda_params_bytes;
  uint32_t registers; /* a thread, at launch */
  uint32_t static_shared_bytes;
  uint32_t dynamic_shared_bytes; /* the launch must give it */
  uint32_t local_bytes;          /* a thread: spilled registers and arrays */
  uint32_t blocks_per_sm;        /* 0: the current device cannot run this variant */
  uint32_t form;                 /* GPUSHARE_FUSED_... */
  uint32_t tensor_registers;     /* a thread, after setmaxnreg */
  uint32_t cuda_registers;
  uint32_t reserved; /* zero */
} gpushare_fused_variants;

#endif /* GPUSHARE_DEVICE_FUSED_DESCRIPTION_H_ */
