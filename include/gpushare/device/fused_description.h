/* What the host learns of a fused kernel: its handle, what a block holds and what an SM holds of
 * it. Filled by the function NAME_variants that GPUSHARE_FUSED_KERNEL(NAME, ...) of fused.cuh
 * defines. Plain C, so that a host file needs no CUDA header to register a kernel. */

#ifndef GPUSHARE_DEVICE_FUSED_DESCRIPTION_H_
#define GPUSHARE_DEVICE_FUSED_DESCRIPTION_H_

#include <gpushare/device/launch.h>
#include <stdint.h>

/* How the parts share a block. */
#define GPUSHARE_FUSED_PLAIN 0 /* workers; every thread has the same number of registers */
#define GPUSHARE_FUSED_SETMAXNREG \
  1                             /* workers; the tensor part takes registers of the other (sm_90a) */
#define GPUSHARE_FUSED_DIRECT 2 /* no workers: block k executes block task k of each part; a */
                                /* baseline for benchmarks: it reports no end, and a device */
                                /* refuses to register it */

/* The header that a kernel of form GPUSHARE_FUSED_DIRECT takes for each part:
 * gpushare_worker_launch without its last word, so that a caller gives the address of a whole one.
 * By its size a device tells such a kernel from one that reports its end. */
typedef struct gpushare_direct_launch {
  uint64_t words[sizeof(gpushare_worker_launch) / sizeof(uint64_t) - 1];
} gpushare_direct_launch;

typedef struct gpushare_fused_variants {
  void* function; /* CUfunction: (gpushare_worker_launch, tensor Params, gpushare_worker_launch, */
                  /* CUDA-core Params), of the direct form gpushare_direct_launch instead; null */
                  /* when blocks_per_sm is 0 */
  const void* symbol; /* the same for cudaLaunchKernel */
  uint32_t threads_per_block;
  uint32_t tensor_blocks; /* blocks of the tensor kernel in a fused block */
  uint32_t cuda_blocks;   /* blocks of the CUDA-core kernel in it */
  uint32_t tensor_params_bytes;
  uint32_t cuda_params_bytes;
  uint32_t registers; /* a thread, at launch */
  uint32_t static_shared_bytes;
  uint32_t dynamic_shared_bytes; /* to be asked for at launch */
  uint32_t local_bytes;          /* a thread: spilled registers and arrays */
  uint32_t blocks_per_sm;        /* 0: the current device cannot run this variant */
  uint32_t form;                 /* GPUSHARE_FUSED_... */
  uint32_t tensor_registers; /* a thread while it runs; setmaxnreg changes them from `registers` */
  uint32_t cuda_registers;
  uint32_t reserved; /* zero */
} gpushare_fused_variants;

#endif /* GPUSHARE_DEVICE_FUSED_DESCRIPTION_H_ */
