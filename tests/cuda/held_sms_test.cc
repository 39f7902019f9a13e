// The count of held SMs, on made-up records: the GPU test of reservations fails by it.

#include "tests/cuda/held_sms.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <vector>

namespace gpushare::cuda {
namespace {

constexpr uint64_t kAlways = 1'000'000;

HeldSms Of(const std::vector<BlockRecord>& records) { return {records, 0, 9}; }

TEST(HeldSmsTest, ABlockThatBeginsWhenAnotherEndsIsNotHeldAtTheSameTime) {
  const HeldSms held = Of({{200, 300, 2, 0}, {100, 200, 1, 0}});
  EXPECT_EQ(held.AtOnce(0, kAlways).sms, 1);
  EXPECT_EQ(held.AtOnce(0, kAlways).blocks, 1);
  EXPECT_EQ(held.AtAnyTime(0, kAlways), 2);
  EXPECT_EQ(held.begin_ns(), 100U);
  EXPECT_EQ(held.end_ns(), 300U);
}

TEST(HeldSmsTest, TwoBlocksOfOneSmAreOneSmUntilTheLastEnds) {
  const HeldSms held = Of({{100, 200, 1, 0}, {150, 400, 1, 0}, {300, 350, 2, 0}});
  EXPECT_EQ(held.AtOnce(0, kAlways).sms, 2);
  EXPECT_EQ(held.AtOnce(0, kAlways).blocks, 2);
  EXPECT_EQ(held.AtOnce(0, 300).sms, 1);
  EXPECT_EQ(held.AtOnce(0, 300).blocks, 2);
}

TEST(HeldSmsTest, ALongBlockThatBeganBeforeTheWindowCounts) {
  const HeldSms held = Of({{100, 900, 1, 0}, {200, 210, 2, 0}, {300, 310, 3, 0}});
  EXPECT_EQ(held.AtAnyTime(500, 600), 1);
  EXPECT_EQ(held.AtAnyTime(900, 950), 0);
  EXPECT_EQ(held.AtAnyTime(305, 600), 2);
}

TEST(HeldSmsTest, TheEvictionEndsWhenTheLastSmAboveTheLimitIsFree) {
  const HeldSms held = Of({{100, 200, 1, 0}, {100, 250, 2, 0}, {100, 300, 3, 0}});
  EXPECT_EQ(held.WithinSince(0, 150, 500), 300U);
  EXPECT_EQ(held.WithinSince(1, 150, 500), 250U);
  EXPECT_EQ(held.WithinSince(2, 150, 500), 200U);
  EXPECT_EQ(held.WithinSince(3, 150, 500), 150U);
  // One that comes back late delays it.
  EXPECT_EQ(Of({{100, 200, 1, 0}, {400, 450, 1, 0}}).WithinSince(0, 150, 500), 450U);
  // One that stays is there until the window ends.
  EXPECT_EQ(Of({{100, 900, 1, 0}}).WithinSince(0, 150, 500), 500U);
}

TEST(HeldSmsTest, RecordsOfOthersDoNotCount) {
  const std::vector<BlockRecord> records = {{100, 200, 1, 0}, {100, 200, 2, 3}, {100, 200, 3, 4}};
  EXPECT_EQ(HeldSms(records, 0, 0).AtAnyTime(0, kAlways), 1);
  EXPECT_EQ(HeldSms(records, 3, 4).AtAnyTime(0, kAlways), 2);
  EXPECT_TRUE(HeldSms(records, 5, 9).empty());
  EXPECT_EQ(HeldSms(records, 5, 9).AtOnce(0, kAlways).sms, 0);
}

// Against a look at each nanosecond.
TEST(HeldSmsTest, RandomRecordsGiveWhatALookAtEachTimeGives) {
  std::mt19937 random(1);
  const auto below = [&](uint32_t limit) { return static_cast<uint32_t>(random() % limit); };
  for (int round = 0; round < 100; ++round) {
    std::vector<BlockRecord> records(below(30));
    for (BlockRecord& record : records) {
      const uint64_t begin_ns = below(100);
      record = {begin_ns, begin_ns + 1 + below(40), below(8), 0};
    }
    const uint64_t from_ns = below(60);
    const uint64_t until_ns = from_ns + 1 + below(60);
    std::set<uint32_t> any;
    size_t most = 0;
    uint64_t since_ns = from_ns;
    for (uint64_t now_ns = from_ns; now_ns < until_ns; ++now_ns) {
      std::set<uint32_t> now;
      for (const BlockRecord& record : records) {
        if (record.begin_ns <= now_ns && now_ns < record.end_ns) now.insert(record.sm);
      }
      any.insert(now.begin(), now.end());
      most = std::max(most, now.size());
      if (now.size() > 3) since_ns = now_ns + 1;
    }
    const HeldSms held = Of(records);
    EXPECT_EQ(held.AtAnyTime(from_ns, until_ns), static_cast<int>(any.size())) << round;
    EXPECT_EQ(held.AtOnce(from_ns, until_ns).sms, static_cast<int>(most)) << round;
    EXPECT_EQ(held.WithinSince(3, from_ns, until_ns), since_ns) << round;
  }
}

}  // namespace
}  // namespace gpushare::cuda
