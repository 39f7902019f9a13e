// The work of reservations_kernels.h. Every loop ends by the GPU's own clock.

#include <cuda_runtime.h>

#include <gpushare/device/fused.cuh>
#include <gpushare/device/variants.cuh>

#include "tests/cuda/reservations_kernels.h"

namespace gpushare::cuda {
namespace {

constexpr int kNodeThreads = 128;

__device__ uint64_t Spin(uint32_t spin_ns) {
  const uint64_t begin_ns = device::GlobalTimerNs();
  while (device::GlobalTimerNs() - begin_ns < spin_ns) {
  }
  return begin_ns;
}

// By one thread, once the others have spun.
__device__ void Record(const RecordParams& params, uint64_t begin_ns, uint32_t tag) {
  uint32_t sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  const unsigned int at = atomicAdd(params.log.count, 1U);
  if (at >= params.log.capacity) return;
  params.log.records[at] = {begin_ns, device::GlobalTimerNs(), sm, tag};
}

__global__ void __launch_bounds__(kNodeThreads) RecordKernel(const RecordParams params) {
  const uint64_t begin_ns = Spin(params.spin_ns);
  __syncthreads();
  if (threadIdx.x == 0) Record(params, begin_ns, params.tag);
}

// Only a fused block has more threads than a block of the body.
template <class SharedOf, int kMinBlocks>
struct Recording {
  using Params = RecordParams;
  using Shared = SharedOf;
  struct State {};
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = kMinBlocks;

  template <class Ctx>
  __device__ static void Run(const Params& params, Shared&, State&, Ctx& ctx) {
    const uint64_t begin_ns = Spin(params.spin_ns);
    ctx.sync();
    if (ctx.thread() != 0) return;
    Record(params, begin_ns, blockDim.x > kThreads ? params.tag | kFusedTag : params.tag);
  }
};

struct NoShared {};

// One block an SM, as of a GEMM.
struct LargeShared {
  unsigned char bytes[kLargeSharedBytes];
};

}  // namespace

struct gpushare_test_record : Recording<NoShared, 8> {};
GPUSHARE_KERNEL(gpushare_test_record);
struct gpushare_test_record_large : Recording<LargeShared, 1> {};
GPUSHARE_KERNEL(gpushare_test_record_large);
GPUSHARE_FUSED_KERNEL(gpushare_test_record_pair, gpushare_test_record_large, 1,
                      gpushare_test_record, 1, GPUSHARE_FUSED_PLAIN);
GPUSHARE_FUSED_KERNEL(gpushare_test_record_dense_pair, gpushare_test_record_large, 1,
                      gpushare_test_record, 3, GPUSHARE_FUSED_PLAIN);

bool MakeLog(uint32_t capacity, BlockLog* log) {
  log->capacity = capacity;
  return cudaMalloc(&log->count, sizeof(*log->count)) == cudaSuccess &&
         cudaMalloc(&log->records, sizeof(BlockRecord) * capacity) == cudaSuccess && ClearLog(*log);
}

void FreeLog(const BlockLog& log) {
  cudaFree(log.records);
  cudaFree(log.count);
}

bool ClearLog(const BlockLog& log) {
  return cudaMemset(log.count, 0, sizeof(*log.count)) == cudaSuccess &&
         cudaDeviceSynchronize() == cudaSuccess;
}

std::optional<std::vector<BlockRecord>> ReadLog(const BlockLog& log) {
  unsigned int count = 0;
  if (cudaDeviceSynchronize() != cudaSuccess ||
      cudaMemcpy(&count, log.count, sizeof(count), cudaMemcpyDeviceToHost) != cudaSuccess ||
      count > log.capacity) {
    return std::nullopt;
  }
  std::vector<BlockRecord> records(count);
  if (cudaMemcpy(records.data(), log.records, sizeof(BlockRecord) * count,
                 cudaMemcpyDeviceToHost) != cudaSuccess) {
    return std::nullopt;
  }
  return records;
}

void* MakeRecordingChain(int nodes, int blocks, const RecordParams& params) {
  cudaStream_t stream = nullptr;
  if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return nullptr;
  cudaGraph_t graph = nullptr;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
  for (int i = 0; i < nodes; ++i) RecordKernel<<<blocks, kNodeThreads, 0, stream>>>(params);
  if (cudaStreamEndCapture(stream, &graph) != cudaSuccess) graph = nullptr;
  cudaStreamDestroy(stream);
  return cudaGetLastError() == cudaSuccess ? graph : nullptr;
}

void DestroyRecordingChain(void* graph) {
  if (graph != nullptr) cudaGraphDestroy(static_cast<cudaGraph_t>(graph));
}

std::string GpuName() {
  cudaDeviceProp properties = {};
  int driver = 0;
  if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) return "";
  cudaDriverGetVersion(&driver);
  return std::string(properties.name) + ", CUDA driver " + std::to_string(driver);
}

}  // namespace gpushare::cuda
