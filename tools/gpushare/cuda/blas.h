// cuBLAS, opened at run time, so that the command starts on machines without it. Also CUDA errors
// as exceptions, and device memory.
//
// A Blas object is one handle with its own workspace. Threads: one at a time for each object.

#ifndef GPUSHARE_TOOLS_GPUSHARE_CUDA_BLAS_H_
#define GPUSHARE_TOOLS_GPUSHARE_CUDA_BLAS_H_

#include <cstddef>
#include <cstdint>
#include <memory>

namespace gpushare::tool {

// Throws RunError, which names the step, unless `code`, a cudaError_t, is 0.
void CheckCuda(int code, const char* step);

// Device memory that the destructor frees. The constructor throws RunError without enough memory.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  explicit DeviceMemory(size_t bytes);
  DeviceMemory(DeviceMemory&&) = default;
  DeviceMemory& operator=(DeviceMemory&&) = default;
  void* data() const { return data_.get(); }
  // Leaves the memory allocated until the process ends, for work that does not end.
  void Leave() { static_cast<void>(data_.release()); }
  size_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(void* data) const;
  };
  std::unique_ptr<void, Free> data_;
  size_t bytes_ = 0;
};

// d (m x n) = a (m x k) times the weights, all bf16 and row-major, sums in fp32.
struct Gemm {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  bool weights_transposed = true;  // n x k, as a linear layer keeps them; else k x n
  const void* a = nullptr;
  const void* weights = nullptr;
  void* d = nullptr;
};

class Blas {
 public:
  // Opens the library from $GPUSHARE_CUDA_LIBRARY_PATH, the loader's paths or
  // /usr/local/cuda/lib64. Throws RunError if there is none, or if it refuses the device.
  Blas();
  ~Blas();
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;

  // Sends later calls to `stream`, with kernels for `sms` SMs (0: the whole device) and a workspace
  // of kWorkspaceBytes. Returns 0 or a cublasStatus_t, as Enqueue does.
  static constexpr size_t kWorkspaceBytes = size_t{32} << 20;
  int Use(void* stream, int32_t sms, void* workspace);
  int Enqueue(const Gemm& gemm);

 private:
  struct Library;
  static const Library& Loaded();

  const Library& library_;
  void* handle_ = nullptr;
};

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_CUDA_BLAS_H_
