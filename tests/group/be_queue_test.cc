// BE work goes where room is: the shares that GPUs give it, held GPUs, lost GPUs.

#include <gpushare/group/be_queue.hpp>

#include "tests/group/group_fixture.h"

namespace gpushare_test {
namespace {

using gpushare::BeWork;
using gpushare::Group;
using gpushare::GroupBeQueue;
using gpushare::LcWork;

struct Training {
  explicit Training(const std::vector<int64_t>& duration_ns,
                    const std::vector<const char*>& faults = {})
      : group(Group::Create(Simulated(static_cast<int>(duration_ns.size()), faults)).value()),
        kernel(Register(*group, "batch", duration_ns)),
        queue(group->CreateBeQueue(BeApp()).value()) {}

  BeWork Item(bool repeatable = false) const {
    BeWork work;
    work.kernel = kernel;
    work.repeatable = repeatable;
    return work;
  }
  void SubmitAll(size_t count, bool repeatable, Ends* ends) {
    for (size_t i = 0; i < count; ++i) {
      BeWork work = Item(repeatable);
      ends->Watch(i, &work);
      EXPECT_STATUS_OK(queue.Submit(work));
    }
  }
  int64_t WorkNs(int gpu) const { return queue.AppOn(gpu).Stats().value().work_ns; }

