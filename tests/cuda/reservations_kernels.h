// Work that records where and when its blocks ran, for reservations_test.cc and
// reservations_fused_test.cc: two kernels of the kernel contract, whose forms serve queries and BE
// workers, the fused kernel of both, and a graph of ordinary kernels. Plain types, so that the .cu
// file needs no Abseil.

#ifndef GPUSHARE_TESTS_CUDA_RESERVATIONS_KERNELS_H_
#define GPUSHARE_TESTS_CUDA_RESERVATIONS_KERNELS_H_

#include <gpushare/device/fused_description.h>
#include <gpushare/device/kernel_variants.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/cuda/held_sms.h"

namespace gpushare::cuda {

// Room in device memory for what blocks record; what finds no room is counted and dropped.
struct BlockLog {
  unsigned int* count;
  BlockRecord* records;
  uint32_t capacity;
};

// Of a block of the large kernel: more than half of an SM's.
inline constexpr int kLargeSharedBytes = 120 * 1024;

// Added to the tag of what ran in a fused block.
inline constexpr uint32_t kFusedTag = uint32_t{1} << 31;

// The arguments of a kernel. Each block task spins for `spin_ns` by %globaltimer, then records.
struct RecordParams {
  BlockLog log;
  uint32_t spin_ns;
  uint32_t tag;
};

// False: an error of the CUDA runtime.
bool MakeLog(uint32_t capacity, BlockLog* log);
void FreeLog(const BlockLog& log);
bool ClearLog(const BlockLog& log);
// While nothing runs. None: an error of the CUDA runtime, or more records than the log has room
// for.
std::optional<std::vector<BlockRecord>> ReadLog(const BlockLog& log);

// A chain of `nodes` kernels of `blocks` blocks, as a cudaGraph_t; null: an error.
void* MakeRecordingChain(int nodes, int blocks, const RecordParams& params);
void DestroyRecordingChain(void* graph);

// The first GPU and its driver's version; empty without one.
std::string GpuName();

}  // namespace gpushare::cuda

extern "C" int gpushare_test_record_variants(gpushare_kernel_variants* out);
// One block an SM.
extern "C" int gpushare_test_record_large_variants(gpushare_kernel_variants* out);
// One block of the large kernel, the Tensor-core part, and one of the other.
extern "C" int gpushare_test_record_pair_variants(gpushare_fused_variants* out);
// With three of the other.
extern "C" int gpushare_test_record_dense_pair_variants(gpushare_fused_variants* out);

#endif  // GPUSHARE_TESTS_CUDA_RESERVATIONS_KERNELS_H_
