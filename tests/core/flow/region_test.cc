// Which regions may begin: the bound that they declare, and what of LC work stands against it.

#include "src/core/flow/entry/region.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/base/limits.h"
#include "src/core/flow/scheduler.h"
#include "src/core/policies/registry.h"
#include "src/core/state/shared/region_room.h"
#include "tests/core/forwarding_device.h"
#include "tests/core/plan_with.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

class RegionTest : public SimulatedSchedulerTest {
 protected:
  std::unique_ptr<Device> Wrap(std::unique_ptr<Device> device) override {
    device_ = device.get();
    return device;
  }
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartScheduler(*MakePolicy("adaptive")));
    be_ = AddQueue(AppClass::kBestEffort, "train");
  }
  // An LC app without a load, that allows BE work to delay its queries by so much.
  QueueId AddLc(const char* name, int64_t target_ns, int64_t solo_ns) {
    AppOptions options;
    options.name = name;
    options.app_class = AppClass::kLatencyCritical;
    options.promise.target_ns = target_ns;
    options.solo_ns = solo_ns;
    return AddQueue(options);
  }
  // OK, or why a region of the BE queue may not begin.
  absl::StatusCode Begin(int64_t bound_ns) {
    scheduler_->Tick();
    const auto region = scheduler_->RegionBegin(be_, bound_ns, nullptr);
    if (!region.ok()) return region.status().code();
    EXPECT_TRUE(scheduler_->RegionEnd(*region).ok());
    EXPECT_TRUE(scheduler_->Wait(*region, kNever).ok());
    EXPECT_EQ(scheduler_->Record(*region)->verdict, Verdict::kOk);
    return absl::StatusCode::kOk;
  }

  QueueId be_;
  Device* device_ = nullptr;
};

TEST_F(RegionTest, ADeclaredBoundLiesBetweenOneNanosecondAndTheLongestDuration) {
  EXPECT_EQ(Begin(1), absl::StatusCode::kOk);
  EXPECT_EQ(Begin(kMaxDurationNs), absl::StatusCode::kOk);
  EXPECT_EQ(Begin(-1), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Begin(kMaxDurationNs + 1), absl::StatusCode::kInvalidArgument);
}

TEST_F(RegionTest, ABeRegionFitsTheLeastBlockingBudget) {
  AddLc("patient", 50 * kMs, 10 * kMs);
  AddLc("urgent", 15 * kMs, 10 * kMs);
  int64_t least = 0;
  int64_t most = 50 * kMs;
  while (least < most) {
    const int64_t middle = least + (most - least + 1) / 2;
    if (Begin(middle) == absl::StatusCode::kOk) {
      least = middle;
    } else {
      most = middle - 1;
    }
  }
  EXPECT_GT(least, 0);
  EXPECT_LE(least, 5 * kMs) << "the urgent app's target leaves no more";
  EXPECT_EQ(Begin(least + 1), absl::StatusCode::kUnavailable);
}

TEST_F(RegionTest, NoBeRegionBeginsWhileAQueryIsActive) {
  const QueueId lc = AddLc("service", 50 * kMs, 10 * kMs);
  EXPECT_EQ(Begin(kMs), absl::StatusCode::kOk);
  const QueryId query = *scheduler_->BeginQuery(lc, 0);
  EXPECT_EQ(Begin(1), absl::StatusCode::kUnavailable) << "it has no task on the device yet";
  ASSERT_TRUE(scheduler_->EndQuery(query).ok());
  EXPECT_EQ(Begin(kMs), absl::StatusCode::kOk);
}

TEST_F(RegionTest, ABeRegionNeedsAnEmptyQueue) {
  TaskSpec task;
  task.queue = be_;
  task.kernel = *scheduler_->RegisterKernel(EvictableKernel("work", 25 * kUs));
  task.work.block_tasks = 100'000;
  const TicketId ticket = *scheduler_->SubmitBe(task);
  EXPECT_EQ(scheduler_->RegionBegin(be_, 1, nullptr).status().code(),
            absl::StatusCode::kUnavailable)
      << "not launched";
  EXPECT_EQ(Begin(1), absl::StatusCode::kUnavailable) << "on the device";
  ASSERT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 1000 * kMs).ok());
  EXPECT_EQ(Begin(1), absl::StatusCode::kOk);
}

