/* The table of fused kernels that gpushare_add_fused_kernels generates. Its row has the name of an
 * opaque handle of <gpushare/gpushare.h>: a C99 file that includes both headers does not compile,
 * and takes fused_description.h instead. */

#ifndef GPUSHARE_DEVICE_FUSED_VARIANTS_H_
#define GPUSHARE_DEVICE_FUSED_VARIANTS_H_

#include <gpushare/device/fused_description.h>
#include <stdint.h>

/* A row of the table that gpushare_add_fused_kernels generates (cmake/GpushareKernels.cmake). */
typedef struct gpushare_fused_kernel {
  const char* name;        /* of the kernel, without _fused */
  const char* tensor_name; /* of the bodies, without gpushare_ */
  const char* cuda_name;
  uint32_t tensor_blocks; /* blocks of each part in a fused block */
  uint32_t cuda_blocks;
  uint32_t form;
  int (*variants)(gpushare_fused_variants* out); /* 0 or a cudaError_t */
} gpushare_fused_kernel;

#endif /* GPUSHARE_DEVICE_FUSED_VARIANTS_H_ */
