// What the benchmark of fused twins decides without a GPU.

#include "benchmarks/gpu/ptx/fused_plan.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

namespace gpushare::benchmarks {
namespace {

std::vector<Candidate> SomeCandidates() {
  return {
      {"gemm0", PartKind::kGemm, 512, 80, 12},         {"gemm1", PartKind::kGemm, 256, 40, 4},
      {"attention", PartKind::kAttention, 512, 60, 4}, {"norm", PartKind::kMemory, 4096, 50, 9},
      {"add", PartKind::kMemory, 8192, 30, 20},        {"sine", PartKind::kCompute, 2048, 90, 1},
      {"tiny", PartKind::kMemory, 4096, 3, 100},       {"small grid", PartKind::kGemm, 60, 70, 8}};
}

TEST(FusedPlanTest, PairsTakeTurnsAndNoneComesTwice) {
  const std::vector<Candidate> candidates = SomeCandidates();
  const std::vector<PairChoice> pairs = ChoosePairs(candidates, 8);
  ASSERT_EQ(pairs.size(), 8u);
  std::set<std::pair<size_t, size_t>> seen;
  std::map<size_t, int> times;
  std::set<PartKind> kinds;
  for (const PairChoice& pair : pairs) {
    EXPECT_TRUE(seen.emplace(pair.tensor, pair.cuda).second);
    EXPECT_TRUE(IsTensor(candidates[pair.tensor].kind));
    EXPECT_FALSE(IsTensor(candidates[pair.cuda].kind));
    ++times[pair.tensor];
    ++times[pair.cuda];
    kinds.insert(candidates[pair.tensor].kind);
    kinds.insert(candidates[pair.cuda].kind);
  }
  EXPECT_EQ(kinds.size(), 4u);
  EXPECT_EQ(times.size(), 6u) << "each kernel that fills the GPU, and no other";
  for (const auto& [index, count] : times) {
    EXPECT_GE(count, 2) << candidates[index].name;
    EXPECT_LE(count, 3) << candidates[index].name;
  }
}

TEST(FusedPlanTest, ShortPartsAndThoseOfOneWaveNeedNotBeEvicted) {
  EXPECT_TRUE(IsEvictable(20, 265, 264));
  EXPECT_FALSE(IsEvictable(19.9, 265, 264));
  EXPECT_FALSE(IsEvictable(500, 264, 264));
}

TEST(FusedPlanTest, FewKernelsGiveAllTheirPairsOnce) {
  EXPECT_EQ(ChoosePairs(SomeCandidates(), 100).size(), 9u);
  EXPECT_TRUE(ChoosePairs({}, 8).empty());
  EXPECT_TRUE(ChoosePairs({{"gemm", PartKind::kGemm, 512, 80, 1}}, 8).empty());
}

TEST(FusedPlanTest, ANetworksGemmsMeetTheMemoryBoundKernelsThatTakeTheMostOfIt) {
  const std::vector<PairChoice> pairs = ChooseNetworkPairs(SomeCandidates(), 1);
  ASSERT_EQ(pairs.size(), 2u);
  EXPECT_EQ(pairs[0].tensor, 0u);
  EXPECT_EQ(pairs[1].tensor, 1u);
  for (const PairChoice& pair : pairs) EXPECT_EQ(pair.cuda, 4u) << "20 calls of 30 us";
  EXPECT_EQ(ChooseNetworkPairs(SomeCandidates(), 5).size(), 4u);
}

TEST(FusedPlanTest, AmountsGiveTheLoadRatioAndKeepOneGridWhole) {
  const Candidate tensor = {"gemm", PartKind::kGemm, 400, 100, 1};
  const Candidate cuda = {"norm", PartKind::kMemory, 2000, 50, 1};
  for (const double load_ratio : {0.25, 0.5, 1.0, 1.5, 2.0}) {
    const Amounts amounts = AmountsAt(load_ratio, tensor, cuda);
    EXPECT_TRUE(amounts.tensor == tensor.blocks || amounts.cuda == cuda.blocks);
    const double tensor_us = tensor.alone_us * static_cast<double>(amounts.tensor) / 400;
    const double cuda_us = cuda.alone_us * static_cast<double>(amounts.cuda) / 2000;
    EXPECT_NEAR(cuda_us / tensor_us, load_ratio, 0.01);
  }
  EXPECT_EQ(AmountsAt(1e-9, tensor, cuda).cuda, 1);
  EXPECT_EQ(AmountsAt(1e9, tensor, cuda).tensor, 1);
  EXPECT_EQ(AmountsAt(1, {"unknown", PartKind::kGemm, 7, 0, 1}, cuda).tensor, 7);
}

TEST(FusedPlanTest, EveryOtherRoundGoesBackwards) {
  const auto forward = OrderOfRound(0);
  const auto backward = OrderOfRound(1);
  for (size_t i = 0; i < kWays; ++i) EXPECT_EQ(forward[i], backward[kWays - 1 - i]);
}

TEST(FusedPlanTest, GainsAreOfWhatWasMeasured) {
  EXPECT_DOUBLE_EQ(Gain(80, 100), 0.2);
  EXPECT_DOUBLE_EQ(Gain(125, 100), -0.25);
  EXPECT_EQ(Gain(0, 100), 0);
  EXPECT_EQ(Gain(80, 0), 0);
  EXPECT_EQ(IndexOfBest({0, 12, 9, 0, 10}), 2u);
  EXPECT_EQ(IndexOfBest({0, 0}), 2u) << "none was measured";
  EXPECT_EQ(RepeatsFor(100, 3000), 30);
  EXPECT_EQ(RepeatsFor(5000, 3000), 4);
  EXPECT_EQ(RepeatsFor(1, 3000), 128);
}

TEST(FusedPlanTest, TheTextAndTheTimeTellWhatBoundsAKernel) {
  EXPECT_TRUE(UsesTensorCores("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"));
  EXPECT_TRUE(UsesTensorCores("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {"));
  EXPECT_FALSE(UsesTensorCores("fma.rn.f32 %f1, %f2, %f3, %f4;"));
  EXPECT_EQ(TensorKindOf("causal attention torch.float16 64"), PartKind::kAttention);
  EXPECT_EQ(TensorKindOf("mm torch.float16"), PartKind::kGemm);
  EXPECT_EQ(OtherKindOf(128e6, 40), PartKind::kMemory) << "3.2 TB/s";
  EXPECT_EQ(OtherKindOf(128e6, 200), PartKind::kCompute) << "0.6 TB/s";
}

TEST(FusedPlanTest, ANetworksShareCountsNodesAndTheirTime) {
  const NetworkShare share =
      ShareThatGains(SomeCandidates(), {{0, 0.01}, {0, 0.05}, {1, 0.019}, {3, 0.5}});
  EXPECT_DOUBLE_EQ(share.nodes, 12 + 4 + 8);
  EXPECT_DOUBLE_EQ(share.nodes_that_gain, 12) << "by its best pair";
  EXPECT_DOUBLE_EQ(share.us, 12 * 80 + 4 * 40 + 8 * 70);
  EXPECT_DOUBLE_EQ(share.us_that_gains, 12 * 80);
}

}  // namespace
}  // namespace gpushare::benchmarks