// Beside a service that waits for 1 ms at most, 10 ms do not fit, and what earlier ones took does.
TEST_F(RegionTest, ABoundThatIsNotGivenIsLearnt) {
  AddLc("service", 11 * kMs, 10 * kMs);
  EXPECT_EQ(Begin(0), absl::StatusCode::kUnavailable) << "nothing is known";
  EXPECT_EQ(Begin(100 * kUs), absl::StatusCode::kOk);
  EXPECT_EQ(Begin(0), absl::StatusCode::kOk);
}

TEST_F(RegionTest, ARegionMayWaitUntilItFits) {
  TaskSpec task;
  task.queue = be_;
  task.kernel = *scheduler_->RegisterKernel(EvictableKernel("work", 25 * kUs));
  task.work.block_tasks = 100'000;
  const TicketId ticket = *scheduler_->SubmitBe(task);
  scheduler_->Tick();
  const TimeNs begin_ns = scheduler_->NowNs();
  const RegionSpec spec = {.bound_ns = kMs};
  EXPECT_EQ(scheduler_->RegionBegin(be_, spec, nullptr, 200 * kUs).status().code(),
            absl::StatusCode::kUnavailable);
  EXPECT_GE(scheduler_->NowNs(), begin_ns + 200 * kUs);
  EXPECT_FALSE(*scheduler_->IsComplete(ticket));
  const auto region = scheduler_->RegionBegin(be_, spec, nullptr, 1000 * kMs);
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_TRUE(*scheduler_->IsComplete(ticket));
  EXPECT_LE(scheduler_->NowNs(), scheduler_->Record(ticket)->complete_ns + kMs);
  ASSERT_TRUE(scheduler_->RegionEnd(*region).ok());
}

