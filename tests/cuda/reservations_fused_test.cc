// Quotas and reservations in fused launches on a GPU: the SMs that the parts of each launch really
// hold, by the %smid and the time that each block task records, and an eviction of the BE part in
// the middle of a launch. The same work is fused on the simulated device, where nothing records.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "tests/cuda/held_sms.h"
#include "tests/cuda/reservations_rig.h"
#include "tests/cuda/reservations_rows.h"

namespace gpushare::cuda {
namespace {

constexpr int kQuota = 16;
constexpr int kReserved = 64;
constexpr int kQueries = 100;
constexpr int kBursts = 8;

// An LC worker holds its SM, and between two block tasks of 100 us nothing records.
constexpr uint64_t kLookNs = 200'000;

// One LC kernel in a fused launch: from its first block task to the end of its last one.
struct FusedLaunch {
  uint64_t begin_ns = UINT64_MAX;
  uint64_t end_ns = 0;
  std::vector<BlockRecord> lc;
};

// The records of fused blocks, and of all, by who ran them.
struct Blocks {
  std::map<uint32_t, FusedLaunch> launches;  // by the LC kernel's tag
  std::vector<BlockRecord> be;               // fused or not
  std::vector<BlockRecord> fused_be;
  int64_t lc_block_tasks = 0;
};

Blocks Sort(const std::vector<BlockRecord>& records) {
  Blocks blocks;
  for (BlockRecord record : records) {
    const bool fused = (record.tag & kFusedTag) != 0;
    record.tag &= ~kFusedTag;
    if (record.tag == kBeTag) {
      blocks.be.push_back(record);
      if (fused) blocks.fused_be.push_back(record);
      continue;
    }
    ++blocks.lc_block_tasks;
    if (!fused) continue;
    FusedLaunch& launch = blocks.launches[record.tag];
    launch.begin_ns = std::min(launch.begin_ns, record.begin_ns);
    launch.end_ns = std::max(launch.end_ns, record.end_ns);
    launch.lc.push_back(record);
  }
  return blocks;
}

// What the parts held, at worst over all launches in which the BE part ran.
struct Held {
  int launches = 0;          // with a BE part
  int be_sms = 0;            // the most SMs of a BE part, at any time of its launch
  int be_blocks = 0;         // the most block tasks of BE parts at once
  int lc_sms = INT32_MAX;    // the fewest SMs of an LC part in any 200 us of it
  int free_sms = INT32_MAX;  // the fewest SMs that no BE block task held during a launch
};

Held Measure(const Blocks& blocks, int sms) {
  const HeldSms fused_be(blocks.fused_be, kBeTag, kBeTag);
  const HeldSms be(blocks.be, kBeTag, kBeTag);
  Held held;
  for (const auto& [tag, launch] : blocks.launches) {
    const int be_sms = fused_be.AtAnyTime(launch.begin_ns, launch.end_ns);
    if (be_sms == 0) continue;
    ++held.launches;
    held.be_sms = std::max(held.be_sms, be_sms);
    held.be_blocks =
        std::max(held.be_blocks, fused_be.AtOnce(launch.begin_ns, launch.end_ns).blocks);
    held.free_sms = std::min(held.free_sms, sms - be.AtAnyTime(launch.begin_ns, launch.end_ns));
    const HeldSms lc(launch.lc, tag, tag);
    for (uint64_t at = launch.begin_ns; at + 2 * kLookNs <= launch.end_ns; at += kLookNs) {
      held.lc_sms = std::min(held.lc_sms, lc.AtAnyTime(at, at + kLookNs));
    }
  }
  return held;
}

// Every block task ran once, whichever launches its task was cut into.
void ExpectAllRanOnce(const Rig::Run& run, const Blocks& blocks) {
  EXPECT_EQ(static_cast<int64_t>(blocks.be.size()), run.be_block_tasks);
  EXPECT_EQ(blocks.lc_block_tasks, run.lc_block_tasks);
}

uint64_t Since(int64_t from_ns, int64_t until_ns) {
  return static_cast<uint64_t>(std::max<int64_t>(0, until_ns - from_ns));
}

int64_t LcP99(const Rig::Run& run) { return QuantileOf(run.latencies_ns, 0.99); }

int QuotaWorkers(Work work) {
  return kQuota * (work == Work::kFused ? 1 : kDenseFusedWorkersPerSm);
}

struct Row {
  const char* kind;
  const char* policy;
  Work work;
  int quota;
};

void Report(const Row& row, const Held& held, int be_blocks_at_once, const Rig::Run& run) {
  std::printf(
      "fused       %-8s %-13s quota %3d, reserved %d  %3d launches: BE on at most %3d SMs, %3d "
      "blocks (%d at once in the run), LC on at least %3d SMs, %3d free of BE  LC p99 %5.0f us "
      "(target %5.0f)  BE tasks %lld\n",
      row.policy, NameOf(row.work), row.quota, kReserved, held.launches, held.be_sms,
      held.be_blocks, be_blocks_at_once, held.lc_sms, held.free_sms, Us(LcP99(run)),
      Us(kFusedTargetNs), static_cast<long long>(run.be_tasks));
  AddRow({{"kind", row.kind},
          {"policy", row.policy},
          {"work", NameOf(row.work)},
          {"quota_capsms", row.quota},
          {"reserved_capsms", kReserved},
          {"fused_launches", held.launches},
          {"be_sms_in_a_launch_max", held.be_sms},
          {"be_blocks_in_a_launch_max", held.be_blocks},
          {"be_blocks_at_once", be_blocks_at_once},
          {"lc_sms_in_a_launch_min", held.lc_sms},
          {"free_of_be_sms_min", held.free_sms},
          {"lc_p99_us", Us(LcP99(run))},
          {"target_us", Us(kFusedTargetNs)},
          {"be_tasks", run.be_tasks}});
}

using FusedRow = std::tuple<const char*, Work>;

std::string NameOfFused(const testing::TestParamInfo<FusedRow>& row) {
  return NameOfRow(std::get<0>(row.param), std::get<1>(row.param));
}

const auto kFusedRows =
    testing::Values(FusedRow("adaptive", Work::kFused), FusedRow("adaptive", Work::kDenseFused),
                    FusedRow("tacker", Work::kFused), FusedRow("tacker", Work::kDenseFused));

class FusedGpuTest : public testing::TestWithParam<FusedRow> {
 protected:
  static void Promise(Rig& rig) {
    ASSERT_EQ(rig.Reserve(kReserved, false), GPUSHARE_OK) << gpushare_last_error_message();
    ASSERT_EQ(rig.Quota(kQuota, false), GPUSHARE_OK) << gpushare_last_error_message();
  }
};

// 16 CapSMs are 16 workers in as many fused blocks, or 48 where a fused block has three.
TEST_P(FusedGpuTest, BothPartsKeepWhatTheyWerePromised) {
  const auto& [policy, work] = GetParam();
  Rig rig(policy, work);
  if (rig.has_no_gpu()) GTEST_SKIP() << rig.reason();
  ASSERT_TRUE(rig.ok()) << rig.reason();
  ASSERT_NO_FATAL_FAILURE(Promise(rig));
  const Rig::Run run = rig.RunQueries(kQueries);
  ASSERT_TRUE(rig.ok()) << rig.reason();
  const Blocks blocks = Sort(run.records);
  const Held held = Measure(blocks, rig.sms());
  const HeldSms be(blocks.be, kBeTag, kBeTag);
  const HeldSms::Most most = be.AtOnce(be.begin_ns(), be.end_ns());
  Report({"fused", policy, work, kQuota}, held, most.blocks, run);
  ASSERT_GT(held.launches, kQueries / 4);
  const int workers = QuotaWorkers(work);
  EXPECT_LE(held.be_blocks, workers);
  EXPECT_LE(held.be_sms, kQuota) << "a BE part's workers stay in their fused blocks";
  EXPECT_LE(most.blocks, workers) << "fused or not";
  EXPECT_GE(held.lc_sms, kReserved);
  if (work == Work::kFused) {  // workers by themselves, too, have an SM each
    EXPECT_GE(held.free_sms, kReserved);
  }
  EXPECT_LT(LcP99(run), kFusedTargetNs);
  ExpectAllRanOnce(run, blocks);
}

// Where a late query's policy wrote the BE part's eviction word in the middle of the LC part.
TEST_P(FusedGpuTest, ALateQuerySendsTheBePartAwayInTheMiddle) {
  const auto& [policy, work] = GetParam();
  Rig rig(policy, work);
  if (rig.has_no_gpu()) GTEST_SKIP() << rig.reason();
  ASSERT_TRUE(rig.ok()) << rig.reason();
  ASSERT_NO_FATAL_FAILURE(Promise(rig));
  rig.RunQueries(kQueries);  // until the policy knows the load
  const Rig::Run run = rig.RunBursts(kBursts);
  ASSERT_TRUE(rig.ok()) << rig.reason();
  const Blocks blocks = Sort(run.records);
  const HeldSms fused_be(blocks.fused_be, kBeTag, kBeTag);
  std::vector<int64_t> left_ns;  // from the burst's last query
  int fused = 0;
  for (const Rig::Burst& burst : run.bursts) {
    const auto found = blocks.launches.find(burst.tag);
    if (found == blocks.launches.end()) continue;
    const FusedLaunch& launch = found->second;
    // By the GPU's clock.
    const uint64_t before_ns = launch.begin_ns + Since(burst.start_ns, burst.before_ns);
    const uint64_t after_ns = launch.begin_ns + Since(burst.start_ns, burst.after_ns);
    if (fused_be.AtAnyTime(before_ns - kEvictionNs / 2, before_ns) == 0) continue;
    if (after_ns + kEvictionNs >= launch.end_ns) continue;  // the host was slow
    ++fused;
    EXPECT_EQ(fused_be.AtAnyTime(after_ns + kEvictionNs, launch.end_ns), 0) << burst.tag;
    const HeldSms lc(launch.lc, burst.tag, burst.tag);
    EXPECT_GE(lc.AtAnyTime(launch.end_ns - kLookNs, launch.end_ns), kReserved)
        << "the LC part goes on";
    const uint64_t gone_ns = fused_be.WithinSince(0, before_ns, launch.end_ns);
    left_ns.push_back(static_cast<int64_t>(gone_ns - before_ns));
  }
  const double p50_us = Us(QuantileOf(left_ns, 0.5));
  const double max_us = Us(QuantileOf(left_ns, 1));
  std::printf(
      "fused       %-8s %-13s quota %3d, reserved %d  %d of %d bursts met a BE part, which left "
      "after p50 %5.0f max %5.0f us\n",
      policy, NameOf(work), kQuota, kReserved, fused, kBursts, p50_us, max_us);
  AddRow({{"kind", "fused eviction"},
          {"policy", policy},
          {"work", NameOf(work)},
          {"quota_capsms", kQuota},
          {"reserved_capsms", kReserved},
          {"bursts", kBursts},
          {"bursts_beside_a_be_part", fused},
          {"left_after_p50_us", p50_us},
          {"left_after_max_us", max_us}});
  EXPECT_GE(fused, kBursts / 2);
  EXPECT_LE(Measure(blocks, rig.sms()).be_blocks, QuotaWorkers(work));
  ExpectAllRanOnce(run, blocks);
}

INSTANTIATE_TEST_SUITE_P(Policies, FusedGpuTest, kFusedRows, NameOfFused);

// tacker keeps a reservation free at all times: without a quota BE has the rest.
TEST(FusedReservationGpuTest, LeavesTheBePartTheRestOfTheDevice) {
  Rig rig("tacker", Work::kFused);
  if (rig.has_no_gpu()) GTEST_SKIP() << rig.reason();
  ASSERT_TRUE(rig.ok()) << rig.reason();
  ASSERT_EQ(rig.Reserve(kReserved, false), GPUSHARE_OK) << gpushare_last_error_message();
  const Rig::Run run = rig.RunQueries(kQueries);
  ASSERT_TRUE(rig.ok()) << rig.reason();
  const Blocks blocks = Sort(run.records);
  const Held held = Measure(blocks, rig.sms());
  const HeldSms be(blocks.be, kBeTag, kBeTag);
  const HeldSms::Most most = be.AtOnce(be.begin_ns(), be.end_ns());
  Report({"fused", "tacker", Work::kFused, 0}, held, most.blocks, run);
  ASSERT_GT(held.launches, kQueries / 4);
  EXPECT_LE(most.blocks, rig.sms() - kReserved);
  EXPECT_GE(held.free_sms, kReserved);
  EXPECT_GE(held.lc_sms, kReserved);
  ExpectAllRanOnce(run, blocks);
}

class FusedSimTest : public FusedGpuTest {};

// What the GPU's tests ask of the policies, so that they do not find on a GPU that nothing is
// fused.
TEST_P(FusedSimTest, TheSameWorkIsFused) {
  const auto& [policy, work] = GetParam();
  Rig rig(policy, work, "sim");
  ASSERT_TRUE(rig.ok()) << rig.reason();
  ASSERT_NO_FATAL_FAILURE(Promise(rig));
  const Rig::Run run = rig.RunQueries(kQueries);
  ASSERT_TRUE(rig.ok()) << rig.reason();
  std::printf("simulated   %-8s %-13s %lld of %d LC kernels were fused, %lld BE tasks\n", policy,
              NameOf(work), static_cast<long long>(run.fused_kernels), kQueries * kKernelsPerQuery,
              static_cast<long long>(run.be_tasks));
  EXPECT_GT(run.fused_kernels, kQueries / 4);
  EXPECT_GT(run.be_tasks, 0);
  EXPECT_LT(LcP99(run), kFusedTargetNs);
  const Rig::Run bursts = rig.RunBursts(kBursts);
  ASSERT_TRUE(rig.ok()) << rig.reason();
  ASSERT_EQ(bursts.bursts.size(), size_t{kBursts});
  for (const Rig::Burst& burst : bursts.bursts) EXPECT_TRUE(burst.fused) << burst.tag;
}

INSTANTIATE_TEST_SUITE_P(Policies, FusedSimTest, kFusedRows, NameOfFused);

TEST(FusedReservationSimTest, TheSameWorkIsFused) {
  Rig rig("tacker", Work::kFused, "sim");
  ASSERT_TRUE(rig.ok()) << rig.reason();
  ASSERT_EQ(rig.Reserve(kReserved, false), GPUSHARE_OK) << gpushare_last_error_message();
  const Rig::Run run = rig.RunQueries(kQueries);
  ASSERT_TRUE(rig.ok()) << rig.reason();
  EXPECT_GT(run.fused_kernels, kQueries / 4);
}

}  // namespace
}  // namespace gpushare::cuda
