/* The few functions of the CUDA driver that the example calls, found at run time: it builds without
   the CUDA toolkit and starts without a driver. */
#ifndef GPUSHARE_EXAMPLES_KERNELS_CUDA_DRIVER_H_
#define GPUSHARE_EXAMPLES_KERNELS_CUDA_DRIVER_H_

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef unsigned long long device_pointer; /* CUdeviceptr */

typedef struct cuda_driver {
  void* context; /* the primary one of device 0 */
  int (*init)(unsigned flags);
  int (*context_retain)(void** context, int device);
  int (*context_set)(void* context);
  int (*allocate)(device_pointer* pointer, size_t bytes);
  int (*allocate_host)(void** memory, size_t bytes); /* pinned */
  int (*release)(device_pointer pointer);
  int (*release_host)(void* memory);
  int (*fill)(device_pointer pointer, unsigned char byte, size_t bytes);
  int (*upload)(device_pointer to, const void* from, size_t bytes);
  int (*download)(void* to, device_pointer from, size_t bytes);
  int (*synchronize)(void* stream);
  int (*launch)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                unsigned block_y, unsigned block_z, unsigned shared_bytes, void* stream,
                void** arguments, void** extra);
} cuda_driver;

/* Makes the primary context of device 0 current. 0: there is a GPU. */
int open_cuda_driver(cuda_driver* driver);

#ifdef __cplusplus
}
#endif

#endif
