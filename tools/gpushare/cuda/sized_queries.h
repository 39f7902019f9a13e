// Whole queries at several input sizes as captures of cuBLAS products and GELUs, to which models of
// queries are fitted.
//
// All queries share their buffers, whose contents only the timing sees. Each begins with the same
// input, so that values, and the power that they take, do not drift from launch to launch.
// Threads: one at a time.

#ifndef GPUSHARE_TOOLS_GPUSHARE_CUDA_SIZED_QUERIES_H_
#define GPUSHARE_TOOLS_GPUSHARE_CUDA_SIZED_QUERIES_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "tools/gpushare/cuda/blas.h"
#include "tools/gpushare/workloads/sized_queries.h"
#include "tools/gpushare/workloads/workloads.h"

namespace gpushare::tool {

class CudaSizedQueries {
 public:
  // Allocates the buffers of the largest query and runs each once, so that a capture finds every
  // kernel loaded. Throws RunError if the device has no memory or a call fails.
  CudaSizedQueries();
  ~CudaSizedQueries();
  CudaSizedQueries(const CudaSizedQueries&) = delete;
  CudaSizedQueries& operator=(const CudaSizedQueries&) = delete;

  const std::vector<GraphChoice>& graphs() const { return graphs_; }

 private:
  struct User {
    CudaSizedQueries* queries = nullptr;
    const SizedQuery* query = nullptr;
  };
  static int32_t Capture(void* user, void* stream, int32_t sms);
  int Enqueue(const SizedQuery& query, void* stream, int32_t sms);
  void RunAll();

  std::vector<SizedQuery> queries_;
  std::vector<User> users_;
  std::vector<GraphChoice> graphs_;
  void* stream_ = nullptr;
  Blas blas_;
  DeviceMemory workspace_;
  DeviceMemory weights_;
  DeviceMemory input_;
  DeviceMemory values_[2];  // an operation reads one and writes the other
};

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_CUDA_SIZED_QUERIES_H_