TEST_F(RegionTest, AnLcRegionIsAQueryOfItsArrivalAndInput) {
  const QueueId lc = AddLc("service", 0, kMs);
  ASSERT_TRUE(scheduler_->PollUntil(50 * kMs).ok());
  const RegionSpec spec = {.bound_ns = kMs, .arrival_ns = 30 * kMs, .input_size = 128};
  const TicketId region = scheduler_->RegionBegin(lc, spec, nullptr, 0).value();
  ASSERT_TRUE(scheduler_->RegionEnd(region).ok());
  ASSERT_TRUE(scheduler_->Wait(region, kNever).ok());
  const AppId app = scheduler_->Record(region)->app;
  EXPECT_EQ(scheduler_->GuaranteeOf(app)->queries, 1);
  EXPECT_GE(scheduler_->GuaranteeOf(app)->p99_ns, 19 * kMs);
  const auto code = [&](QueueId queue, const RegionSpec& bad) {
    return scheduler_->RegionBegin(queue, bad, nullptr, 0).status().code();
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(code(be_, {.bound_ns = kMs, .arrival_ns = 1}), kInvalid);
  EXPECT_EQ(code(be_, {.bound_ns = kMs, .input_size = 1}), kInvalid);
  EXPECT_EQ(code(be_, {.bound_ns = kMs, .next_within_ns = 1}), kInvalid);
  EXPECT_EQ(code(lc, {.bound_ns = kMs, .input_size = -1}), kInvalid);
  EXPECT_EQ(code(lc, {.bound_ns = kMs, .arrival_ns = kNever}), kInvalid);
}

TEST_F(RegionTest, NoneBeginsWhileTheRuntimeIsQuiesced) {
  const QueueId lc = AddLc("service", 50 * kMs, 10 * kMs);
  ASSERT_TRUE(scheduler_->Quiesce(scheduler_->NowNs() + kMs).ok());
  for (const QueueId queue : {lc, be_}) {
    EXPECT_EQ(scheduler_->RegionBegin(queue, kMs, nullptr).status().code(),
              absl::StatusCode::kUnavailable);
  }
  ASSERT_TRUE(scheduler_->Resume().ok());
  EXPECT_EQ(Begin(kMs), absl::StatusCode::kOk);
}

TEST_F(RegionTest, TheRoomIsWhatARegionMayTake) {
  scheduler_->Tick();
  EXPECT_EQ(*scheduler_->RegionRoomNs(), kMaxDurationNs);
  const QueueId lc = AddLc("service", 15 * kMs, 10 * kMs);
  scheduler_->Tick();
  const int64_t room_ns = *scheduler_->RegionRoomNs();
  EXPECT_GT(room_ns, 0);
  EXPECT_LE(room_ns, 5 * kMs);
  EXPECT_EQ(Begin(room_ns), absl::StatusCode::kOk);
  EXPECT_EQ(Begin(room_ns + 1), absl::StatusCode::kUnavailable);
  const QueryId query = *scheduler_->BeginQuery(lc, 0);
  scheduler_->Tick();
  EXPECT_EQ(*scheduler_->RegionRoomNs(), 0) << "a query is active";
  ASSERT_TRUE(scheduler_->EndQuery(query).ok());
  scheduler_->Tick();
  EXPECT_GT(*scheduler_->RegionRoomNs(), 0);
  ASSERT_TRUE(scheduler_->Quiesce(scheduler_->NowNs() + 10 * kMs).ok());
  EXPECT_EQ(*scheduler_->RegionRoomNs(), 0);
  ASSERT_TRUE(scheduler_->Resume().ok());
  ASSERT_TRUE(scheduler_->Shutdown(kNever).ok());
  EXPECT_FALSE(scheduler_->RegionRoomNs().ok()) << "nothing begins any more";
}

// The launch of a query closes the room at once, before any plan.
TEST_F(RegionTest, AQueryThatIsLaunchedLeavesNoRoom) {
  TaskSpec task;
  task.queue = AddLc("service", 50 * kMs, 10 * kMs);
  task.kernel = *scheduler_->RegisterKernel(EvictableKernel("query", 25 * kUs));
  task.work.block_tasks = 1000;
  ASSERT_TRUE(scheduler_->Wait(*scheduler_->SubmitLc(task), kNever).ok());
  scheduler_->Tick();
  EXPECT_GT(*scheduler_->RegionRoomNs(), 0);
  const TicketId query = *scheduler_->SubmitLc(task);
  EXPECT_EQ(*scheduler_->RegionRoomNs(), 0);
  ASSERT_TRUE(scheduler_->Wait(query, kNever).ok());
  scheduler_->Tick();
  EXPECT_GT(*scheduler_->RegionRoomNs(), 0);
}

// What no query may meet begins when earlier ones, on time, have left the credit for it, and the
// query that meets it spends some.
TEST_F(RegionTest, ARegionLongerThanTheRoomBeginsOnCredit) {
  AppOptions options;
  options.name = "service";
  options.app_class = AppClass::kLatencyCritical;
  options.promise.p99_bound = 1.05;
  options.promise.p99_alone_ns = kMs;
  TaskSpec task;
  task.queue = AddQueue(options);
  task.kernel = *scheduler_->RegisterKernel(Graph("query", kMs));
  task.work.kind = TaskKind::kGraph;
  const auto ask = [&](int queries) {
    for (int i = 0; i < queries; ++i) {
      const TicketId query = *scheduler_->SubmitLc(task);
      ASSERT_TRUE(scheduler_->Wait(query, kNever).ok());
      ASSERT_TRUE(scheduler_->ReleaseTicket(query).ok());
      ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + kMs).ok());
    }
  };
  ask(10);
  scheduler_->Tick();
  const int64_t long_ns = *scheduler_->RegionRoomNs() + kMs;
  EXPECT_EQ(Begin(long_ns), absl::StatusCode::kUnavailable) << "10 queries leave no credit";
  ask(2000);
  scheduler_->Tick();
  EXPECT_LT(*scheduler_->RegionRoomNs(), long_ns) << "the room itself stays";
  const QueueId other = AddQueue(AppClass::kBestEffort, "other");
  const auto region = scheduler_->RegionBegin(be_, long_ns, nullptr);
  ASSERT_TRUE(region.ok()) << region.status();
  EXPECT_FALSE(scheduler_->RegionBegin(other, long_ns, nullptr).ok()) << "one region a plan";
  scheduler_->Tick();
  ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + 2 * kMs).ok());
  EXPECT_FALSE(scheduler_->RegionBegin(other, long_ns, nullptr).ok()) << "and one at a time";
  // Three at once, of which the last is late.
  const auto late_for_be = [&] {
    std::vector<TicketId> queries;
    for (int i = 0; i < 3; ++i) queries.push_back(*scheduler_->SubmitLc(task));
    for (const TicketId query : queries) EXPECT_TRUE(scheduler_->Wait(query, kNever).ok());
    return scheduler_->GuaranteeOf(scheduler_->Record(queries[0])->app)->queries_late_for_be;
  };
  const int64_t late = late_for_be();
  EXPECT_GE(late, 1) << "they met it";
  ASSERT_TRUE(scheduler_->RegionEnd(*region).ok());
  ASSERT_TRUE(scheduler_->Wait(*region, kNever).ok());
  EXPECT_EQ(late_for_be(), late) << "it is complete";
}

