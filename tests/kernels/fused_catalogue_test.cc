// The generated table of fused kernels, without a GPU: its rows name kernels of the catalogue, each
// once, and cover what the project promises.

#include "benchmarks/kernels/fused/fused_catalogue.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "benchmarks/kernels/catalogue.h"

namespace gpushare::kernels {
namespace {

TEST(FusedCatalogueTableTest, RowsNameKernelsOfTheCatalogueOnce) {
  std::set<std::string> names;
  for (const FusedCatalogueKernel& row : FusedCatalogue()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " is there twice";
    EXPECT_NE(FindKernel(row.tensor_name), nullptr) << row.tensor_name;
    EXPECT_NE(FindKernel(row.cuda_name), nullptr) << row.cuda_name;
    EXPECT_NE(row.variants, nullptr) << row.name;
    EXPECT_GE(row.tensor_blocks, 1U) << row.name;
    EXPECT_GE(row.cuda_blocks, 1U) << row.name;
    EXPECT_EQ(FindFused(row.name), &row);
    EXPECT_EQ(
        FindFused(row.tensor_name, row.cuda_name, {row.tensor_blocks, row.cuda_blocks, row.form}),
        &row);
  }
}

TEST(FusedCatalogueTableTest, EachTensorKernelHasTwelvePartnersOfManyBottlenecks) {
  std::map<std::string, std::set<std::string>> partners;
  std::map<std::string, std::set<Bound>> bounds;
  for (const FusedCatalogueKernel& row : FusedCatalogue()) {
    partners[row.tensor_name].insert(row.cuda_name);
    const CatalogueKernel* const kernel = FindKernel(row.cuda_name);
    ASSERT_NE(kernel, nullptr) << row.cuda_name;
    bounds[row.tensor_name].insert(kernel->bound);
  }
  EXPECT_EQ(partners.size(), 4U);
  for (const auto& [tensor, cuda] : partners) {
    EXPECT_GE(cuda.size(), 12U) << tensor;
    EXPECT_GE(bounds[tensor].size(), 5U) << tensor;
  }
}

// 1:1 needs least of a block: without it a pair has no feasible ratio at all.
TEST(FusedCatalogueTableTest, EachPairHasItsSmallestRatioInBothForms) {
  for (const FusedCatalogueKernel& row : FusedCatalogue()) {
    for (const uint32_t form : {GPUSHARE_FUSED_PLAIN, GPUSHARE_FUSED_SETMAXNREG}) {
      EXPECT_NE(FindFused(row.tensor_name, row.cuda_name, {1, 1, form}), nullptr) << row.name;
    }
    EXPECT_GE(FusedOfPair(row.tensor_name, row.cuda_name).size(), 2U) << row.name;
  }
}

// The layout is told before the device is asked, so that there need not be one.
TEST(FusedCatalogueTableTest, TwoTensorKernelsFitABlock) {
  constexpr uint32_t kBlockSharedBytesMax = 227 * 1024;
  const FusedCatalogueKernel* const row = FindFused("gemm_roomy", "gemm_skinny_compact", {});
  ASSERT_NE(row, nullptr);
  gpushare_fused_variants variants = {};
  static_cast<void>(row->variants(&variants));
  EXPECT_EQ(variants.threads_per_block, 384U + 256U);
  // Stages of both; those of the second part begin at a multiple of 1024 bytes, too.
  EXPECT_GT(variants.dynamic_shared_bytes, (160U + 60U) * 1024);
  EXPECT_LE(variants.dynamic_shared_bytes, kBlockSharedBytesMax);
  EXPECT_EQ(variants.tensor_params_bytes % 64, 0U);
  EXPECT_EQ(variants.cuda_params_bytes % 64, 0U);
}

TEST(FusedCatalogueTableTest, UnknownNamesAreNull) {
  EXPECT_EQ(FindFused("gpushare_no_such_kernel"), nullptr);
  EXPECT_EQ(FindFused("gemm_mma", "no_such_kernel", {}), nullptr);
  EXPECT_EQ(FindFused("gemm_mma", "sincos", {7, 7, GPUSHARE_FUSED_PLAIN}), nullptr);
  EXPECT_TRUE(FusedOfPair("no_such_kernel", "sincos").empty());
}

}  // namespace
}  // namespace gpushare::kernels
