// Packs a GEMM: the checks that all five share, then the kernel's own (gemm_problem.h).

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/interface/checks.h"
#include "kernels/interface/errors.h"
#include "kernels/interface/list.h"
#include "kernels/interface/structs.h"
#include "kernels/interface/task.h"
#include "kernels/tensor/gemm_problem.h"

namespace gpushare::kernels {
namespace {

constexpr uint32_t kAlignmentBytes = 16;  // of TMA and of cp.async
constexpr const char* kParams = "gpushare_gemm_params";

gpushare_kernels_status PackGemm(uint32_t kernel, const gpushare_gemm_params* given,
                                 gpushare_kernels_task* out_task) {
  const KernelRow* const row = FindRow(kernel);
  if (row == nullptr) return NoSuchKernel(kernel);
  if (std::strcmp(row->params, kParams) != 0) {
    return Fail(
        GPUSHARE_KERNELS_INVALID_ARGUMENT,
        std::string("The kernel '") + row->name + "' is no GEMM: it takes " + row->params + ".");
  }
  gpushare_gemm_params params;
  gpushare_kernels_status status = ReadStruct(kParams, given, &params);
  if (status == GPUSHARE_KERNELS_OK) status = CheckStruct("gpushare_kernels_task", out_task);
  if (status != GPUSHARE_KERNELS_OK) return status;
  Checks checks(row->name);
  checks.Require(params.reserved == 0, "needs 'reserved' to be 0.");
  checks.Pointer("a", params.a, kAlignmentBytes);
  checks.Pointer("b", params.b, kAlignmentBytes);
  checks.Pointer("c", params.c, kAlignmentBytes);
  checks.Size("m", params.m, 1, INT32_MAX);
  checks.Size("n", params.n, 1, INT32_MAX);
  checks.Size("k", params.k, 1, INT32_MAX);
  if (!checks.ok()) return FromStatus(checks.status());
  GemmProblem problem;
  problem.m = static_cast<int>(params.m);
  problem.n = static_cast<int>(params.n);
  problem.k = static_cast<int>(params.k);
  problem.a = params.a;
  problem.b = params.b;
  problem.c = params.c;
  std::vector<unsigned char> packed;
  Grid grid;
  const Status made = MakeGemmParams(row->name, problem, &packed, &grid);
  if (!made.ok()) return FromStatus(made);
  return WriteTask(row->name, packed.data(), packed.size(), grid, out_task);
}

}  // namespace
}  // namespace gpushare::kernels

gpushare_kernels_status gpushare_kernels_pack_gemm(uint32_t kernel,
                                                   const gpushare_gemm_params* params,
                                                   gpushare_kernels_task* out_task) noexcept {
  return gpushare::kernels::Guard(
      [&] { return gpushare::kernels::PackGemm(kernel, params, out_task); });
}