// A service that leaves credit, and BE apps whose regions begin on it only: each asks again as soon
// as its last region has ended, in the order of the list.
class RegionsOnCreditTest : public RegionTest {
 protected:
  struct Trainer {
    QueueId queue;
    bool asks = true;
    TicketId region = {};
    int begun = 0;
  };
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartScheduler(*MakePolicy("adaptive")));
    AppOptions options;
    options.name = "service";
    options.app_class = AppClass::kLatencyCritical;
    options.promise.p99_bound = 1.05;
    options.promise.p99_alone_ns = kMs;
    query_.queue = AddQueue(options);
    query_.kernel = *scheduler_->RegisterKernel(Graph("query", kMs));
    query_.work.kind = TaskKind::kGraph;
  }
  Trainer AddTrainer(const char* name, double weight) {
    return {.queue =
                AddQueue({.name = name, .app_class = AppClass::kBestEffort, .weight = weight})};
  }
  void Ask(Trainer& trainer, int64_t bound_ns) {
    if (trainer.region && *scheduler_->IsComplete(trainer.region)) {
      ASSERT_TRUE(scheduler_->ReleaseTicket(trainer.region).ok());
      trainer.region = {};
    }
    if (trainer.region || !trainer.asks) return;
    const auto region = scheduler_->RegionBegin(trainer.queue, bound_ns, nullptr);
    if (!region.ok()) return;
    ASSERT_TRUE(scheduler_->RegionEnd(*region).ok());
    trainer.region = *region;
    ++trainer.begun;
  }
  // Queries come every 10 ms; the trainers try every 100 us.
  void Run(int queries, const std::vector<Trainer*>& trainers, int64_t bound_ns) {
    for (int q = 0; q < queries; ++q) {
      const TicketId ticket = *scheduler_->SubmitLc(query_);
      for (int look = 0; look < 100; ++look) {
        ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + 100 * kUs).ok());
        for (Trainer* const trainer : trainers) Ask(*trainer, bound_ns);
      }
      ASSERT_TRUE(scheduler_->ReleaseTicket(ticket).ok());
    }
  }

  static constexpr int64_t kBoundNs = 2 * kMs;
  TaskSpec query_;
};

TEST_F(RegionsOnCreditTest, CreditIsSharedByTheWeightsOfTheAppsThatAskForIt) {
  Trainer one = AddTrainer("one", 1);
  Trainer three = AddTrainer("three", 3);
  Run(1000, {}, 0);
  ASSERT_LT(*scheduler_->RegionRoomNs(), kBoundNs) << "only on credit";
  Run(6000, {&one, &three}, kBoundNs);
  EXPECT_GT(one.begun, 30);
  EXPECT_NEAR(three.begun, 3 * one.begun, 0.05 * three.begun);
}

TEST_F(RegionsOnCreditTest, AnAppThatAsksNoMoreHoldsUpNoOther) {
  Trainer one = AddTrainer("one", 1);
  Trainer three = AddTrainer("three", 3);
  Run(1000, {}, 0);
  Run(1000, {&one, &three}, kBoundNs);
  const int beside = one.begun;
  three.asks = false;
  Run(1000, {&one, &three}, kBoundNs);
  EXPECT_GT(one.begun - beside, 2 * beside) << "all of it";
}

