// Headroom: worked examples, and random queries against the sums as printed.

#include "src/core/queueing/headroom.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "absl/types/span.h"
#include "src/core/seams/snapshot.h"

namespace gpushare::core {
namespace {

constexpr int64_t kMs = 1'000'000;

std::vector<int64_t> Headrooms(std::vector<QueryView> queries, int64_t queued_ns, TimeNs now_ns) {
  ComputeHeadrooms(absl::MakeSpan(queries), queued_ns, now_ns);
  std::vector<int64_t> headrooms;
  headrooms.reserve(queries.size());
  for (const QueryView& query : queries) headrooms.push_back(query.headroom_ns);
  return headrooms;
}

QueryView Query(TimeNs arrival, int64_t target, int64_t solo, int64_t issued = 0,
                int64_t done = 0) {
  QueryView query;
  query.arrival_ns = arrival;
  query.deadline_ns = arrival + target;
  query.solo_ns = solo;
  query.issued_ns = issued;
  query.done_ns = done;
  return query;
}

// Baymax 5.2.2: T_hr = T_tgt - T_self - T_q when the first kernel of Q is launched.
TEST(Headroom, OneQueryAtItsArrivalIsBaymaxSection522) {
  EXPECT_EQ(Headrooms({Query(0, 150 * kMs, 40 * kMs)}, 30 * kMs, 0),
            std::vector<int64_t>{80 * kMs});
}

// Baymax eq. 3: the second query also waits for what the first still needs.
TEST(Headroom, EarlierQueriesRemainingIsSubtractedFromLaterOnes) {
  const std::vector<QueryView> queries = {Query(0, 150 * kMs, 40 * kMs, 0, 10 * kMs),
                                          Query(20 * kMs, 150 * kMs, 50 * kMs)};
  // now = 20 ms, T_q = 5 ms. First: 150 - 20 - 5 - (40 - 10) = 95; second: 150 - 5 - 50 - 30 = 65.
  EXPECT_EQ(Headrooms(queries, 5 * kMs, 20 * kMs), (std::vector<int64_t>{95 * kMs, 65 * kMs}));
}

// The correction to eq. 3-4: with its kernels on the device, T_q has their duration already.
TEST(Headroom, AnIssuedKernelIsNotCountedTwice) {
  // One query of 40 ms, all issued; T_q is exactly that. It needs 40 ms of its 100, not 80.
  EXPECT_EQ(Headrooms({Query(0, 100 * kMs, 40 * kMs, 40 * kMs)}, 40 * kMs, 0),
            std::vector<int64_t>{60 * kMs});
  // The later query waits for those 40 ms once as well.
  EXPECT_EQ(Headrooms({Query(0, 100 * kMs, 40 * kMs, 40 * kMs), Query(0, 100 * kMs, 10 * kMs)},
                      40 * kMs, 0),
            (std::vector<int64_t>{60 * kMs, 50 * kMs}));
}

// Baymax eq. 4: three of five kernels of 10 ms are done. Run serially they took 30 ms; beside other
// work 20 ms of real time: the 10 ms that were saved are headroom again (B7).
TEST(Headroom, TimeSavedByConcurrentExecutionIsRefilled) {
  const QueryView query = Query(0, 150 * kMs, 50 * kMs, 0, 30 * kMs);
  const int64_t serial = Headrooms({query}, 0, 30 * kMs)[0];
  const int64_t concurrent = Headrooms({query}, 0, 20 * kMs)[0];
  EXPECT_EQ(serial, 100 * kMs);
  EXPECT_EQ(concurrent, 110 * kMs);
}

TEST(Headroom, WithNothingSavedItStaysWhileTheQueryRuns) {
  // Each millisecond that passes is a millisecond done: eq. 4 equals eq. 3.
  for (int64_t done = 0; done <= 50; done += 10) {
    EXPECT_EQ(Headrooms({Query(0, 150 * kMs, 50 * kMs, 0, done * kMs)}, 0, done * kMs)[0],
              100 * kMs);
  }
}

TEST(Headroom, AQueryThatOverranItsPredictionNeedsNothingMoreNotLess) {
  const std::vector<QueryView> queries = {Query(0, 100 * kMs, 40 * kMs, 0, 70 * kMs),
                                          Query(0, 100 * kMs, 10 * kMs)};
  // Counting -30 ms for the first would give the second 30 ms that do not exist.
  EXPECT_EQ(Headrooms(queries, 0, 75 * kMs), (std::vector<int64_t>{25 * kMs, 15 * kMs}));
}

TEST(Headroom, AQueryWithoutTargetHasNoBoundButStillDelaysOthers) {
  QueryView no_target = Query(0, 0, 40 * kMs);
  no_target.deadline_ns = kNever;
  EXPECT_EQ(Headrooms({no_target, Query(0, 100 * kMs, 10 * kMs)}, 0, 0),
            (std::vector<int64_t>{kNever, 50 * kMs}));
}

TEST(Headroom, ALateQueryIsNegative) {
  EXPECT_EQ(Headrooms({Query(0, 10 * kMs, 8 * kMs)}, 0, 5 * kMs)[0], -3 * kMs);
}

TEST(Headroom, TheLeastIsOfAllQueriesAndNeverOfNone) {
  std::vector<QueryView> queries = {Query(0, 150 * kMs, 40 * kMs, 0, 10 * kMs),
                                    Query(20 * kMs, 150 * kMs, 50 * kMs),
                                    Query(20 * kMs, 300 * kMs, 10 * kMs)};
  ComputeHeadrooms(absl::MakeSpan(queries), 5 * kMs, 20 * kMs);
  EXPECT_EQ(LeastHeadroom(queries), 65 * kMs) << "neither the first nor the last";
  EXPECT_EQ(LeastHeadroom(std::vector<QueryView>()), kNever);
}

// Tacker eq. 9, T_queue and T_lc_i disjoint: the headroom of the query that arrived last.
TEST(Headroom, OfTheLastArrivedQueryIsTackersWithIssuedTimeCountedOnce) {
  // Q1 has 20 ms left, 5 of them on the device. Q2 arrives now and needs 15. T_queue is 5, and 3 of
  // BE.
  const std::vector<QueryView> queries = {Query(0, 50 * kMs, 30 * kMs, 5 * kMs, 10 * kMs),
                                          Query(12 * kMs, 50 * kMs, 15 * kMs)};
  EXPECT_EQ(Headrooms(queries, 8 * kMs, 12 * kMs).back(), (50 - 8 - 15 - 15) * kMs);
}

// Baymax 6.1-6.2: 12,160 and 3,150 MB/s give N_tr = 2.
TEST(ConcurrentCopies, IsTwoOnThePapersPlatform) {
  EXPECT_EQ(ConcurrentCopies(12160, 3150), 2);
  EXPECT_EQ(ConcurrentCopies(55.5, 10.0), 4) << "measured H200 rates";
}

TEST(ConcurrentCopies, NeverStopsBeCopiesForEver) {
  EXPECT_EQ(ConcurrentCopies(12160, 11883), 1) << "eq. 5 alone says 0 for pinned copies";
  EXPECT_EQ(ConcurrentCopies(0, 10), 1);
  EXPECT_EQ(ConcurrentCopies(10, 0), 1);
  EXPECT_EQ(ConcurrentCopies(std::nan(""), 10), 1);
  EXPECT_EQ(ConcurrentCopies(10, std::nan("")), 1);
  EXPECT_EQ(ConcurrentCopies(std::numeric_limits<double>::infinity(), 10), 1);
  EXPECT_EQ(ConcurrentCopies(1e300, 1e-300), kMaxTasks);
}

TEST(Headroom, ExtremeInputsSaturate) {
  const QueryView huge = Query(0, 10, kNever - 1);
  const auto headrooms = Headrooms({huge, huge, huge}, kNever - 1, kNever - 1);
  for (int64_t headroom : headrooms) EXPECT_LT(headroom, 0);
  EXPECT_TRUE(std::is_sorted(headrooms.rbegin(), headrooms.rend()));
}

__extension__ using Wide = __int128;  // no sum of the test overflows

// The equations as printed, corrected, in 128-bit arithmetic and O(n^2).
RC_GTEST_PROP(HeadroomProperty, AgreesWithTheEquationsTermByTerm, ()) {
  const auto count = static_cast<size_t>(*rc::gen::inRange(0, kMaxActiveQueries + 1));
  const auto duration = rc::gen::inRange<int64_t>(0, kMaxDurationNs);
  std::vector<QueryView> queries;
  TimeNs arrival = 0;
  for (size_t i = 0; i < count; ++i) {
    arrival += *rc::gen::inRange<int64_t>(0, 100 * kMs);
    QueryView query;
    query.arrival_ns = arrival;
    query.deadline_ns = *rc::gen::arbitrary<bool>() ? arrival + *duration : kNever;
    query.solo_ns = *duration;
    query.issued_ns = *duration;
    query.done_ns = *duration;
    queries.push_back(query);
  }
  const int64_t queued = *duration;
  const TimeNs now = arrival + *duration;
  const auto headrooms = Headrooms(queries, queued, now);
  for (size_t i = 0; i < count; ++i) {
    if (queries[i].deadline_ns == kNever) {
      RC_ASSERT(headrooms[i] == kNever);
      continue;
    }
    const auto target = static_cast<Wide>(queries[i].deadline_ns - queries[i].arrival_ns);
    const auto used = static_cast<Wide>(now - queries[i].arrival_ns);
    Wide headroom = target - used - queued;
    for (size_t k = 0; k <= i; ++k) {
      const Wide left =
          static_cast<Wide>(queries[k].solo_ns) - queries[k].done_ns - queries[k].issued_ns;
      if (left > 0) headroom -= left;
    }
    RC_ASSERT(static_cast<Wide>(headrooms[i]) == headroom);
  }
}

// A BE task that fits every headroom makes nobody late: the sum that the equations promise.
RC_GTEST_PROP(HeadroomProperty, ABeTaskThatFitsLeavesEveryQueryOnTime, ()) {
  const auto count = static_cast<size_t>(*rc::gen::inRange(1, 20));
  std::vector<QueryView> queries;
  TimeNs arrival = 0;
  for (size_t i = 0; i < count; ++i) {
    arrival += *rc::gen::inRange<int64_t>(0, 1000);
    const int64_t solo = *rc::gen::inRange<int64_t>(1, 1000);
    queries.push_back(Query(arrival, *rc::gen::inRange<int64_t>(1, 30000), solo));
  }
  const TimeNs now = arrival;
  const int64_t queued = *rc::gen::inRange<int64_t>(0, 1000);
  ComputeHeadrooms(absl::MakeSpan(queries), queued, now);
  const int64_t least = LeastHeadroom(queries);
  RC_PRE(least >= 0);
  // A serial device: what is queued, the BE task, then the queries in order of arrival.
  const auto meets_all = [&](int64_t be_ns) {
    TimeNs time = now + queued + be_ns;
    bool all = true;
    for (const QueryView& query : queries) {
      time += query.solo_ns;
      all = all && time <= query.deadline_ns;
    }
    return all;
  };
  RC_ASSERT(meets_all(least));
  RC_ASSERT(!meets_all(least + 1));
}

}  // namespace
}  // namespace gpushare::core
