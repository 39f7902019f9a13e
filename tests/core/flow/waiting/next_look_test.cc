// When the thread looks at the device: not long before a known end, without a pause around it, and
// never later than the bounds that next_look.h states, however wrong the prediction is.

#include "src/core/flow/waiting/next_look.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "src/core/base/tuning.h"

namespace gpushare::core {
namespace {

constexpr int64_t kUs = 1000;
constexpr int64_t kMs = 1000 * kUs;
constexpr int64_t kWakeNs = 50 * kUs;

ExpectedEnd Lc(int64_t duration_ns) {
  return {.start_ns = 0,
          .end_ns = duration_ns,
          .error_ns = duration_ns / 100,
          .known = true,
          .urgent = true};
}
ExpectedEnd Be(int64_t duration_ns) {
  ExpectedEnd be = Lc(duration_ns);
  be.urgent = false;
  return be;
}

// How late the end of a launch that really takes `actual_ns` is found, if each sleep ends on time,
// and how many looks follow a sleep.
struct Found {
  int64_t late_ns = 0;
  int sleeps = 0;
};
Found Find(const ExpectedEnd& expected, int64_t actual_ns) {
  Found found;
  TimeNs now_ns = 0;
  while (now_ns < actual_ns) {
    const TimeNs look_ns = LookAt(expected, now_ns, kWakeNs);
    if (look_ns > now_ns) ++found.sleeps;
    now_ns = std::max(look_ns, now_ns + kUs);  // a look takes a microsecond
  }
  found.late_ns = now_ns - actual_ns;
  return found;
}

TEST(NextLookTest, AQueryThatEndsAsPredictedIsFoundByASpin) {
  const ExpectedEnd query = Lc(700 * kUs);
  EXPECT_EQ(LookAt(query, 0, kWakeNs), 700 * kUs - 262'500 - 14 * kUs);
  EXPECT_EQ(LookAt(query, 690 * kUs, kWakeNs), 690 * kUs);
  for (const int64_t actual_ns : {660 * kUs, 700 * kUs, 740 * kUs, 890 * kUs}) {
    const Found found = Find(query, actual_ns);
    EXPECT_LE(found.late_ns, kUs) << actual_ns;
    EXPECT_EQ(found.sleeps, 1) << actual_ns;
  }
}

TEST(NextLookTest, TheSpinBeforeTheEndOfAQueryHasBounds) {
  // A sleep that ends late is slept less.
  EXPECT_EQ(LookAt(Lc(700 * kUs), 0, 300 * kUs), 700 * kUs - 300 * kUs - 14 * kUs);
  EXPECT_EQ(LookAt(Lc(700 * kUs), 0, kMs), 350 * kUs);
  // A long query is not spun on for a share of it. The thread looks every kLcLookNsMax before that.
  EXPECT_EQ(LookAt(Lc(10 * kMs), 8'500 * kUs, kWakeNs), 10 * kMs - kMs - 200 * kUs);
}

TEST(NextLookTest, AQueryThatEndsEarlyIsFoundBeforeItsPredictedEnd) {
  for (const int64_t actual_ns : {10 * kUs, 300 * kUs, 600 * kUs}) {
    EXPECT_LE(actual_ns + Find(Lc(700 * kUs), actual_ns).late_ns, 700 * kUs) << actual_ns;
  }
  // And within the longest sleep, where it was predicted to take much longer.
  EXPECT_LE(Find(Lc(500 * kMs), 10 * kMs).late_ns, kLcLookNsMax);
  EXPECT_LE(Find(Be(500 * kMs), 25 * kMs).late_ns, kBeLookNsMax);
}

TEST(NextLookTest, AnEndThatIsOverdueIsFoundWithinAShareOfTheTime) {
  for (const int64_t actual_ns : {2 * kMs, 5 * kMs, 100 * kMs, 1000 * kMs}) {
    EXPECT_LE(Find(Lc(700 * kUs), actual_ns).late_ns, actual_ns / kLcLookShare + kNapNsMin);
    EXPECT_LE(Find(Be(700 * kUs), actual_ns).late_ns, actual_ns / kBeLookShare + kNapNsMin);
  }
  // The share of a long time is long, so the loss of the device has a bound of its own.
  EXPECT_LE(LookAt(Be(kMs), 10'000 * kMs, kWakeNs), 10'000 * kMs + kBeLookNsMax);
}

TEST(NextLookTest, AGuessIsNotSleptOn) {
  ExpectedEnd guess = Lc(500 * kMs);
  guess.known = false;
  EXPECT_LE(Find(guess, 300 * kUs).late_ns, kUs);
  EXPECT_LE(Find(guess, 20 * kMs).late_ns, 20 * kMs / kLcLookShare + kNapNsMin);
  guess.urgent = false;
  EXPECT_LE(Find(guess, 300 * kUs).late_ns, kNapNsMin);
}

TEST(NextLookTest, BeWorkIsSpunOnForASmallShareOnly) {
  const ExpectedEnd be = Be(5 * kMs);
  EXPECT_EQ(LookAt(be, 0, kWakeNs), 5 * kMs - std::min(kWakeNs + 100 * kUs, 5 * kMs / 32));
  EXPECT_EQ(LookAt(be, 5 * kMs + 100 * kUs, kWakeNs), 5 * kMs + 100 * kUs);
  EXPECT_GE(LookAt(be, 5 * kMs + 200 * kUs, kWakeNs), 5 * kMs + 500 * kUs);
  EXPECT_LE(Find(be, 5 * kMs + 100 * kUs).late_ns, kUs);
}

}  // namespace
}  // namespace gpushare::core