// Of the two the one that is behind wants more than there ever is.
TEST_F(RegionsOnCreditTest, ARegionForWhichThereIsNoCreditHoldsUpNoShorterOne) {
  Trainer one = AddTrainer("one", 1);
  Trainer three = AddTrainer("three", 1e6);
  Run(1000, {}, 0);
  Run(100, {&one, &three}, kBoundNs);
  const int beside = one.begun;
  for (int i = 0; i < 400; ++i) {
    EXPECT_FALSE(scheduler_->RegionBegin(three.queue, kMaxDurationNs, nullptr).ok());
    Run(1, {&one}, kBoundNs);
  }
  EXPECT_GT(one.begun, beside + 5);
}

// Opaque work takes so long, whatever it declares.
class OpaqueLengthDevice : public ForwardingDevice {
 public:
  OpaqueLengthDevice(std::unique_ptr<Device> inner, const int64_t& takes_ns)
      : ForwardingDevice(std::move(inner)), takes_ns_(takes_ns) {}
  absl::Status Launch(const LaunchRequest& request) override {
    if (request.form != Form::kOpaque) return ForwardingDevice::Launch(request);
    LaunchRequest of_length = request;
    of_length.parts[0].work.declared_ns = takes_ns_;
    return ForwardingDevice::Launch(of_length);
  }

 private:
  const int64_t& takes_ns_;
};

// Queries at a load of 0.5, and a BE app that asks for regions one after another, 20 us behind each
// refusal. It declares so much of their length.
class LongRegionsTest : public SimulatedSchedulerTest {
 protected:
  static constexpr int kQueries = 6000;
  std::unique_ptr<Device> Wrap(std::unique_ptr<Device> device) override {
    return std::make_unique<OpaqueLengthDevice>(std::move(device), region_ns_);
  }

  // The p99. `alone_ns`: as the service states it; 0: nobody asks for a region.
  int64_t Run(uint64_t seed, int64_t alone_ns, double declared) {
    scheduler_ = nullptr;
    StartScheduler(*MakePolicy("adaptive"));
    be_ = AddQueue(AppClass::kBestEffort, "train");
    AppOptions options = {.name = "service", .app_class = AppClass::kLatencyCritical};
    options.promise.p99_bound = 1.05;
    options.promise.p99_alone_ns = alone_ns;
    TaskSpec query;
    query.queue = AddQueue(options);
    query.kernel = *scheduler_->RegisterKernel(Graph("query", query_ns_));
    query.work.kind = TaskKind::kGraph;
    query.detached = true;
    query.callback = [](void* user, const CompletionRecord& record) {
      *static_cast<int64_t*>(user) = record.complete_ns - record.submit_ns;
    };
    std::mt19937_64 random(seed);
    std::exponential_distribution<double> gap_ns(0.5 / static_cast<double>(query_ns_));
    std::vector<int64_t> latencies_ns(kQueries);
    region_ = {};
    be_ns_ = 0;
    double arrival_ns = 0;
    for (int64_t& latency_ns : latencies_ns) {
      arrival_ns += gap_ns(random);
      AskUntil(static_cast<TimeNs>(arrival_ns), declared, alone_ns > 0);
      query.callback_user = &latency_ns;
      EXPECT_TRUE(scheduler_->SubmitLc(query).ok());
    }
    be_share_ = static_cast<double>(be_ns_) / static_cast<double>(scheduler_->NowNs());
    EXPECT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + 100 * kMs).ok());
    scheduler_ = nullptr;
    std::sort(latencies_ns.begin(), latencies_ns.end());
    return latencies_ns[kQueries * 99 / 100];
  }
  void AskUntil(TimeNs until_ns, double declared, bool asks) {
    while (asks && scheduler_->NowNs() + 20 * kUs < until_ns) {
      EXPECT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + 20 * kUs).ok());
      if (region_) {
        if (!*scheduler_->IsComplete(region_)) continue;
        EXPECT_TRUE(scheduler_->ReleaseTicket(std::exchange(region_, {})).ok());
      }
      const double bound_ns = declared * static_cast<double>(region_ns_);
      const auto region = scheduler_->RegionBegin(be_, static_cast<int64_t>(bound_ns), nullptr);
      if (!region.ok()) continue;
      region_ = *region;
      EXPECT_TRUE(scheduler_->RegionEnd(region_).ok());
      be_ns_ += region_ns_;
      region_ns_ = length_ns_(lengths_);
      ++regions_;
    }
    EXPECT_TRUE(scheduler_->PollUntil(until_ns).ok());
  }

  std::mt19937_64 lengths_{7};
  int64_t query_ns_ = 200 * kUs;
  std::uniform_int_distribution<int64_t> length_ns_{300 * kUs, 1200 * kUs};
  int64_t region_ns_ = 700 * kUs;
  int regions_ = 0;
  int64_t be_ns_ = 0;
  double be_share_ = 0;
  QueueId be_;
  TicketId region_;
};

