// Parameters of the wgmma GEMMs (gemm_wgmma.cuh): tensor maps of A, B and C, and the order of
// tiles.

#ifndef GPUSHARE_KERNELS_TENSOR_GEMM_WGMMA_H_
#define GPUSHARE_KERNELS_TENSOR_GEMM_WGMMA_H_

#include <gpushare/device/kernel_variants.h>

#include <cstdint>
#include <vector>

#include "kernels/tensor/gemm_problem.h"

namespace gpushare::kernels {

// The bytes of a CUtensorMap. The toolkit's type asks for 128-byte alignment; TMA and the driver
// ask for 64, which is what the parameters of a worker kernel have.
struct alignas(64) TensorMap {
  uint64_t opaque[16];
};

struct GemmWgmmaParams {
  TensorMap a;  // boxes of tile rows x 64 values of k
  TensorMap b;
  TensorMap c;  // boxes of 16 rows x 64 columns, one warp's store
  uint32_t tiles_m;
  uint32_t tiles_n;
  uint32_t k_blocks;  // of 64
  uint32_t group;     // rows of tiles that go together (PlaceOfTile)
  // Block task b computes the tiles t * tiles_per_task, ... of t = b % distinct: the loads of one
  // run while another's sums are stored.
  uint32_t tiles_per_task;
  uint32_t distinct;
};

// The rows and columns of C in a tile of one instantiation.
struct GemmTileShape {
  int m;
  int n;
};

constexpr int kGemmKBlock = 64;
constexpr GemmTileShape kGemmWgmmaTile = {128, 256};
constexpr GemmTileShape kGemmRoomyTile = {128, 128};
constexpr int kGemmRoomyRegisters = 104;  // a thread, at most

// Makes the parameters of any instantiation. tiles_per_task 0: two where that needs no more rounds
// of `slots` workers than one, else one; slots 0: the SMs of the current device.
Status MakeWgmmaParams(const GemmTileShape& shape, const GemmProblem& problem,
                       uint32_t tiles_per_task, uint32_t slots, GemmWgmmaParams* params,
                       Grid* grid);

// Success where the current device runs this program's wgmma kernels, else a sentence.
Status CheckWgmma();

// As the generated NAME_variants, but cudaErrorNoKernelImageForDevice where there is no wgmma.
int GemmWgmmaVariants(gpushare_kernel_variants* out);
int GemmRoomyVariants(gpushare_kernel_variants* out);

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_TENSOR_GEMM_WGMMA_H_
