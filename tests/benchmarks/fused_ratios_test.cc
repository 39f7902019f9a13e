// Which ratios of a pair the benchmark of fused twins makes, and what it says where there is none.

#include "benchmarks/gpu/ptx/fused_ratios.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace gpushare::benchmarks {
namespace {

const std::string kEntry = "part";

std::string Text() {
  return ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry part()\n{\n"
         "  bar.sync 0;\n  ret;\n}\n";
}

PartSource Part(const std::string& text, int threads, int registers) {
  return {.text = text, .entry = kEntry, .threads = threads, .registers = registers};
}

TEST(FusedRatiosTest, FewRatiosOfFewCopiesAreTakenAndCappedOnesLast) {
  const std::string text = Text();
  const PairRatios all = RatiosOfParts(Part(text, 128, 168), Part(text, 128, 40), {100, 5});
  EXPECT_EQ(all.refusal, "");
  ASSERT_EQ(all.ratios.size(), 10u);
  // 384 threads have 168 registers each: those of three copies.
  for (size_t i = 0; i < all.ratios.size(); ++i) {
    const ptx::FusedRatio& ratio = all.ratios[i];
    const bool crowded = ratio.threads > 384;
    EXPECT_EQ(ratio.capped || ratio.move_registers, crowded) << i;
    if (!crowded) continue;
    const ptx::FusedTwin twin = FusedAt(Part(text, 128, 168), Part(text, 128, 40), ratio);
    ASSERT_TRUE(twin.ok()) << twin.refusal.message;
    EXPECT_EQ(twin.text.find("setmaxnreg.inc") != std::string::npos, ratio.move_registers) << i;
    EXPECT_LE(ratio.tensor_copies + ratio.cuda_copies, 5u);
  }
  EXPECT_TRUE(std::is_sorted(
      all.ratios.begin(), all.ratios.end(),
      [](const ptx::FusedRatio& a, const ptx::FusedRatio& b) { return !a.capped && b.capped; }));
  EXPECT_EQ(all.ratios[0].threads, 256u);
  EXPECT_EQ(all.ratios.back().threads, 640u);
  const PairRatios some = RatiosOfParts(Part(text, 128, 168), Part(text, 128, 40), {});
  ASSERT_EQ(some.ratios.size(), 6u);
  EXPECT_TRUE(some.ratios[5].move_registers);
}

TEST(FusedRatiosTest, ARefusalSaysWhatBothPartsNeed) {
  const std::string text = Text();
  const PairRatios none = RatiosOfParts(Part(text, 768, 40), Part(text, 512, 0), {});
  EXPECT_TRUE(none.ratios.empty());
  EXPECT_EQ(none.refusal,
            "No ratio of at most 5 copies fits on an SM: the Tensor part has 768 threads, 40 "
            "registers of a worker's thread and 48 bytes of shared memory; the CUDA part has 512 "
            "threads, unknown registers of a worker's thread and 48 bytes of shared memory.");
  // No registers move for another target.
  std::string older = Text();
  older.replace(older.find("sm_90a"), 6, "sm_80 ");
  for (const ptx::FusedRatio& ratio :
       RatiosOfParts(Part(older, 128, 168), Part(older, 128, 40), {100, 5}).ratios) {
    EXPECT_FALSE(ratio.move_registers);
    EXPECT_TRUE(FusedAt(Part(older, 128, 168), Part(older, 128, 40), ratio).ok());
  }
  const std::string broken = "no module";
  EXPECT_NE(RatiosOfParts(Part(broken, 128, 40), Part(text, 128, 40), {}).refusal, "");
}

}  // namespace
}  // namespace gpushare::benchmarks