TEST_F(LongRegionsTest, KeepTheBoundOnCreditAlsoWhereTheyAreLongerThanTheyDeclare) {
  for (const uint64_t seed : {2, 3}) {
    const int64_t alone_ns = Run(seed, 0, 1);
    for (const double declared : {1.0, 0.8}) {
      const int64_t beside_ns = Run(seed, alone_ns, declared);
      EXPECT_LE(static_cast<double>(beside_ns), 1.05 * static_cast<double>(alone_ns))
          << "seed " << seed << ", declared: " << declared;
    }
  }
  EXPECT_GT(regions_, 0);
}

TEST(RegionRoomsTest, WhatIsSavedIsForOneRegionAtATime) {
  RegionRooms rooms;
  const auto now_ns = [] { return TimeNs{100}; };
  rooms.Publish({.longest_ns = 10, .saved_ns = 50, .credit_apps = 0b110});
  EXPECT_FALSE(rooms.TakeSaved(1, 51, now_ns)) << "there is less";
  EXPECT_FALSE(rooms.TakeSaved(0, 50, now_ns)) << "it is the turn of others";
  EXPECT_TRUE(rooms.TakeSaved(1, 50, now_ns));
  rooms.Publish({.longest_ns = 10, .saved_ns = 50, .credit_apps = 0b110});
  EXPECT_FALSE(rooms.TakeSaved(2, 20, now_ns)) << "a query would wait for both";
  rooms.GiveSavedBack();
  rooms.Publish({.longest_ns = 10, .saved_ns = 50, .credit_apps = 0b110, .gap_until_ns = 101});
  EXPECT_FALSE(rooms.TakeSaved(2, 20, now_ns)) << "a query is expected";
  rooms.Publish({.longest_ns = 10, .saved_ns = 50, .credit_apps = 0b110, .gap_until_ns = 100});
  EXPECT_TRUE(rooms.TakeSaved(2, 20, now_ns));
}

// An engine of 40 steps with gaps of 50 us, then a silence. One query in 40 ends a silence, so BE
// work may make a share of those late.
TEST_F(LongRegionsTest, ASilenceOfAnEngineTakesALongerRegionThanAGap) {
  StartScheduler(*MakePolicy("adaptive"));
  be_ = AddQueue(AppClass::kBestEffort, "train");
  AppOptions options = {.name = "engine", .app_class = AppClass::kLatencyCritical};
  options.promise.p99_bound = 1.05;
  options.promise.p99_alone_ns = 3 * kMs;
  TaskSpec step;
  step.queue = AddQueue(options);
  step.kernel = *scheduler_->RegisterKernel(Graph("step", 2 * kMs));
  step.work.kind = TaskKind::kGraph;
  const auto region = [&](int64_t bound_ns) {
    region_ns_ = bound_ns;
    const auto begun = scheduler_->RegionBegin(be_, bound_ns, nullptr);
    if (!begun.ok()) return false;
    EXPECT_TRUE(scheduler_->RegionEnd(*begun).ok());
    EXPECT_TRUE(scheduler_->Wait(*begun, kNever).ok());
    EXPECT_TRUE(scheduler_->ReleaseTicket(*begun).ok());
    return true;
  };
  int in_gaps = 0;
  int in_silences = 0;
  for (int period = 0; period < 60; ++period) {
    for (int i = 0; i < 40; ++i) {
      const bool last = i == 39;
      step.next_within_ns = last ? kNoNextQuery : 60 * kUs;
      const TicketId ticket = *scheduler_->SubmitLc(step);
      EXPECT_TRUE(scheduler_->Wait(ticket, kNever).ok());
      EXPECT_TRUE(scheduler_->ReleaseTicket(ticket).ok());
      if (last) continue;
      if (period > 40) in_gaps += region(600 * kUs) ? 1 : 0;
      EXPECT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + 50 * kUs).ok());
    }
    EXPECT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + 20 * kMs).ok());
    if (period > 40) in_silences += region(600 * kUs) ? 1 : 0;
    EXPECT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + 60 * kMs).ok());
  }
  EXPECT_EQ(in_gaps, 0);
  EXPECT_GT(in_silences, 10);
}

