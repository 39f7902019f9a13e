// Fills of the irregular inputs (see inputs.h): a thread a row, a vertex, a node.

#include <cuda_runtime.h>

#include "benchmarks/kernels/irregular/bfs.h"
#include "benchmarks/kernels/irregular/inputs.h"
#include "benchmarks/kernels/irregular/pointer_chase.h"
#include "benchmarks/kernels/irregular/spmv.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kThreads = 256;

__device__ uint32_t GlobalThread() { return blockIdx.x * kThreads + threadIdx.x; }

// One thread more than rows writes the end of the last row.
__global__ void FillSpmvKernel(uint32_t seed, uint32_t rows, uint32_t* begins, uint32_t* columns) {
  const uint32_t row = GlobalThread();
  if (row > rows) return;
  const uint32_t begin = SpmvShape::Begin(seed, row);
  begins[row] = begin;
  if (row == rows) return;
  const uint32_t end = begin + SpmvShape::Length(seed, row);
  for (uint32_t e = begin; e < end; ++e) columns[e] = SpmvColumn(seed + 2, e);
}

__global__ void FillBfsKernel(uint32_t seed, uint32_t vertices, uint32_t* begins,
                              uint32_t* neighbours, uint8_t* levels) {
  const uint32_t vertex = GlobalThread();
  if (vertex > vertices) return;
  const uint32_t begin = BfsShape::Begin(seed, vertex);
  begins[vertex] = begin;
  if (vertex == vertices) return;
  const uint32_t degree = BfsShape::Length(seed, vertex);
  for (uint32_t k = 0; k < degree; ++k) {
    neighbours[begin + k] = BfsNeighbour(seed + 2, vertices, degree, k, begin + k);
  }
  levels[vertex] = static_cast<uint8_t>(BfsLevelOf(seed + 3, vertex));
}

__global__ void FillChaseKernel(uint32_t seed, uint32_t* links) {
  const uint32_t node = GlobalThread();
  if (node >= kChaseNodes) return;
  links[static_cast<uint64_t>(node) * kChaseNodeWords] = ChaseAfter(ChaseCycleOf(seed), node, 1);
}

uint32_t Blocks(uint32_t threads) { return (threads + kThreads - 1) / kThreads; }

Status Finished(const char* step) {
  const Status status = CudaStatus(cudaGetLastError(), step);
  if (!status.ok()) return status;
  return CudaStatus(cudaStreamSynchronize(cudaStreamPerThread), "cudaStreamSynchronize");
}

}  // namespace

Status FillSpmv(uint32_t seed, uint32_t rows, const DeviceBuffer& begins,
                const DeviceBuffer& columns) {
  FillSpmvKernel<<<Blocks(rows + 1), kThreads, 0, cudaStreamPerThread>>>(
      seed, rows, begins.as<uint32_t>(), columns.as<uint32_t>());
  return Finished("FillSpmvKernel<<<>>>");
}

Status FillBfs(uint32_t seed, uint32_t vertices, const DeviceBuffer& begins,
               const DeviceBuffer& neighbours, const DeviceBuffer& levels) {
  FillBfsKernel<<<Blocks(vertices + 1), kThreads, 0, cudaStreamPerThread>>>(
      seed, vertices, begins.as<uint32_t>(), neighbours.as<uint32_t>(), levels.as<uint8_t>());
  return Finished("FillBfsKernel<<<>>>");
}

Status FillChase(uint32_t seed, const DeviceBuffer& links) {
  FillChaseKernel<<<Blocks(kChaseNodes), kThreads, 0, cudaStreamPerThread>>>(seed,
                                                                             links.as<uint32_t>());
  return Finished("FillChaseKernel<<<>>>");
}

}  // namespace gpushare::kernels
