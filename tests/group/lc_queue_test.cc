// An LC app on all GPUs with one queue: balance, order of a client, a lost GPU.

#include <gpushare/group/lc_queue.hpp>

#include "tests/group/group_fixture.h"

namespace gpushare_test {
namespace {

using gpushare::Group;
using gpushare::GroupLcQueue;
using gpushare::LcWork;

struct Service {
  explicit Service(const std::vector<int64_t>& duration_ns,
                   const std::vector<const char*>& faults = {})
      : group(Group::Create(Simulated(static_cast<int>(duration_ns.size()), faults)).value()),
        kernel(Register(*group, "step", duration_ns)),
        queue(group->CreateLcQueue(LcApp()).value()) {}

  LcWork Query(bool repeatable = false, int32_t client = 0) const {
    LcWork work;
    work.kernel = kernel;
    work.repeatable = repeatable;
    work.client = client;
    return work;
  }
  // Submits one query for each entry, all at once.
  void SubmitAll(size_t count, bool repeatable, Ends* ends) {
    for (size_t i = 0; i < count; ++i) {
      LcWork work = Query(repeatable);
      ends->Watch(i, &work);
      EXPECT_STATUS_OK(queue.Submit(work));
    }
  }

  std::unique_ptr<Group> group;
  const gpushare::GroupKernel* kernel;
  GroupLcQueue queue;
};

TEST(GroupLcQueueTest, EqualGpusShareTheQueriesEqually) {
  Service service({200 * kUs, 200 * kUs});
  Ends ends(20);
  service.SubmitAll(20, false, &ends);
  EXPECT_STATUS_OK(service.group->Drain(kS));
  ends.ExpectAll(GPUSHARE_VERDICT_OK);
  EXPECT_EQ(ends.On(0), 10);
  EXPECT_EQ(ends.On(1), 10);
}

TEST(GroupLcQueueTest, AGpuOfHalfTheSpeedGetsHalfAsManyQueries) {
  Service service({100 * kUs, 200 * kUs});
  Ends ends(30);
  service.SubmitAll(30, false, &ends);
  EXPECT_STATUS_OK(service.group->Drain(kS));
  ends.ExpectAll(GPUSHARE_VERDICT_OK);
  EXPECT_NEAR(ends.On(0), 20, 1);
}

TEST(GroupLcQueueTest, AQueryGoesToTheGpuThatIsFree) {
  Service service({200 * kUs, 200 * kUs});
  Ends ends(2);
  LcWork busy = service.Query();
  busy.expected_ns = 5 * kMs;
  ends.Watch(0, &busy);
  EXPECT_STATUS_OK(service.queue.Submit(busy));
  LcWork work = service.Query();
  ends.Watch(1, &work);
  EXPECT_STATUS_OK(service.queue.Submit(work));
  EXPECT_STATUS_OK(service.group->Drain(kS));
  EXPECT_NE(ends.gpu(0), ends.gpu(1));
}

// Without a bound, BE work may fill a GPU for long. Workers leave within a block task, so a GPU
// that has some is still a good place for a query.
TEST(GroupLcQueueTest, WorkersInHandKeepNoQueryAway) {
  Service service({600 * kUs, 600 * kUs});
  gpushare::KernelOptions sincos;
  sincos.name = "sincos_27us";
  gpushare::BeWork item;
  item.kernel = service.group->RegisterKernel(sincos).value();
  item.task.block_tasks = 200'000;
  const gpushare::GroupBeQueue training = service.group->CreateBeQueue(BeApp()).value();
  for (int i = 0; i < 40; ++i) EXPECT_STATUS_OK(training.Submit(item));
  Ends ends(40);
  for (size_t i = 0; i < 40; ++i) {
    LcWork work = service.Query();
    ends.Watch(i, &work);
    EXPECT_STATUS_OK(service.queue.Submit(work));
    EXPECT_STATUS_OK(service.group->PollUntil(service.group->NowNs() + 500 * kUs));
  }
  EXPECT_STATUS_OK(service.group->Drain(kS));
  ends.ExpectAll(GPUSHARE_VERDICT_OK);
  EXPECT_GE(ends.On(0), 12);
  EXPECT_GE(ends.On(1), 12);
}

TEST(GroupLcQueueTest, AKernelThatIsOnOneGpuRunsThere) {
  Service service({0, 200 * kUs});
  Ends ends(8);
  service.SubmitAll(8, false, &ends);
  EXPECT_STATUS_OK(service.group->Drain(kS));
  ends.ExpectAll(GPUSHARE_VERDICT_OK);
  EXPECT_EQ(ends.On(1), 8);
}

// Every third query of a client is long, so that the next ones would overtake it on another GPU.
TEST(GroupLcQueueTest, QueriesOfOneClientEndInTheirOrder) {
  Service service({100 * kUs, 100 * kUs});
  const gpushare::GroupKernel* slow = Register(*service.group, "slow", {kMs, kMs});
  Ends ends(40);
  for (size_t i = 0; i < 40; ++i) {
    LcWork work = service.Query(false, 1 + static_cast<int32_t>(i % 2));
    if (i % 6 == 0) work.kernel = slow;
    ends.Watch(i, &work);
    EXPECT_STATUS_OK(service.queue.Submit(work));
    EXPECT_STATUS_OK(service.group->PollUntil(service.group->NowNs() + 20 * kUs));
  }
  EXPECT_STATUS_OK(service.group->Drain(kS));
  ends.ExpectAll(GPUSHARE_VERDICT_OK);
  std::array<size_t, 2> last = {0, 0};
  for (const size_t index : ends.order()) {
    EXPECT_GE(index, last[index % 2]) << "client " << index % 2 + 1;
    last[index % 2] = index;
  }
}

TEST(GroupLcQueueTest, RepeatableQueriesOfALostGpuRunElsewhereAndEachEndsOnce) {
  Service service({200 * kUs, 200 * kUs}, {nullptr, "device_lost_at_ns=1000000"});
  Ends ends(40);
  service.SubmitAll(40, true, &ends);
  EXPECT_STATUS_OK(service.group->Drain(kS));
  ends.ExpectAll(GPUSHARE_VERDICT_OK);
  EXPECT_TRUE(service.group->IsLost(1));
  EXPECT_FALSE(service.group->IsLost(0));
  EXPECT_GT(ends.On(0), 30);
  Ends after(4);
  service.SubmitAll(4, false, &after);
  EXPECT_STATUS_OK(service.group->Drain(2 * kS));
  EXPECT_EQ(after.On(0), 4);
}

TEST(GroupLcQueueTest, OtherQueriesOfALostGpuEndWithThatVerdict) {
  Service service({200 * kUs, 200 * kUs}, {nullptr, "device_lost_at_ns=1000000"});
  Ends ends(40);
  service.SubmitAll(40, false, &ends);
  EXPECT_STATUS_OK(service.group->Drain(kS));
  int lost = 0;
  for (size_t i = 0; i < 40; ++i) {
    EXPECT_EQ(ends.calls(i), 1);
    if (ends.verdict(i) == GPUSHARE_VERDICT_OK) continue;
    EXPECT_EQ(ends.verdict(i), GPUSHARE_VERDICT_DEVICE_LOST);
    EXPECT_EQ(ends.gpu(i), 1);
    ++lost;
  }
  EXPECT_GE(lost, 14);
}

TEST(GroupLcQueueTest, AClientKeepsItsOrderWhenItsGpuIsLost) {
  Service service({200 * kUs, 200 * kUs, 200 * kUs},
                  {nullptr, "device_lost_at_ns=1000000", "device_lost_at_ns=4000000"});
  constexpr size_t kClients = 6;
  Ends ends(10 * kClients);
  for (size_t i = 0; i < 10 * kClients; ++i) {
    LcWork work = service.Query(true, 1 + static_cast<int32_t>(i % kClients));
    ends.Watch(i, &work);
    EXPECT_STATUS_OK(service.queue.Submit(work));
  }
  EXPECT_STATUS_OK(service.group->Drain(kS));
  ends.ExpectAll(GPUSHARE_VERDICT_OK);
  EXPECT_TRUE(service.group->IsLost(2));
  std::array<size_t, kClients> last{};
  for (const size_t index : ends.order()) {
    EXPECT_GE(index, last[index % kClients]) << "client " << index % kClients + 1;
    last[index % kClients] = index;
  }
}

// A runtime takes 32 tasks with large arguments of an app at once.
struct LargeService : Service {
  explicit LargeService(int gpus, const std::vector<const char*>& faults = {})
      : Service(std::vector<int64_t>(static_cast<size_t>(gpus), kMs), faults) {
    gpushare::KernelOptions sincos;
    sincos.name = "sincos_27us";
    workers = group->RegisterKernel(sincos).value();
  }
  LcWork Large(int32_t client) const {
    LcWork work = Query(true, client);
    work.kernel = workers;
    work.task.block_tasks = 20'000;
    work.task.arguments = arguments.data();
    work.task.arguments_size_bytes = arguments.size();
    return work;
  }