// Of a loop whose operations are mostly within the room, and some of which are longer. Before the
// vacation accounts it waited at each of those for credit, and had 0.01.
TEST_F(LongRegionsTest, RunOnWhatTheIdleTimeHasSaved) {
  query_ns_ = 2 * kMs;
  length_ns_ = std::uniform_int_distribution<int64_t>(200 * kUs, 1000 * kUs);
  const int64_t alone_ns = Run(2, 0, 1);
  for (const double declared : {1.0, 0.8}) {
    const int64_t beside_ns = Run(2, alone_ns, declared);
    // A bound that is too short costs the queries the difference.
    const double bound = declared < 1 ? 1.06 : 1.05;
    EXPECT_LE(static_cast<double>(beside_ns), bound * static_cast<double>(alone_ns)) << declared;
    EXPECT_GT(be_share_, 0.35) << declared;
  }
}

TEST_F(RegionTest, ARefusedRegionAsksForOnePlanInAMillisecond) {
  AddLc("urgent", 15 * kMs, 10 * kMs);
  scheduler_->Tick();
  const int64_t plans = scheduler_->Stats().plans;
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(scheduler_->RegionBegin(be_, kMaxDurationNs, nullptr).ok());
    ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + 20 * kUs).ok());
  }
  EXPECT_LE(scheduler_->Stats().plans - plans, 4) << "2 ms have passed";
}

// A step says that the next one follows: until then a region is at most what that one tolerates,
// and the room comes back when the time has passed, without a plan.
TEST_F(RegionTest, BetweenStepsARegionIsAtMostWhatTheNextStepTolerates) {
  AppOptions options;
  options.name = "engine";
  options.app_class = AppClass::kLatencyCritical;
  options.promise.p99_bound = 1.05;
  options.promise.p99_alone_ns = 10 * kMs;
  TaskSpec step;
  step.queue = AddQueue(options);
  step.kernel = *scheduler_->RegisterKernel(Graph("step", kMs));
  step.work.kind = TaskKind::kGraph;
  step.next_within_ns = 5 * kMs;
  ASSERT_TRUE(scheduler_->Wait(*scheduler_->SubmitLc(step), kNever).ok());
  scheduler_->Tick();
  const int64_t gap_ns = *scheduler_->RegionRoomNs();
  EXPECT_GT(gap_ns, 0);
  EXPECT_LT(gap_ns, 500 * kUs) << "0.05 of 10 ms, less what plans keep";
  const int64_t plans = scheduler_->Stats().plans;
  device_->AdvanceTo(device_->NowNs() + 6 * kMs);
  EXPECT_GT(*scheduler_->RegionRoomNs(), gap_ns);
  EXPECT_EQ(scheduler_->Stats().plans, plans);
}

// A quiesce waits for the regions that are open.
TEST_F(RegionTest, ARegionThatWasRefusedHoldsUpNoQuiesce) {
  AppOptions options = {.name = "full", .app_class = AppClass::kLatencyCritical, .tasks_max = 1};
  const QueueId queue = AddQueue(options);
  scheduler_->Tick();
  const TicketId open = *scheduler_->RegionBegin(queue, kMs, nullptr);
  EXPECT_EQ(scheduler_->RegionBegin(queue, kMs, nullptr).status().code(),
            absl::StatusCode::kResourceExhausted)
      << "the app has one task slot";
  EXPECT_FALSE(scheduler_->RegionBegin(be_, -1, nullptr).ok());
  EXPECT_EQ(scheduler_->Quiesce(scheduler_->NowNs() + kMs).code(),
            absl::StatusCode::kDeadlineExceeded)
      << "one is open";
  ASSERT_TRUE(scheduler_->RegionEnd(open).ok());
  EXPECT_TRUE(scheduler_->Quiesce(scheduler_->NowNs() + 10 * kMs).ok());
}

