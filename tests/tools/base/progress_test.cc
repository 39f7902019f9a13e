// Progress with and without a terminal: what is printed, when, and the remaining time.

#include "tools/gpushare/base/progress.h"

#include <gtest/gtest.h>

#include <string>

namespace gpushare::tool {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

TEST(ProgressTest, WithoutATerminalALineComesAtMostEveryFewSeconds) {
  ProgressText text(40, 0, 100 * kSecondNs);
  EXPECT_EQ(text.Step("a", 101 * kSecondNs), "");
  EXPECT_EQ(text.Step("b", 104 * kSecondNs), "");
  EXPECT_EQ(text.Step("c", 106 * kSecondNs),
            "gpushare: 3 of 40 done, 6 s elapsed, about 74 s remaining: c\n");
  EXPECT_EQ(text.Step("d", 110 * kSecondNs), "");
  EXPECT_EQ(text.Step("e", 111 * kSecondNs),
            "gpushare: 5 of 40 done, 11 s elapsed, about 77 s remaining: e\n");
  EXPECT_EQ(text.Clear(), "");
}

TEST(ProgressTest, LongTimesAreMinutesAndHours) {
  ProgressText text(100, 0, 0);
  EXPECT_EQ(text.Step("a", 150 * kSecondNs),
            "gpushare: 1 of 100 done, 2 min 30 s elapsed, about 4 h 07 min remaining: a\n");
}

TEST(ProgressTest, ATerminalHasOneLineThatFitsItsWidth) {
  ProgressText text(2, 60, 0);
  const std::string line = text.Step("a row with a name that is long", 3 * kSecondNs);
  EXPECT_EQ(line, "\r\033[K[############............] 1/2 3 s, about 3 s left  a row w");
  EXPECT_EQ(line.size(), 4u + 59u);  // the codes that clear the line, then its letters
  EXPECT_EQ(text.Clear(), "\r\033[K");
}

TEST(ProgressTest, ATerminalIsDrawnTenTimesASecondAndAtTheEnd) {
  ProgressText text(4, 80, 0);
  EXPECT_NE(text.Step("a", 1'000'000), "");
  EXPECT_EQ(text.Step("b", 2'000'000), "") << "a thousand short steps would flicker";
  EXPECT_NE(text.Step("c", 102'000'000), "");
  EXPECT_NE(text.Step("d", 103'000'000), "") << "the last line says that all is done";
}

TEST(ProgressTest, OfAnUnknownNumberOfStepsNothingIsSaidOfTheRest) {
  ProgressText plain(0, 0, 0);
  EXPECT_EQ(plain.Step("workers, line", 1 * kSecondNs), "");
  EXPECT_EQ(plain.Step("workers, line", 6 * kSecondNs),
            "gpushare: 2 done, 6 s elapsed: workers, line\n");
  ProgressText live(0, 80, 0);
  EXPECT_EQ(live.Step("workers, line", 3 * kSecondNs), "\r\033[K1 done, 3 s  workers, line");
}

TEST(ProgressTest, QuietPrintsNothing) {
  ::testing::internal::CaptureStderr();
  {
    Progress quiet(2, true);
    quiet.Step("a");
    quiet.Step("b");
  }
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace gpushare::tool
