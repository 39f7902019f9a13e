// Parameters of the wgmma GEMMs: tensor maps by the driver's encoder, found at run time so that
// nothing links libcuda. See gemm_wgmma.h.

#include "kernels/tensor/gemm_wgmma.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstring>
#include <string>

#include "kernels/tensor/gemm_tile.h"

extern "C" {
int gpushare_gemm_roomy_variants(gpushare_kernel_variants* out);
int gpushare_gemm_wgmma_variants(gpushare_kernel_variants* out);
int gpushare_wgmma_missing();
}

namespace gpushare::kernels {
namespace {

static_assert(sizeof(TensorMap) == sizeof(CUtensorMap), "the driver writes as many bytes");

constexpr unsigned kDriverVersion = 12000;
constexpr uint32_t kStoreRows = 16;
constexpr uint32_t kGroup =
    16;                        // 16 tiles of 128 rows and the 8 columns of 256 beside them: square
constexpr int kAlignment = 8;  // elements: 16 bytes
constexpr uintptr_t kPointerAlignment = 16;
constexpr int64_t kTilesMax = INT32_MAX;

using EncodeTiled = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                 const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                 const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                 CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

Status FindEncoder(EncodeTiled* encode) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found = cudaDriverEntryPointSymbolNotFound;
  const Status status =
      CudaStatus(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, kDriverVersion,
                                                  cudaEnableDefault, &found),
                 "cudaGetDriverEntryPointByVersion");
  if (!status.ok()) return status;
  if (found != cudaDriverEntryPointSuccess || entry == nullptr) {
    return InvalidOption("The driver has no cuTensorMapEncodeTiled, and TMA needs it.");
  }
  *encode = reinterpret_cast<EncodeTiled>(entry);
  return {};
}

// A row-major bf16 matrix, in swizzled boxes of `box_rows` x 64. What is outside reads as zero and
// is not written.
Status Encode(EncodeTiled encode, const void* data, int rows, int columns, uint32_t box_rows,
              TensorMap* map) {
  const cuuint64_t sizes[2] = {static_cast<cuuint64_t>(columns), static_cast<cuuint64_t>(rows)};
  const cuuint64_t row_bytes[1] = {static_cast<cuuint64_t>(columns) * sizeof(uint16_t)};
  const cuuint32_t box[2] = {kSwizzleColumns, box_rows};
  const cuuint32_t every[2] = {1, 1};
  CUtensorMap made;
  const CUresult code =
      encode(&made, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void*>(data), sizes, row_bytes,
             box, every, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
             CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (code == CUDA_SUCCESS) {
    std::memcpy(map, &made, sizeof(made));
    return {};
  }
  return InvalidOption("cuTensorMapEncodeTiled refuses a matrix of " + std::to_string(rows) +
                       " x " + std::to_string(columns) + " in boxes of " +
                       std::to_string(box_rows) + " rows with code " + std::to_string(code) + ".");
}

bool IsAligned(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % kPointerAlignment == 0;
}

Status CheckProblem(const GemmProblem& problem) {
  if (problem.m < 1 || problem.n < kAlignment || problem.k < kAlignment ||
      problem.n % kAlignment != 0 || problem.k % kAlignment != 0) {
    return InvalidOption("A wgmma GEMM is asked for " + std::to_string(problem.m) + " x " +
                         std::to_string(problem.n) + " x " + std::to_string(problem.k) +
                         ", and n and k must be positive multiples of 8.");
  }
  if (!IsAligned(problem.a) || !IsAligned(problem.b) || !IsAligned(problem.c)) {
    return InvalidOption(
        "A wgmma GEMM's matrices start at multiples of 16 bytes, and one does not.");
  }
  return {};
}

uint32_t RoundsOf(uint32_t tiles, uint32_t per_task, uint32_t slots) {
  const uint32_t tasks = (tiles + per_task - 1) / per_task;
  return (tasks + slots - 1) / slots * per_task;
}

Status Sms(uint32_t* sms) {
  int device = 0;
  int count = 0;
  Status status = CudaStatus(cudaGetDevice(&device), "cudaGetDevice");
  if (status.ok()) {
    status = CudaStatus(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device),
                        "cudaDeviceGetAttribute");
  }
  *sms = static_cast<uint32_t>(count);
  return status;
}

