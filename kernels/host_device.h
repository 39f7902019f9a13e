// Marks a function that the GPU and the CPU both call: index arithmetic of the bodies, which tests
// check on the CPU.

#ifndef GPUSHARE_KERNELS_HOST_DEVICE_H_
#define GPUSHARE_KERNELS_HOST_DEVICE_H_

#ifdef __CUDACC__
#define GPUSHARE_HOST_DEVICE __host__ __device__
#else
#define GPUSHARE_HOST_DEVICE
#endif

#endif  // GPUSHARE_KERNELS_HOST_DEVICE_H_
