// A large bf16 GEMM as best-effort work: as opaque work, which a callback enqueues with cuBLAS on
// the given stream, or as a library call of the runtime.
//
// Threads: Enqueue runs on any thread that launches. All else: one at a time, with no work pending.

#ifndef GPUSHARE_TOOLS_GPUSHARE_CUDA_OPAQUE_GEMM_H_
#define GPUSHARE_TOOLS_GPUSHARE_CUDA_OPAQUE_GEMM_H_

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

#include "tools/gpushare/cuda/blas.h"

namespace gpushare::tool {

class OpaqueGemm {
 public:
  static constexpr int64_t kM = 8192;
  static constexpr int64_t kN = 8192;
  static constexpr int64_t kK = 2048;
  // Tiles of 128 x 256, which a scenario counts as block tasks.
  static constexpr int64_t kBlockTasks = (kM / 128) * (kN / 256);
  // About 400 us on an H200 (275 GFLOP at 0.7 PFLOP/s), with a margin.
  static constexpr int64_t kDeclaredNs = 600'000;

  OpaqueGemm(void* stream, bool weights_transposed);

  // A task that enqueues `count` GEMMs. It lives as long as this object.
  struct Task {
    OpaqueGemm* owner = nullptr;
    int64_t count = 1;
  };
  Task* NewTask(int64_t count);
  // gpushare_enqueue_callback; `user` is a Task.
  static void Enqueue(void* stream, void* user);

  const Gemm& gemm() const { return gemm_; }

  void BeginRun();
  // Checks a sample of the result against float64. Throws RunError.
  void Verify();

 private:
  // Each stream has its own handle and workspace; BE lanes are few.
  static constexpr size_t kStreamsMax = 8;
  struct Slot {
    std::unique_ptr<Blas> blas;
    DeviceMemory workspace;
    void* stream = nullptr;
  };

  int EnqueueOn(void* stream, int64_t count);

  void* stream_;  // to fill and read buffers
  DeviceMemory a_;
  DeviceMemory weights_;
  DeviceMemory d_;
  Gemm gemm_;
  std::deque<Task> tasks_;
  std::mutex mutex_;  // guards the members below
  std::array<Slot, kStreamsMax> slots_;
  int fault_ = 0;  // first cuBLAS status that is not 0; -1: no slot was left
};

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_CUDA_OPAQUE_GEMM_H_