Status MakePacked(const GemmTileShape& shape, const GemmProblem& problem,
                  std::vector<unsigned char>* packed, Grid* grid) {
  GemmWgmmaParams params = {};
  const Status status = MakeWgmmaParams(shape, problem, 0, 0, &params, grid);
  if (!status.ok()) return status;
  PackParams(params, packed);
  return {};
}

}  // namespace

Status CheckWgmma() {
  const int code = gpushare_wgmma_missing();
  if (code == cudaErrorNoKernelImageForDevice) {
    Status status;
    status.code = code;
    status.message =
        "The wgmma GEMMs need compute capability 9.0a, and the current device is another one or "
        "this program is built without sm_90a.";
    return status;
  }
  return CudaStatus(code, "cudaFuncGetAttributes");
}

int GemmWgmmaVariants(gpushare_kernel_variants* out) {
  const int code = gpushare_wgmma_missing();
  return code != 0 ? code : gpushare_gemm_wgmma_variants(out);
}

int GemmRoomyVariants(gpushare_kernel_variants* out) {
  const int code = gpushare_wgmma_missing();
  return code != 0 ? code : gpushare_gemm_roomy_variants(out);
}

Status MakeWgmmaParams(const GemmTileShape& shape, const GemmProblem& problem,
                       uint32_t tiles_per_task, uint32_t slots, GemmWgmmaParams* params,
                       Grid* grid) {
  EncodeTiled encode = nullptr;
  Status status = CheckProblem(problem);
  if (status.ok() && slots == 0) status = Sms(&slots);
  if (status.ok()) status = FindEncoder(&encode);
  if (status.ok()) {
    status =
        Encode(encode, problem.a, problem.m, problem.k, static_cast<uint32_t>(shape.m), &params->a);
  }
  if (status.ok()) {
    status =
        Encode(encode, problem.b, problem.n, problem.k, static_cast<uint32_t>(shape.n), &params->b);
  }
  if (status.ok()) {
    status = Encode(encode, problem.c, problem.m, problem.n, kStoreRows, &params->c);
  }
  if (!status.ok()) return status;
  params->tiles_m = static_cast<uint32_t>((problem.m - 1) / shape.m + 1);
  params->tiles_n = static_cast<uint32_t>((problem.n - 1) / shape.n + 1);
  params->k_blocks = static_cast<uint32_t>((problem.k - 1) / kGemmKBlock + 1);
  params->group = kGroup;
  const int64_t tiles = static_cast<int64_t>(params->tiles_m) * params->tiles_n;
  if (tiles > kTilesMax) {
    return InvalidOption("A wgmma GEMM has " + std::to_string(tiles) +
                         " tiles, and a grid has 2147483647 blocks at most.");
  }
  const auto count = static_cast<uint32_t>(tiles);
  if (tiles_per_task == 0) {
    tiles_per_task = RoundsOf(count, 2, slots) <= RoundsOf(count, 1, slots) ? 2 : 1;
  }
  params->tiles_per_task = tiles_per_task;
  params->distinct = (count + tiles_per_task - 1) / tiles_per_task;
  *grid = {params->distinct, 1, 1};
  return {};
}

Status MakeGemmWgmmaParams(const GemmProblem& problem, std::vector<unsigned char>* params,
                           Grid* grid) {
  return MakePacked(kGemmWgmmaTile, problem, params, grid);
}

Status MakeGemmRoomyParams(const GemmProblem& problem, std::vector<unsigned char>* params,
                           Grid* grid) {
  return MakePacked(kGemmRoomyTile, problem, params, grid);
}

}  // namespace gpushare::kernels
