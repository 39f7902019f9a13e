// What an LC app's queries and its quiet time earn, and what late ones spend.

#include "src/core/evidence/tail_account.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace gpushare::core {
namespace {

constexpr int64_t kMs = 1'000'000;

class TailAccountTest : public ::testing::Test {
 protected:
  TailAccountTest() {
    promise.p99_bound = 1.05;
    promise.p99_alone_ns = 2 * kMs;
  }
  // `late_of_thousand` of a thousand queries are late, one every gap_ns.
  void Run(int queries, int late_of_thousand, bool met_credit = false, int64_t gap_ns = kMs) {
    for (int i = 0; i < queries; ++i) {
      now_ns += gap_ns;
      NoteArrival(account, now_ns);
      const bool late = i * late_of_thousand / 1000 != (i + 1) * late_of_thousand / 1000;
      NoteQuery(account, promise, solo_ns, late ? 3 * kMs : kMs, met_credit);
    }
  }

  Promise promise;
  int64_t solo_ns = 2 * kMs;  // a queue without a tail: its p99 is that of a query
  TailAccount account;
  TimeNs now_ns = 0;
};

TEST_F(TailAccountTest, EarnsWhatTheAppsOwnLateQueriesLeaveOfTheHundredth) {
  Run(100'000, 7);
  account.credit = 0;
  Run(1'000, 7);
  EXPECT_NEAR(account.credit, 1000 * (kTailShare - 0.007), 0.6);
}

// A lull shows no late query, and the stated p99 says that there will be.
TEST_F(TailAccountTest, ALullEarnsNoMoreThanTheStatedTailLeaves) {
  Run(100'000, 0);
  account.credit = 0;
  Run(1'000, 0);
  EXPECT_NEAR(account.credit, 1'000 * kTailShare, 0.01);
  solo_ns = kMs;
  account.credit = 0;
  Run(1'000, 0);
  EXPECT_NEAR(account.credit, 1'000 * (kTailShare - kLateOfP99 * std::pow(0.01, 0.1)), 0.01);
}

TEST_F(TailAccountTest, UnderAnotherLimitNeitherDebtNorLatenessOfBeforeCounts) {
  Run(100'000, 500, true);
  ASSERT_LT(account.credit, 0);
  account.aside = account.hit = 5;
  const double gap_ns = account.gap_ns;
  BeginAnew(account, now_ns);
  EXPECT_EQ(account.credit, 0);
  EXPECT_EQ(CreditAt(account, now_ns), 0) << "nothing is kept for a hit";
  EXPECT_EQ(account.gap_ns, gap_ns) << "the arrivals are what they were";
  EXPECT_FALSE(IsSilent(account, now_ns)) << "it holds BE work as before";
  Run(1'000, 0);
  EXPECT_NEAR(account.credit, 1'000 * kLateOfP99 / 2, 1'000 * kLateOfP99 / 2);
}

TEST_F(TailAccountTest, EarnsALittleWhereTheAppIsLateByItself) {
  Run(4'000, 50);
  EXPECT_NEAR(account.credit, 4'000 * kTailShareMin, 0.01);
  EXPECT_EQ(account.late_for_be, 0);
}

TEST_F(TailAccountTest, OnlyLateQueriesThatMetATaskOnCreditSpend) {
  Run(2'000, 2);
  const double before = account.credit;
  Run(100, 0, true);
  EXPECT_GT(account.credit, before);
  Run(10, 1'000, true);
  EXPECT_NEAR(account.credit, before - 10, 1.5);
  EXPECT_EQ(account.late_for_be, 10);
}

// So that credit and debt together keep the share of late queries.
TEST_F(TailAccountTest, ADebtIsKept) {
  Run(100, 1'000, true);
  EXPECT_LT(account.credit, -99);
}

TEST_F(TailAccountTest, WithoutAKnownP99EveryQueryThatMetTheTaskSpends) {
  promise.p99_alone_ns = 0;
  Run(1'000, 0);
  EXPECT_NEAR(account.credit, 1'000 * kTailShareUnknown, 0.01);
  Run(1, 0, true);
  EXPECT_LT(account.credit, 0.01);
}

TEST_F(TailAccountTest, TheDebtHasAFloor) {
  Run(5'000, 1'000, true);
  EXPECT_GE(account.credit, -kTailDebtMax);
  Run(1, 1'000, true);
  EXPECT_NEAR(account.credit, -kTailDebtMax, 1);
}

TEST_F(TailAccountTest, QuietTimeEarnsWhatItsQueriesWouldHave) {
  const auto pause_ns = static_cast<int64_t>(kLoadForgottenNs);
  Run(50'000, 5);
  account.credit = 0;
  const double arrive = 50'000.0 / 53.5;  // of 50,000 in 50 s and a silence of 3.5 s
  const double earned = kTailShare - 0.005;
  const double before = account.credit;
  CreditQuietTime(account, now_ns + pause_ns);
  EXPECT_EQ(account.credit, before) << "a pause of a load";
  CreditQuietTime(account, now_ns + pause_ns + 1'000 * kMs);
  EXPECT_NEAR(account.credit - before, arrive * earned, 0.5);
  const double once = account.credit;
  CreditQuietTime(account, now_ns + pause_ns + 1'000 * kMs);
  EXPECT_EQ(account.credit, once);
}

// Credit earned a query, spent as it is earned, in bursts with pauses.
TEST_F(TailAccountTest, BurstsEarnNoMoreThanASteadyLoad) {
  for (const int64_t pause_ns : {100 * kMs, 3'000 * kMs, 60'000 * kMs}) {
    for (const int burst : {1, 10, 1'000}) {
      for (const int64_t gap_ns : {int64_t{10'000}, kMs}) {
        account = TailAccount();
        account.late_share = 0;
        double earned = 0;
        const int bursts = 100'000 / burst;
        for (int i = 0; i < bursts; ++i) {
          Run(burst, 0, false, gap_ns);
          for (int look = 0; look < 20; ++look) {
            now_ns += pause_ns / 20;
            CreditQuietTime(account, now_ns);
          }
          earned += account.credit;
          account.credit = 0;
        }
        EXPECT_LE(earned / (bursts * burst), 0.0095)
            << "pause " << pause_ns << ", burst " << burst << ", gap " << gap_ns;
      }
    }
  }
}

// A hit delays no more queries than come between two pauses.
TEST_F(TailAccountTest, TwoQueriesAtOnceShowNoHighRate) {
  Run(2, 0, false, 1'000);
  const TimeNs later_ns = now_ns + 10'000 * kMs;
  const double before = account.credit;
  CreditQuietTime(account, later_ns);
  EXPECT_LE(account.credit - before, 2 * kTailShare * 10'000 * kMs / kLoadForgottenNs);
  EXPECT_LE(QuietRiskOf(account, kMs, later_ns).Late(50 * kMs), 2);
}

// Queries of 1 ms: 40 of them in 100 ms, then a silence of 20 s, again and again. The queries of a
// pause that met no BE work are on time.
class QuietTimeTest : public TailAccountTest {
 protected:
  static constexpr int kBurst = 40;
  static constexpr int64_t kSilenceNs = 20'000 * kMs;
  static constexpr int64_t kTaskNs = 20 * kMs;

  // Whether a task may start, and if so it does.
  bool Start(int64_t task_ns) {
    CreditQuietTime(account, now_ns);
    const double need = TailNeedPerNs(account, 0, kMs, now_ns) * static_cast<double>(task_ns);
    if (CreditAt(account, now_ns) < need) return false;
    PutAside(account, task_ns, kMs, now_ns);
    return true;
  }
  // Tasks as the account lets them start until the silence is over. Returns their share of it.
  double Silence(int64_t ns, int64_t task_ns) {
    const TimeNs end_ns = now_ns + ns;
    int64_t busy_ns = 0;
    hit = false;
    while (now_ns < end_ns) {
      hit = Start(task_ns);
      now_ns += hit ? task_ns : 10 * kMs;
      busy_ns += hit ? task_ns : 0;
      hit = hit && now_ns > end_ns;
    }
    now_ns = end_ns;
    return static_cast<double>(busy_ns) / static_cast<double>(ns);
  }
  // The mean share of the silences. `late`: queries of a burst that a hit makes late.
  double Bursts(int bursts, int late) {
    double share = 0;
    for (int b = 0; b < bursts; ++b) {
      const int late_now = hit ? late : 0;
      Run(late_now, 1'000, true, 2'500'000);
      Run(kBurst - late_now, 0, hit, 2'500'000);
      late_queries += late_now;
      share += Silence(silence_ns + static_cast<int64_t>(random() % 1'000) * kMs, kTaskNs) / bursts;
    }
    return share;
  }

  std::mt19937_64 random{7};
  int64_t silence_ns = kSilenceNs;
  bool hit = false;
  int late_queries = 0;
};

// A burst comes after 21 to 22 s: BE work has most of that, and is gone by then.
TEST_F(QuietTimeTest, BeHasMostOfPausesOfTheSameLengthAndMakesNoneLate) {
  silence_ns += 1'000 * kMs;
  Bursts(100, 30);
  late_queries = 0;
  EXPECT_GE(Bursts(200, 30), 0.6);
  EXPECT_EQ(late_queries, 0);
}

TEST_F(QuietTimeTest, WhereAPauseIsLikelyToEndCreditIsKept) {
  Bursts(50, 0);
  account.credit = kTailCreditMax;
  account.late_delay_ns = 2 * kMs;
  const TimeNs began_ns = account.arrival_ns;
  EXPECT_TRUE(IsCheapTime(account, began_ns + 15'000 * kMs));
  EXPECT_FALSE(IsCheapTime(account, began_ns + 20'500 * kMs));
  EXPECT_TRUE(IsCheapTime(account, began_ns + 60'000 * kMs)) << "no pause was that old";
  now_ns = began_ns + 20'500 * kMs;
  EXPECT_LT(CreditAt(account, now_ns), kTailCreditMax);
  EXPECT_FALSE(Start(kTaskNs)) << "a full account buys no likely hit";
  EXPECT_TRUE(Start(2 * kMs)) << "that makes none late";
  now_ns = began_ns + 60'000 * kMs;
  EXPECT_TRUE(Start(kTaskNs));
}

TEST_F(QuietTimeTest, OfALoadThatReturnedTheLargestCountsAtFirst) {
  Bursts(2, 0);
  Run(100, 0);
  EXPECT_EQ(TailNeedPerNs(account, 0.1, kMs, now_ns), DelayedPerNs(account, kQueueLoadMax));
  Run(3'000, 0);
  EXPECT_EQ(TailNeedPerNs(account, 0.1, kMs, now_ns), DelayedPerNs(account, 0.1));
}

// The share of the silence in which a start at random makes kTailShare of the queries late.
TEST_F(QuietTimeTest, BeHasTheShareOfAPauseThatItsLateQueriesLeave) {
  for (const int late : {5, 10, 30}) {
    account = TailAccount();
    late_queries = 0;
    constexpr int kBursts = 3'000;
    const double share = Bursts(kBursts, late);
    const double best = kTailShare * kBurst / late;
    EXPECT_GE(share, 0.8 * best) << late << " late queries a hit";
    EXPECT_LE(late_queries, kTailShare * kBursts * kBurst + kTailCreditMax) << late;
  }
}

TEST_F(QuietTimeTest, AHitThatMakesLessThanAHundredthLateCostsNoTime) {
  Run(50'000, 0);
  account.credit = 0;
  now_ns += static_cast<int64_t>(kLoadForgottenNs);
  EXPECT_GE(Silence(kSilenceNs, kMs), 0.9);
}

TEST_F(QuietTimeTest, ADebtIsRepaidWithinSecondsOnceTheLoadHasEnded) {
  for (const int queries : {2, 6, 12, 30, 100}) {
    account = TailAccount();
    Run(queries - 1, 0, false, 20 * kMs);
    Run(1, 1'000, true, 20 * kMs);
    ASSERT_LT(account.credit, 0);
    const TimeNs silent_ns = now_ns;
    while (!Start(5 * kMs) && now_ns < silent_ns + 3'600'000 * kMs) now_ns += 10 * kMs;
    EXPECT_LT(now_ns - silent_ns, 60'000 * kMs) << queries << " queries";
  }
}

TEST_F(QuietTimeTest, PausesOfALoadDoNotForgiveADebt) {
  Bursts(10, 0);
  account.credit = -30;
  account.advance = 0;
  Bursts(10, 0);
  EXPECT_LT(account.credit, -30 + 20 * kBurst * kTailShare);
}

TEST_F(QuietTimeTest, LateQueriesSpendWhatWasPutAsideFirst) {
  Bursts(100, 0);
  account.credit = 10;
  account.aside = 4;
  Run(3, 1'000, true);
  EXPECT_NEAR(account.aside, 1, 1e-9);
  EXPECT_NEAR(account.credit, 7, 0.1);
}

// In a pause it buys more BE work.
TEST_F(QuietTimeTest, BesideALoadTheCreditOfAHitIsKept) {
  Run(100, 0);
  account.credit = 50;
  EXPECT_EQ(CreditAt(account, now_ns), 50);
  const TimeNs quiet_ns = now_ns + kSilenceNs;
  PutAside(account, kTaskNs, kMs, quiet_ns);
  EXPECT_EQ(CreditAt(account, quiet_ns), 50);
  EXPECT_LT(account.aside, account.hit);
  EXPECT_EQ(CreditAt(account, now_ns), 50 - std::min(account.hit, kTailCreditMax - 1));
}

// A hit may need more than any account has. Beside a load without pauses that would hold BE work
// for ever.
TEST_F(TailAccountTest, AFullAccountPaysForOneQueryWhateverAHitNeeds) {
  account.credit = kTailCreditMax;
  account.hit = 2 * kTailCreditMax;
  NoteArrival(account, now_ns);
  EXPECT_FALSE(IsQuiet(account, now_ns));
  EXPECT_EQ(CreditAt(account, now_ns), 1);
}

TEST_F(QuietTimeTest, APauseIsNoGapOfTheLoad) {
  Run(100, 0);
  now_ns += kSilenceNs;
  Run(1, 0);
  EXPECT_NEAR(GapNs(account), kMs, 1);
  Run(10, 0, false, kMs / 4);
  EXPECT_NEAR(GapNs(account), kMs / 4, 1) << "the load that returned";
  EXPECT_EQ(account.pauses, 1);
}

TEST_F(TailAccountTest, RandomArrivalsEarnNothingBetweenThem) {
  std::mt19937_64 random(5);
  std::exponential_distribution<double> gap(1e-6);
  double quiet = 0;
  for (int i = 0; i < 20'000; ++i) {
    now_ns += static_cast<int64_t>(gap(random));
    const double before = account.credit;
    CreditQuietTime(account, now_ns);
    quiet += account.credit - before;
    NoteArrival(account, now_ns);
    NoteQuery(account, promise, solo_ns, kMs, false);
  }
  EXPECT_LT(quiet, 0.1);
}

TEST_F(TailAccountTest, CreditEndsAtItsCap) {
  Run(1'000, 0);
  account.credit = kTailCreditMax - 1;
  CreditQuietTime(account, now_ns + 1'000'000 * kMs);
  EXPECT_EQ(account.credit, kTailCreditMax);
}

// 0.5 queries a millisecond at load 0.5: 5 ms delay the 2.5 that arrive in it, and as many again.
TEST_F(TailAccountTest, ATaskNeedsCreditForWhatArrivesUntilTheQueueIsEmpty) {
  Run(1'000, 0, false, 2 * kMs);
  EXPECT_NEAR(TailNeedPerNs(account, 0.5, kMs, now_ns) * 5 * kMs, 5, 0.01);
  EXPECT_LE(TailNeedPerNs(account, 3, kMs, now_ns) * 5 * kMs, 26);
}

TEST_F(TailAccountTest, AnAppIsSilentUntilItsFirstQueryHasEnded) {
  EXPECT_FALSE(IsSilent(account, 10 * kMs)) << "it was only just created";
  EXPECT_TRUE(IsSilent(account, 100 * kMs));
  NoteArrival(account, 10 * kMs);
  EXPECT_TRUE(IsSilent(account, 20 * kMs)) << "the query may wait for BE work";
  NoteQuery(account, promise, solo_ns, kMs, false);
  EXPECT_FALSE(IsSilent(account, 10'000 * kMs));
}

}  // namespace
}  // namespace gpushare::core
