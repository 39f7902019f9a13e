// Memory of a GPU whose bytes are restored and compared there. Plain types, so that the .cu file
// needs no Abseil.

#ifndef GPUSHARE_TESTS_CUDA_CODE_DEVICE_MEMORY_H_
#define GPUSHARE_TESTS_CUDA_CODE_DEVICE_MEMORY_H_

#include <cstddef>
#include <cstdint>

namespace gpushare::cuda {

// Null, false, or a number that no comparison gives: an error.
void* MakeBytes(size_t count);
void FreeBytes(void* memory);
bool UploadBytes(void* to, const void* host, size_t count);
// Within the device. Back when it is done.
bool CopyBytes(void* to, const void* from, size_t count);
inline constexpr uint64_t kNotCompared = ~uint64_t{0};
uint64_t DifferingBytes(const void* a, const void* b, size_t count);

}  // namespace gpushare::cuda

#endif  // GPUSHARE_TESTS_CUDA_CODE_DEVICE_MEMORY_H_