  const gpushare::GroupKernel* workers = nullptr;
  std::array<char, 600> arguments{};
};

TEST(GroupLcQueueTest, AGpuWithoutASlotLeavesTheQueryToAnother) {
  LargeService service(2);
  Ends ends(64);
  for (size_t i = 0; i < 64; ++i) {
    LcWork work = service.Large(0);
    // GPU 1 looks busy for the first half.
    if (i == 0) work.expected_ns = kS;
    ends.Watch(i, &work);
    EXPECT_STATUS_OK(service.queue.Submit(work));
  }
  EXPECT_EQ(service.queue.Submit(service.Large(0)).code(), GPUSHARE_RESOURCE_EXHAUSTED);
  EXPECT_STATUS_OK(service.group->Drain(10 * kS));
  ends.ExpectAll(GPUSHARE_VERDICT_OK);
}

TEST(GroupLcQueueTest, QueriesOfALostGpuWaitForSlotsOfTheOthers) {
  for (const int32_t clients : {0, 4}) {
    LargeService service(2, {nullptr, "device_lost_at_ns=200000"});
    Ends ends(60);
    for (size_t i = 0; i < 60; ++i) {
      LcWork work = service.Large(clients == 0 ? 0 : 1 + static_cast<int32_t>(i) % clients);
      ends.Watch(i, &work);
      EXPECT_STATUS_OK(service.queue.Submit(work));
    }
    EXPECT_STATUS_OK(service.group->Drain(10 * kS));
    ends.ExpectAll(GPUSHARE_VERDICT_OK);
    EXPECT_TRUE(service.group->IsLost(1));
    EXPECT_EQ(ends.On(0) + ends.On(1), 60);
  }
}

// As in the test above, but the ends on which they would wait come before the refusal.
TEST(GroupLcQueueTest, AQueryOfALostGpuIsTriedAgainIfTheOthersEndBeforeItIsRefused) {
  Service service({5 * kMs, 5 * kMs}, {nullptr, "device_lost_at_ns=1000000"});
  gpushare::AppOptions three = LcApp("three");
  three.tasks_max = 3;
  const GroupLcQueue queue = service.group->CreateLcQueue(three).value();
  Strangers strangers(*service.group, queue.AppOn(0), *service.kernel);
  EXPECT_STATUS_OK(queue.Submit(service.Query()));  // on GPU 0
  struct Preparation {
    Strangers* strangers;
    int calls = 0;
  } preparation{&strangers};
  LcWork work = service.Query(true);
  work.prepare_user = &preparation;
  work.prepare = [](void* user, int, gpushare_task_options*) {
    Preparation& inside = *static_cast<Preparation*>(user);
    if (++inside.calls <= 2) return;  // on GPU 1, then on GPU 0, which is full
    inside.strangers->Drain();
    if (inside.calls == 3) inside.strangers->Submit(3);
  };
  Ends ends(1);
  ends.Watch(0, &work);
  EXPECT_STATUS_OK(queue.Submit(work));
  strangers.Submit(2);
  EXPECT_STATUS_OK(service.group->PollUntil(2 * kMs));
  ASSERT_TRUE(service.group->IsLost(1));
  EXPECT_EQ(preparation.calls, 2);
  // A query that is refused lets those that wait have another try.
  EXPECT_EQ(queue.Submit(service.Query()).code(), GPUSHARE_RESOURCE_EXHAUSTED);
  EXPECT_EQ(preparation.calls, 4);
  EXPECT_STATUS_OK(service.group->Drain(10 * kS));
  ends.ExpectAll(GPUSHARE_VERDICT_OK);
}

// The kernel of the second query is not where the client's first one runs, nor where it moves to.
TEST(GroupLcQueueTest, AQueryWithoutAKernelOnItsClientsGpuIsNotOfALostOne) {
  Service service({kMs, kMs, 0}, {nullptr, "device_lost_at_ns=500000", nullptr});
  const gpushare::GroupKernel* elsewhere = Register(*service.group, "elsewhere", {0, kMs, kMs});
  Ends ends(3);
  LcWork busy = service.Query(true, 0);  // GPU 0: so that the client begins on GPU 1
  ends.Watch(0, &busy);
  EXPECT_STATUS_OK(service.queue.Submit(busy));
  LcWork first = service.Query(true, 1);
  ends.Watch(1, &first);
  EXPECT_STATUS_OK(service.queue.Submit(first));
  LcWork second = service.Query(true, 1);
  second.kernel = elsewhere;
  ends.Watch(2, &second);
  EXPECT_STATUS_OK(service.queue.Submit(second));
  EXPECT_STATUS_OK(service.group->Drain(kS));
  ends.ExpectAll(GPUSHARE_VERDICT_OK);
  EXPECT_EQ(ends.gpu(1), 0);
  EXPECT_EQ(ends.gpu(2), 2);
  EXPECT_LT(ends.order()[1], ends.order()[2]);
  // Now with a GPU that is well.
  LcWork again = service.Query(true, 1);
  EXPECT_STATUS_OK(service.queue.Submit(again));
  again.kernel = elsewhere;
  const gpushare::Status status = service.queue.Submit(again);
  EXPECT_EQ(status.code(), GPUSHARE_UNAVAILABLE);
  EXPECT_NE(status.message().find("not registered"), std::string::npos) << status.message();
  EXPECT_STATUS_OK(service.group->Drain(kS));
}

// The latency of a query counts from its submit, also if it ran elsewhere first.
TEST(GroupLcQueueTest, AQueryThatMovesKeepsItsArrival) {
  Service service({5 * kMs, 5 * kMs}, {"device_lost_at_ns=3000000", nullptr});
  EXPECT_STATUS_OK(service.group->PollUntil(kMs));
  EXPECT_STATUS_OK(service.queue.Submit(service.Query(true)));
  EXPECT_STATUS_OK(service.group->Drain(kS));
  ASSERT_TRUE(service.group->IsLost(0));
  const gpushare::AppStats stats = service.queue.AppOn(1).Stats().value();
  EXPECT_EQ(stats.completed, 1);
  EXPECT_GT(stats.latency.max_ns, 6900 * kUs);  // 2 ms on GPU 0, and 5 ms
}

TEST(GroupLcQueueTest, WithAllGpusLostSubmitsAreRefusedAndQueriesEnd) {
  Service service({200 * kUs, 200 * kUs},
                  {"device_lost_at_ns=500000", "device_lost_at_ns=1000000"});
  Ends ends(20);
  service.SubmitAll(20, true, &ends);
  EXPECT_STATUS_OK(service.group->Drain(kS));
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(ends.calls(i), 1);
  const gpushare::Status status = service.queue.Submit(service.Query());
  EXPECT_EQ(status.code(), GPUSHARE_UNAVAILABLE);
  EXPECT_NE(status.message().find("all are lost"), std::string::npos) << status.message();
}

TEST(GroupLcQueueTest, MoreQueriesThanTasksMaxAreRefusedAndTheRestIsWhole) {
  Service service({200 * kUs, 200 * kUs});
  gpushare::AppOptions small = LcApp("small");
  small.tasks_max = 8;
  const GroupLcQueue queue = service.group->CreateLcQueue(small).value();
  for (int i = 0; i < 8; ++i) EXPECT_STATUS_OK(queue.Submit(service.Query()));
  EXPECT_EQ(queue.Submit(service.Query()).code(), GPUSHARE_RESOURCE_EXHAUSTED);
  EXPECT_STATUS_OK(service.group->Drain(kS));
  EXPECT_STATUS_OK(queue.Submit(service.Query()));
  EXPECT_STATUS_OK(service.group->Drain(2 * kS));
}

TEST(GroupLcQueueTest, WhatBelongsToOneRuntimeIsRefused) {
  Service service({200 * kUs, 200 * kUs});
  LcWork work = service.Query();
  work.task.query = {7};
  EXPECT_EQ(service.queue.Submit(work).code(), GPUSHARE_INVALID_ARGUMENT);
  work = service.Query();
  work.client = 65;
  EXPECT_EQ(service.queue.Submit(work).code(), GPUSHARE_INVALID_ARGUMENT);
  work = service.Query();
  work.kernel = nullptr;
  EXPECT_EQ(service.queue.Submit(work).code(), GPUSHARE_INVALID_ARGUMENT);
  EXPECT_STATUS_OK(service.group->Drain(kS));
}

}  // namespace
}  // namespace gpushare_test