TEST_F(RegionTest, OnlyAnOpenRegionIsEndedAndOnlyOnce) {
  scheduler_->Tick();
  const TicketId region = *scheduler_->RegionBegin(be_, kMs, nullptr);
  EXPECT_TRUE(scheduler_->RegionEnd(region).ok());
  EXPECT_EQ(scheduler_->RegionEnd(region).code(), absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(scheduler_->Wait(region, kNever).ok());
  EXPECT_EQ(scheduler_->RegionEnd(region).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(scheduler_->RegionEnd(TicketId{}).code(), absl::StatusCode::kInvalidArgument);
  TaskSpec task;
  task.queue = be_;
  task.kernel = *scheduler_->RegisterKernel(EvictableKernel("work", 25 * kUs));
  task.work.block_tasks = 64;
  EXPECT_EQ(scheduler_->RegionEnd(*scheduler_->SubmitBe(task)).code(),
            absl::StatusCode::kInvalidArgument)
      << "a task is no region";
}

// A policy of the application's own puts LC work on BE lanes, and a graph in segments behind it.
// The device takes no other launch on the graph's lane, so the end of a region there would fail.
class RegionBehindSegmentsTest : public SimulatedSchedulerTest {
 protected:
  static void LaunchOnBeLanes(const Snapshot& snapshot, Plan& plan) {
    for (const HeadView& head : snapshot.heads) {
      const bool lc = head.app_class == AppClass::kLatencyCritical;
      PlannedLaunch& launch = plan.launches.Add();
      launch.task = head.task;
      launch.form = lc ? Form::kGraph : Form::kSegments;
      launch.lane_class = LaneClass::kBe;
    }
  }
};

TEST_F(RegionBehindSegmentsTest, NoRegionBeginsOnALaneThatHoldsAGraphInSegments) {
  ASSERT_NO_FATAL_FAILURE(StartScheduler(std::make_unique<PlanWith>(LaunchOnBeLanes)));
  const KernelId query = *scheduler_->RegisterKernel(Graph("query", 5 * kMs));
  KernelDesc step = Graph("step", 10 * kUs);
  step.simulation.nodes[0].repeat = 1000;
  const KernelId step_id = *scheduler_->RegisterKernel(step);
  std::vector<QueueId> queues;  // on each BE lane one at least
  for (int i = 0; i < 8; ++i) {
    queues.push_back(AddQueue(AppClass::kLatencyCritical, "service" + std::to_string(i)));
    SubmitGraph(queues.back(), query, true);
  }
  ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + 100 * kUs).ok());
  const TicketId graph = SubmitGraph(AddQueue(AppClass::kBestEffort, "train"), step_id, false);
  ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + 100 * kUs).ok());
  int refused = 0;
  std::vector<TicketId> regions;
  for (const QueueId queue : queues) {
    const auto region = scheduler_->RegionBegin(queue, kMs, nullptr);
    if (!region.ok()) {
      EXPECT_EQ(region.status().code(), absl::StatusCode::kUnavailable) << region.status();
      ++refused;
      continue;
    }
    regions.push_back(*region);
  }
  for (const TicketId region : regions) ASSERT_TRUE(scheduler_->RegionEnd(region).ok());
  for (const TicketId region : regions) {
    ASSERT_TRUE(scheduler_->Wait(region, kNever).ok());
    EXPECT_EQ(scheduler_->Record(region)->verdict, Verdict::kOk);
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 8) << "other lanes are free";
  ASSERT_TRUE(scheduler_->Wait(graph, kNever).ok());
  EXPECT_EQ(scheduler_->Record(graph)->form, Form::kSegments);
  for (const QueueId queue : queues) {
    const auto region = scheduler_->RegionBegin(queue, kMs, nullptr).value();
    EXPECT_TRUE(scheduler_->RegionEnd(region).ok());
  }
}

}  // namespace
}  // namespace gpushare::core
