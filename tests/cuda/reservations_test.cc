// gpushare_reserve_capsm on a GPU: the SMs that BE blocks really hold, by the %smid and the time
// that each block records, while an LC app with a reservation has a query, and under quotas.
//
// A table of all rows is printed. GPUSHARE_RESERVATIONS_JSON names a file for them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <tuple>
#include <vector>

#include "tests/cuda/held_sms.h"
#include "tests/cuda/reservations_rig.h"
#include "tests/cuda/reservations_rows.h"

namespace gpushare::cuda {
namespace {

constexpr int kQueries = 150;
constexpr int64_t kAloneNs = 250'000'000;

// From the first block of a query to its last one, by the GPU's clock.
struct Window {
  uint64_t begin_ns = UINT64_MAX;
  uint64_t end_ns = 0;
};

std::vector<Window> WindowsOf(const std::vector<BlockRecord>& records, size_t queries) {
  std::vector<Window> windows(queries);
  for (const BlockRecord& record : records) {
    if (record.tag == kBeTag || record.tag > queries * kKernelsPerQuery) continue;
    Window& window = windows[(record.tag - 1) / kKernelsPerQuery];
    window.begin_ns = std::min(window.begin_ns, record.begin_ns);
    window.end_ns = std::max(window.end_ns, record.end_ns);
  }
  return windows;
}

// What BE held while queries were active, an eviction after each one's start.
struct Kept {
  std::vector<int> free;              // SMs that BE did not hold at any time; one a query
  std::vector<int> free_at_once;      // SMs that BE did not hold at the worst time
  std::vector<int64_t> evictions_ns;  // until the reservation was free for the rest of the query
};

Kept Measure(const Rig& rig, const Rig::Run& run, int reserved) {
  const HeldSms be(run.records, kBeTag, kBeTag);
  Kept kept;
  for (const Window& window : WindowsOf(run.records, run.latencies_ns.size())) {
    const uint64_t from_ns = window.begin_ns + kEvictionNs;
    if (window.end_ns <= from_ns) {
      ADD_FAILURE() << "A query recorded no blocks, or is shorter than an eviction.";
      continue;
    }
    kept.free.push_back(rig.sms() - be.AtAnyTime(from_ns, window.end_ns));
    kept.free_at_once.push_back(rig.sms() - be.AtOnce(from_ns, window.end_ns).sms);
    const uint64_t since_ns = be.WithinSince(rig.sms() - reserved, window.begin_ns, window.end_ns);
    kept.evictions_ns.push_back(static_cast<int64_t>(since_ns - window.begin_ns));
  }
  return kept;
}

struct Row {
  const char* policy;
  Work work;
  int capsms;
  bool packed;
};

void Report(const Row& row, const Kept& kept, const Rig& rig, const Rig::Run& run) {
  const auto& evictions = kept.evictions_ns;
  const auto lc_us = [&](double quantile) { return Us(QuantileOf(run.latencies_ns, quantile)); };
  const auto alone_us = [&](double quantile) { return Us(QuantileOf(rig.alone_ns(), quantile)); };
  std::printf(
      "reservation %-8s %-13s asked %3d  free min %3d median %3d  eviction p50 %5.0f max %5.0f us  "
      "LC p50 %6.0f p99 %6.0f us (alone %6.0f %6.0f)  BE tasks %lld\n",
      row.policy, NameOf(row.work), row.capsms, QuantileOf(kept.free, 0),
      QuantileOf(kept.free, 0.5), Us(QuantileOf(evictions, 0.5)), Us(QuantileOf(evictions, 1)),
      lc_us(0.5), lc_us(0.99), alone_us(0.5), alone_us(0.99), static_cast<long long>(run.be_tasks));
  AddRow({{"kind", "reservation"},
          {"policy", row.policy},
          {"work", NameOf(row.work)},
          {"packed", row.packed},
          {"asked_capsms", row.capsms},
          {"sms", rig.sms()},
          {"queries", run.latencies_ns.size()},
          {"free_sms_min", QuantileOf(kept.free, 0)},
          {"free_sms_median", QuantileOf(kept.free, 0.5)},
          {"free_sms_at_once_min", QuantileOf(kept.free_at_once, 0)},
          {"eviction_p50_us", Us(QuantileOf(evictions, 0.5))},
          {"eviction_p99_us", Us(QuantileOf(evictions, 0.99))},
          {"eviction_max_us", Us(QuantileOf(evictions, 1))},
          {"lc_p50_us", lc_us(0.5)},
          {"lc_p99_us", lc_us(0.99)},
          {"lc_alone_p50_us", alone_us(0.5)},
          {"lc_alone_p99_us", alone_us(0.99)},
          {"be_tasks", run.be_tasks}});
}

using ReservationRow = std::tuple<const char*, Work>;

std::string NameOfReservation(const testing::TestParamInfo<ReservationRow>& row) {
  return NameOfRow(std::get<0>(row.param), std::get<1>(row.param));
}

class ReservationGpuTest : public testing::TestWithParam<ReservationRow> {};

TEST_P(ReservationGpuTest, KeepsItsSmsFreeOfBeWithinAnEvictionOfAQuery) {
  const auto& [policy, work] = GetParam();
  Rig rig(policy, work);
  if (rig.has_no_gpu()) GTEST_SKIP() << rig.reason();
  ASSERT_TRUE(rig.ok()) << rig.reason();
  for (const int capsms : {32, 64, 96}) {
    ASSERT_EQ(rig.Reserve(capsms, false), GPUSHARE_OK) << gpushare_last_error_message();
    const Rig::Run run = rig.RunQueries(kQueries);
    ASSERT_TRUE(rig.ok()) << rig.reason();
    const Kept kept = Measure(rig, run, capsms);
    Report({policy, work, capsms, false}, kept, rig, run);
    EXPECT_GT(run.be_tasks, 0) << capsms;
    // adaptive keeps LC the SMs of one side; smguard counts CapSMs, on whichever SMs.
    const bool counts = std::string(policy) == "smguard";
    EXPECT_GE(QuantileOf(counts ? kept.free_at_once : kept.free, 0), capsms);
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, ReservationGpuTest,
                         testing::Values(ReservationRow("adaptive", Work::kWorkers),
                                         ReservationRow("adaptive", Work::kSegments),
                                         ReservationRow("smguard", Work::kWorkers)),
                         NameOfReservation);

void ExpectQuotaKept(Rig& rig, const Row& row, bool beside_queries) {
  ASSERT_EQ(rig.Quota(row.capsms, row.packed), GPUSHARE_OK) << gpushare_last_error_message();
  const Rig::Run run = beside_queries ? rig.RunQueries(kQueries / 2) : rig.RunAlone(kAloneNs);
  ASSERT_TRUE(rig.ok()) << rig.reason();
  const HeldSms be(run.records, kBeTag, kBeTag);
  ASSERT_FALSE(be.empty()) << row.capsms;
  const HeldSms::Most most = be.AtOnce(be.begin_ns(), be.end_ns());
  const int any = be.AtAnyTime(be.begin_ns(), be.end_ns());
  // Workers of a spread quota may have an SM for themselves: their number is bounded.
  const bool dense = row.work == Work::kDenseWorkers;
  const double held =
      dense && !row.packed ? static_cast<double>(most.blocks) / kDenseWorkersPerSm : most.sms;
  std::printf(
      "quota       %-8s %-13s asked %3d %s %s  held at once %3d SMs, %4d blocks (%.1f CapSMs), at "
      "any time %3d SMs  BE tasks %lld\n",
      row.policy, NameOf(row.work), row.capsms, row.packed ? "packed" : "spread",
      beside_queries ? "beside queries" : "alone         ", most.sms, most.blocks, held, any,
      static_cast<long long>(run.be_tasks));
  AddRow({{"kind", "quota"},
          {"policy", row.policy},
          {"work", NameOf(row.work)},
          {"packed", row.packed},
          {"beside_queries", beside_queries},
          {"asked_capsms", row.capsms},
          {"held_capsms", held},
          {"sms_at_once", most.sms},
          {"blocks_at_once", most.blocks},
          {"sms_at_any_time", any},
          {"lc_p50_us", Us(QuantileOf(run.latencies_ns, 0.5))},
          {"lc_p99_us", Us(QuantileOf(run.latencies_ns, 0.99))},
          {"be_tasks", run.be_tasks}});
  EXPECT_LE(held, row.capsms);
  EXPECT_GT(run.be_tasks, 0) << row.capsms;
}

using QuotaRow = std::tuple<const char*, Work, bool>;  // packed

std::string NameOfQuota(const testing::TestParamInfo<QuotaRow>& row) {
  return NameOfRow(std::get<0>(row.param), std::get<1>(row.param)) +
         (std::get<2>(row.param) ? "_packed" : "_spread");
}

class QuotaGpuTest : public testing::TestWithParam<QuotaRow> {};

TEST_P(QuotaGpuTest, BoundsWhatBeBlocksHoldAtOnce) {
  const auto& [policy, work, packed] = GetParam();
  Rig rig(policy, work);
  if (rig.has_no_gpu()) GTEST_SKIP() << rig.reason();
  ASSERT_TRUE(rig.ok()) << rig.reason();
  for (const int capsms : {16, 48}) {
    for (const bool beside_queries : {false, true}) {
      ASSERT_NO_FATAL_FAILURE(ExpectQuotaKept(rig, {policy, work, capsms, packed}, beside_queries));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, QuotaGpuTest,
                         testing::Values(QuotaRow("adaptive", Work::kWorkers, false),
                                         QuotaRow("adaptive", Work::kWorkers, true),
                                         QuotaRow("adaptive", Work::kDenseWorkers, false),
                                         QuotaRow("adaptive", Work::kSegments, false),
                                         QuotaRow("smguard", Work::kWorkers, false)),
                         NameOfQuota);

TEST(RefusalGpuTest, OfAKernelThatNothingConfinesNamesTheNeedAndTheLimit) {
  Rig rig("adaptive", Work::kFixed);
  if (rig.has_no_gpu()) GTEST_SKIP() << rig.reason();
  ASSERT_TRUE(rig.ok()) << rig.reason();
  const std::string need = "needs " + std::to_string(rig.sms()) + " SMs";
  const auto expect_refused = [&](const char* limit) {
    gpushare_ticket ticket = {0};
    EXPECT_EQ(rig.SubmitBe(0, &ticket), GPUSHARE_FAILED_PRECONDITION) << limit;
    const std::string message = gpushare_last_error_message();
    EXPECT_NE(message.find(need), std::string::npos) << message;
    EXPECT_NE(message.find(limit), std::string::npos) << message;
    std::printf("refused     %s\n", message.c_str());
    AddRow({{"kind", "refusal"}, {"policy", "adaptive"}, {"message", message}});
  };
  ASSERT_EQ(rig.Quota(16, false), GPUSHARE_OK) << gpushare_last_error_message();
  expect_refused("the quota of BE app 'batch' is 16");
  ASSERT_EQ(rig.Quota(0, false), GPUSHARE_OK) << gpushare_last_error_message();
  ASSERT_EQ(rig.Reserve(64, false), GPUSHARE_OK) << gpushare_last_error_message();
  expect_refused("the reservations leave BE app 'batch'");
}

}  // namespace
}  // namespace gpushare::cuda