  std::unique_ptr<Group> group;
  const gpushare::GroupKernel* kernel;
  GroupBeQueue queue;
};

TEST(GroupBeQueueTest, IdleGpusOfOneKindShareTheItems) {
  Training training({kMs, kMs});
  Ends ends(40);
  training.SubmitAll(40, false, &ends);
  EXPECT_STATUS_OK(training.group->Drain(kS));
  ends.ExpectAll(GPUSHARE_VERDICT_OK);
  EXPECT_NEAR(ends.On(0), 20, 2);
}

TEST(GroupBeQueueTest, AGpuHasAtMostItsWindowInHand) {
  Training training({kMs, kMs});
  Ends ends(40);
  training.SubmitAll(40, false, &ends);
  for (int64_t at_ns = 0; !training.group->Drain(0).ok(); at_ns += 100 * kUs) {
    EXPECT_STATUS_OK(training.group->PollUntil(at_ns));
    for (int gpu = 0; gpu < 2; ++gpu) {
      const gpushare::AppStats stats = training.queue.AppOn(gpu).Stats().value();
      EXPECT_LE(stats.submitted - stats.completed, 2);
    }
    ASSERT_LT(at_ns, kS);
  }
  ends.ExpectAll(GPUSHARE_VERDICT_OK);
}

// A runtime takes 32 tasks with large arguments of an app at once.
TEST(GroupBeQueueTest, AnItemWaitsWhereTheRuntimeHasNoSlotForItNow) {
  Training training({kMs, kMs});
  gpushare::KernelOptions sincos;
  sincos.name = "sincos_27us";
  gpushare::BeQueueOptions options;
  options.window = 64;
  const GroupBeQueue wide = training.group->CreateBeQueue(BeApp("wide"), options).value();
  const std::array<char, 600> arguments{};
  BeWork work;
  work.kernel = training.group->RegisterKernel(sincos).value();
  work.task.block_tasks = 1000;
  work.task.arguments = arguments.data();
  work.task.arguments_size_bytes = arguments.size();
  Ends ends(200);
  for (size_t i = 0; i < 200; ++i) {
    ends.Watch(i, &work);
    EXPECT_STATUS_OK(wide.Submit(work));
  }
  EXPECT_STATUS_OK(training.group->Drain(kS));
  ends.ExpectAll(GPUSHARE_VERDICT_OK);
}

// The slot of an item that ended is free when its end hands over the next one.
TEST(GroupBeQueueTest, AWindowOfAllTasksOfTheAppLosesNoItem) {
  Training training({kMs, kMs});
  gpushare::AppOptions one = BeApp("one");
  one.tasks_max = 1;
  gpushare::BeQueueOptions options;
  options.window = 1;
  const GroupBeQueue queue = training.group->CreateBeQueue(one, options).value();
  Ends ends(10);
  for (size_t i = 0; i < 10; ++i) {
    BeWork work = training.Item();
    ends.Watch(i, &work);
    EXPECT_STATUS_OK(queue.Submit(work));
  }
  EXPECT_STATUS_OK(training.group->Drain(kS));
  ends.ExpectAll(GPUSHARE_VERDICT_OK);
}

// The ends on which it would wait come between its choice of a GPU and the refusal.
TEST(GroupBeQueueTest, AnItemIsTriedAgainIfTheOthersEndBeforeItIsRefused) {
  Training training({kMs, 0});
  gpushare::AppOptions two = BeApp("two");
  two.tasks_max = 2;
  const GroupBeQueue queue = training.group->CreateBeQueue(two).value();
  Strangers strangers(*training.group, queue.AppOn(0), *training.kernel);
  EXPECT_STATUS_OK(queue.Submit(training.Item()));
  struct Preparation {
    Strangers* strangers;
    int calls = 0;
  } preparation{&strangers};
  BeWork work = training.Item();
  work.prepare_user = &preparation;
  work.prepare = [](void* user, int, gpushare_task_options*) {
    Preparation& inside = *static_cast<Preparation*>(user);
    inside.strangers->Drain();
    if (++inside.calls == 1) inside.strangers->Submit(2);
  };
  Ends ends(1);
  ends.Watch(0, &work);
  EXPECT_STATUS_OK(queue.Submit(work));
  EXPECT_EQ(preparation.calls, 2);
  EXPECT_STATUS_OK(training.group->Drain(10 * kS));
  ends.ExpectAll(GPUSHARE_VERDICT_OK);
}

// Each end on the submitting thread would nest in the one before.
TEST(GroupBeQueueTest, ADoneThatSubmitsAgainDoesNotNest) {
  Training training({kMs, kMs});
  struct Again {
    const GroupBeQueue* queue;
    BeWork work;
    int left = 50'000;
  } again{&training.queue, training.Item()};
  const std::array<char, 8192> arguments{};  // more than a runtime takes
  again.work.task.arguments = arguments.data();
  again.work.task.arguments_size_bytes = arguments.size();
  again.work.done_user = &again;
  again.work.done = [](void* user, int, const gpushare_completion_record* record) {
    Again& inside = *static_cast<Again*>(user);
    EXPECT_EQ(record->verdict, GPUSHARE_VERDICT_FAILED);
    if (--inside.left > 0) EXPECT_STATUS_OK(inside.queue->Submit(inside.work));
  };
  EXPECT_STATUS_OK(training.queue.Submit(again.work));
  EXPECT_EQ(again.left, 0);
  EXPECT_STATUS_OK(training.group->Drain(kS));
}

// LC work fills most of GPU 0, in queries that leave no gap for an item of 1 ms.
TEST(GroupBeQueueTest, ItemsGoToTheGpuThatLcWorkLeavesFree) {
  Training training({kMs, kMs});
  const gpushare::GroupKernel* query = Register(*training.group, "query", {900 * kUs, 0});
  const gpushare::GroupLcQueue service = training.group->CreateLcQueue(LcApp()).value();
  Ends ends(60);
  training.SubmitAll(60, false, &ends);
  for (int i = 0; i < 40; ++i) {
    LcWork work;
    work.kernel = query;
    EXPECT_STATUS_OK(service.Submit(work));
    EXPECT_STATUS_OK(training.group->PollUntil(training.group->NowNs() + kMs));
  }
  EXPECT_GE(ends.On(1), 30);
  EXPECT_LE(ends.On(0), ends.On(1) / 3);
  EXPECT_STATUS_OK(training.group->Drain(10 * kS));
  ends.ExpectAll(GPUSHARE_VERDICT_OK);
}

// One item at a time, so that both GPUs have room in their windows and only the share counts.
TEST(GroupBeQueueTest, ASingleJobStaysWhereItsShareIsLarger) {
  Training training({kMs, kMs});
  const gpushare::GroupKernel* query = Register(*training.group, "query", {500 * kUs, 0});
  const gpushare::GroupLcQueue service = training.group->CreateLcQueue(LcApp()).value();
  Ends ends(20);
  for (size_t i = 0; i < 20; ++i) {
    for (int j = 0; j < 4; ++j) {
      LcWork work;
      work.kernel = query;
      EXPECT_STATUS_OK(service.Submit(work));
      EXPECT_STATUS_OK(training.group->PollUntil(training.group->NowNs() + kMs));
    }
    BeWork work = training.Item();
    ends.Watch(i, &work);
    EXPECT_STATUS_OK(training.queue.Submit(work));
  }
  EXPECT_STATUS_OK(training.group->Drain(kS));
  ends.ExpectAll(GPUSHARE_VERDICT_OK);
  EXPECT_GE(ends.On(1), 19);
}

TEST(GroupBeQueueTest, AnItemOfOneGpuDoesNotHoldThoseBehindIt) {
  Training training({kMs, kMs});
  const gpushare::GroupKernel* first_only = Register(*training.group, "first", {20 * kMs, 0});
  Ends ends(12);
  for (size_t i = 0; i < 12; ++i) {
    BeWork work = training.Item();
    if (i < 6) work.kernel = first_only;
    ends.Watch(i, &work);
    EXPECT_STATUS_OK(training.queue.Submit(work));
  }
  EXPECT_STATUS_OK(training.group->PollUntil(15 * kMs));
  for (size_t i = 6; i < 12; ++i) EXPECT_EQ(ends.gpu(i), 1) << i;
  EXPECT_STATUS_OK(training.group->Drain(kS));
  ends.ExpectAll(GPUSHARE_VERDICT_OK);
}

TEST(GroupBeQueueTest, RepeatableItemsOfALostGpuStartOverElsewhere) {
  Training training({kMs, kMs}, {"device_lost_at_ns=3500000"});
  Ends ends(20);
  training.SubmitAll(20, true, &ends);
  EXPECT_STATUS_OK(training.group->Drain(kS));
  ends.ExpectAll(GPUSHARE_VERDICT_OK);
  EXPECT_TRUE(training.group->IsLost(0));
  EXPECT_LE(ends.On(0), 3);
}

TEST(GroupBeQueueTest, WithoutAGpuItemsEndInsteadOfWaitingForEver) {
  Training training({kMs, kMs}, {"device_lost_at_ns=3500000", "device_lost_at_ns=4500000"});
  Ends ends(20);
  training.SubmitAll(20, true, &ends);
  EXPECT_STATUS_OK(training.group->Drain(kS));
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(ends.calls(i), 1) << i;
  EXPECT_EQ(ends.verdict(19), GPUSHARE_VERDICT_DEVICE_LOST);
  EXPECT_EQ(training.queue.Submit(training.Item()).code(), GPUSHARE_UNAVAILABLE);
}

TEST(GroupBeQueueTest, ItemsThatWaitEndWithShutdown) {
  Training training({kMs, kMs});
  Ends ends(20);
  training.SubmitAll(20, false, &ends);
  EXPECT_STATUS_OK(training.group->Shutdown(kS));
  int shut_down = 0;
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(ends.calls(i), 1);
    shut_down += ends.verdict(i) == GPUSHARE_VERDICT_SHUTDOWN ? 1 : 0;
  }
  EXPECT_EQ(shut_down, 16);  // two GPUs have two items each
  EXPECT_EQ(training.queue.Submit(training.Item()).code(), GPUSHARE_FAILED_PRECONDITION);
}

TEST(GroupBeQueueTest, AFullQueueRefusesWithItsLimit) {
  Training training({kMs, kMs});
  gpushare::BeQueueOptions options;
  options.items_max = 5;
  const GroupBeQueue small = training.group->CreateBeQueue(BeApp("small"), options).value();
  for (int i = 0; i < 5; ++i) EXPECT_STATUS_OK(small.Submit(training.Item()));
  const gpushare::Status status = small.Submit(training.Item());
  EXPECT_EQ(status.code(), GPUSHARE_RESOURCE_EXHAUSTED);
  EXPECT_NE(status.message().find("5 items"), std::string::npos) << status.message();
  EXPECT_STATUS_OK(training.group->Drain(kS));
}

}  // namespace
}  // namespace gpushare_test
