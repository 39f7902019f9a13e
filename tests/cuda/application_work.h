// Work and captures of an application beside the library, with the CUDA runtime. Plain types, so
// that the .cu file needs no Abseil. Every kernel ends by the GPU's own clock.

#ifndef GPUSHARE_TESTS_CUDA_APPLICATION_WORK_H_
#define GPUSHARE_TESTS_CUDA_APPLICATION_WORK_H_

#include <cstddef>
#include <cstdint>

namespace gpushare::cuda {

// A stream that waits for no other; null: an error.
void* MakeApplicationStream();
void DestroyApplicationStream(void* stream);
// Spins on `blocks` blocks of 1,024 threads for `spin_ns`, at most 5 s. False: an error.
bool Spin(void* stream, int blocks, uint64_t spin_ns);
bool StreamIsIdle(void* stream);
bool AwaitApplicationStream(void* stream);

// A capture in CUDA's default mode, in which calls of other threads may break it.
bool BeginGlobalCapture(void* stream);
// The number of nodes that were captured; -1: the capture is broken.
int EndCapture(void* stream);

void* MakeDeviceMemory(size_t bytes);  // null: an error
void FreeDeviceMemory(void* memory);
void* MakePinnedMemory(size_t bytes);
void FreePinnedMemory(void* memory);
bool CopyToHost(void* host, const void* device, size_t bytes, void* stream);

// A chain of kernels on one block that spin for `spin_ns` each, as a cudaGraph_t; null: an error.
void* MakeSpinningChain(int nodes, uint64_t spin_ns);
void DestroySpinningChain(void* graph);

// The SMs of the first GPU; 0 without one.
int SmCount();

}  // namespace gpushare::cuda

#endif  // GPUSHARE_TESTS_CUDA_APPLICATION_WORK_H_
