// The vacation account by itself, and as the only limit of launches beside simulated queues.

#include "src/core/evidence/vacation_account.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "src/core/base/types.h"
#include "src/core/queueing/vacation.h"
#include "tests/core/md1_queue.h"

namespace gpushare::core {
namespace {

constexpr int64_t kUs = 1'000;
constexpr int64_t kMs = 1'000'000;
constexpr double kRate = 1.0 / kMs;

VacationAccount Saving(int64_t shift_ns) {
  VacationAccount account;
  FollowTail(account, kRate, shift_ns);
  return account;
}

TEST(VacationAccount, LaunchesWithinTheBudgetThatFillAllIdleTimeLeaveItAsItIs) {
  constexpr int64_t kShiftNs = 100 * kUs;
  VacationAccount account = Saving(kShiftNs);
  const int64_t longest_ns = LongestVacation(kShiftNs, kRate);
  SaveIdleTime(account, 0, 10 * kMs);
  const double saved_ns = account.saved_ns;
  for (TimeNs now_ns = 10 * kMs; now_ns < 20 * kMs; now_ns += longest_ns) {
    TakeVacation(account, 0, longest_ns, longest_ns);
    SaveIdleTime(account, 0, now_ns + longest_ns);
  }
  EXPECT_NEAR(account.saved_ns, saved_ns, 10);
}

TEST(VacationAccount, ALongLaunchWaitsUntilEnoughIsSaved) {
  VacationAccount account = Saving(100 * kUs);
  EXPECT_EQ(LongestOf(account), 0);
  TimeNs now_ns = 0;
  while (LongestOf(account) < 900 * kUs) SaveIdleTime(account, 0, now_ns += 10 * kUs);
  // (e^0.9 - 1.9) over e^0.1 - 1.
  EXPECT_NEAR(static_cast<double>(now_ns), 5.32 * kMs, 0.1 * kMs);
  TakeVacation(account, 0, 900 * kUs, 900 * kUs);
  EXPECT_LT(LongestOf(account), 50 * kUs);
}

TEST(VacationAccount, ARegionPaysByItsLengthForWhatAQueryMayMeetInIt) {
  VacationAccount region = Saving(100 * kUs);
  SaveIdleTime(region, 0, 10 * kMs);
  VacationAccount launches = region;
  TakeVacation(region, 0, 200 * kUs, 1000 * kUs);
  for (int i = 0; i < 5; ++i) TakeVacation(launches, 0, 200 * kUs, 200 * kUs);
  EXPECT_NEAR(region.saved_ns, launches.saved_ns, 1);
}

TEST(VacationAccount, WorkThatLeavesWithinTheShiftCostsWhatItsTimeSaves) {
  VacationAccount account = Saving(100 * kUs);
  SaveIdleTime(account, 0, 10 * kMs);
  const double saved_ns = account.saved_ns;
  SaveIdleTime(account, 0, 20 * kMs);
  TakeVacation(account, 100 * kUs, 0, 10 * kMs);
  EXPECT_NEAR(account.saved_ns, saved_ns, 1);
  TakeVacation(account, 20 * kUs, 0, 10 * kMs);
  EXPECT_GT(account.saved_ns, 0.7 * saved_ns);
}

TEST(VacationAccount, KeepsWhatABoundedTimeSaves) {
  VacationAccount account = Saving(100 * kUs);
  SaveIdleTime(account, 0, 3600'000 * kMs);
  EXPECT_DOUBLE_EQ(account.saved_ns, account.saves * kVacationSavedNs);
  const int64_t longest_ns = LongestOf(account);
  EXPECT_LT(longest_ns, 10 * kMs);
  for (int i = 0; i < 1000; ++i) TakeVacation(account, 0, longest_ns, longest_ns);
  EXPECT_DOUBLE_EQ(account.saved_ns, -account.saves * kVacationSavedNs);
}

TEST(VacationAccount, KeepsWhatItHasWhileTheTailIsUnknown) {
  VacationAccount account = Saving(100 * kUs);
  SaveIdleTime(account, 0, 10 * kMs);
  const double saved_ns = account.saved_ns;
  FollowTail(account, 0, 100 * kUs);
  EXPECT_EQ(LongestOf(account), 0);
  SaveIdleTime(account, 0, 20 * kMs);
  TakeVacation(account, 0, 300 * kUs, 300 * kUs);
  FollowTail(account, kRate, 100 * kUs);
  EXPECT_EQ(account.saved_ns, saved_ns);
  EXPECT_GT(LongestOf(account), 0);
}

TEST(VacationAccount, CountsIdleTimeOnce) {
  VacationAccount account = Saving(100 * kUs);
  SaveIdleTime(account, 2 * kMs, 4 * kMs);
  const double saved_ns = account.saved_ns;
  SaveIdleTime(account, 2 * kMs, 4 * kMs);
  EXPECT_EQ(account.saved_ns, saved_ns);
  SaveIdleTime(account, 5 * kMs, 7 * kMs);
  EXPECT_DOUBLE_EQ(account.saved_ns, 2 * saved_ns);
}

// An M/D/1 queue. While it is empty, launches of drawn lengths run as soon as the account has saved
// for the next one.
struct Served {
  double p99_ns;
  double be_share;  // of the idle time without launches
};
Served Serve(double load, int64_t shift_ns, const std::vector<int64_t>& lengths_ns) {
  constexpr double kServiceNs = kMs;
  constexpr int kQueries = 60'000;
  std::mt19937_64 random(11);
  std::exponential_distribution<double> gap(load / kServiceNs);
  std::uniform_int_distribution<size_t> pick(0, std::max<size_t>(lengths_ns.size(), 1) - 1);
  VacationAccount account;
  FollowTail(account, TailRateOverService(load) / kServiceNs, shift_ns);
  std::vector<double> latencies;
  double arrival = 0;
  double free_at = 0;  // of queries and of launches
  double be_ns = 0;
  int64_t next_ns = lengths_ns.empty() ? kNever : lengths_ns[pick(random)];
  for (int i = 0; i < kQueries; ++i) {
    arrival += gap(random);
    while (free_at < arrival) {
      const auto idle_ns = static_cast<TimeNs>(free_at);
      if (LongestOf(account) >= next_ns) {
        TakeVacation(account, 0, next_ns, next_ns);
        free_at += static_cast<double>(next_ns);
        be_ns += static_cast<double>(next_ns);
        next_ns = lengths_ns[pick(random)];
      } else {
        free_at += 100e3;
        if (free_at >= arrival) free_at = arrival;
      }
      SaveIdleTime(account, idle_ns, static_cast<TimeNs>(std::min(free_at, arrival)));
    }
    free_at = std::max(free_at, arrival) + kServiceNs;
    latencies.push_back(free_at - arrival);
  }
  const auto at = latencies.begin() + kQueries * 99 / 100;
  std::nth_element(latencies.begin(), at, latencies.end());
  return {*at, be_ns / (arrival * (1 - load))};
}

TEST(VacationAccount, KeepsTheP99OfAQueueWithinTheShift) {
  for (const double load : {0.3, 0.6}) {
    const double alone_ns = Serve(load, 0, {}).p99_ns;
    const auto shift_ns = static_cast<int64_t>(0.05 * alone_ns);
    const int64_t longest_ns =
        LongestVacation(shift_ns, TailRateOverService(load) / static_cast<double>(kMs));
    for (const double longer : {1.5, 3.0, 6.0}) {
      const auto length_ns = static_cast<int64_t>(longer * static_cast<double>(longest_ns));
      const Served beside = Serve(load, shift_ns, {longest_ns / 10, longest_ns / 3, length_ns});
      EXPECT_LE(beside.p99_ns, alone_ns + 1.2 * static_cast<double>(shift_ns))
          << "load " << load << ", " << longer;
      EXPECT_GT(beside.be_share, longer > 4   ? 0.03
                                 : longer > 2 ? 0.2
                                              : 0.5)
          << "load " << load << ", " << longer;
    }
  }
}

}  // namespace
}  // namespace gpushare::core
