// A step starts on all of its GPUs or on none, and what it does to BE work meanwhile.

#include <chrono>
#include <gpushare/group/steps.hpp>
#include <thread>
#include <utility>

#include "tests/group/group_fixture.h"

namespace gpushare_test {
namespace {

using gpushare::Group;
using gpushare::GroupStep;
using gpushare::GroupSteps;
using gpushare::StepOptions;
using gpushare::StepsOptions;

// A region takes its bound on a simulated GPU, whatever is enqueued.
StepOptions Short() {
  StepOptions options;
  options.bound_ns = 50 * kUs;
  return options;
}

struct Decode {
  explicit Decode(int gpus, const std::vector<const char*>& faults = {}, StepsOptions options = {})
      : group(Group::Create(Simulated(gpus, faults)).value()),
        steps(group->CreateSteps(LcApp("decode"), std::move(options)).value()) {}

  // Open regions of the steps' app over all GPUs.
  int64_t OpenRegions() const {
    int64_t open = 0;
    for (int gpu = 0; gpu < group->size(); ++gpu) {
      open += steps.AppOn(gpu).Stats().value().regions_open;
    }
    return open;
  }
  void Advance(int64_t by_ns) { EXPECT_STATUS_OK(group->PollUntil(group->NowNs() + by_ns)); }

  std::unique_ptr<Group> group;
  GroupSteps steps;
};

TEST(GroupStepsTest, AStepHasARegionOnEachGpuUntilItEnds) {
  Decode decode(3);
  GroupStep step = decode.steps.Begin(Short()).value();
  EXPECT_EQ(decode.OpenRegions(), 3);
  EXPECT_STATUS_OK(step.End());
  EXPECT_STATUS_OK(step.End());
  EXPECT_STATUS_OK(step.Wait(kS));
  EXPECT_EQ(decode.OpenRegions(), 0);
  EXPECT_STATUS_OK(decode.group->Drain(kS));
}

TEST(GroupStepsTest, AGpuThatRefusesKeepsTheStepFromStartingAnywhere) {
  Decode decode(3);
  ASSERT_TRUE(decode.group->On(2).Quiesce(kS).ok());
  gpushare::Result<GroupStep> step = decode.steps.Begin(Short());
  ASSERT_FALSE(step.ok());
  EXPECT_EQ(step.status().code(), GPUSHARE_UNAVAILABLE);
  EXPECT_NE(step.status().message().find("GPU 2 refuses the step"), std::string::npos)
      << step.status().message();
  // What was reserved on GPUs 0 and 1 is given back.
  decode.Advance(kMs);
  EXPECT_EQ(decode.OpenRegions(), 0);
  EXPECT_STATUS_OK(decode.group->Drain(kS));
  ASSERT_TRUE(decode.group->On(2).Resume().ok());
  EXPECT_TRUE(decode.steps.Begin(Short()).ok());
  EXPECT_STATUS_OK(decode.group->Drain(kS));
}

TEST(GroupStepsTest, WithADeadlineItWaitsForTheGpuThatRefuses) {
  Decode decode(2);
  ASSERT_TRUE(decode.group->On(1).Quiesce(kS).ok());
  StepOptions options = Short();
  options.deadline_ns = decode.group->NowNs() + kMs;
  EXPECT_EQ(decode.steps.Begin(options).status().code(), GPUSHARE_UNAVAILABLE);
  EXPECT_GE(decode.group->NowNs(), options.deadline_ns);
  // GPU 0 was reserved for the first try alone.
  EXPECT_EQ(decode.steps.AppOn(0).Stats().value().submitted, 1);
  // The end of a query resumes GPU 1.
  const gpushare::GroupKernel* kernel = Register(*decode.group, "query", {500 * kUs, 0});
  const gpushare::GroupLcQueue service = decode.group->CreateLcQueue(LcApp()).value();
  gpushare::LcWork work;
  work.kernel = kernel;
  work.done_user = decode.group.get();
  work.done = [](void* user, int, const gpushare_completion_record*) {
    EXPECT_TRUE(static_cast<Group*>(user)->On(1).Resume().ok());
  };
  EXPECT_STATUS_OK(service.Submit(work));
  options.deadline_ns = decode.group->NowNs() + 10 * kMs;
  const int64_t began_ns = decode.group->NowNs();
  gpushare::Result<GroupStep> step = decode.steps.Begin(options);
  ASSERT_TRUE(step.ok()) << step.status().ToString();
  EXPECT_GE(decode.group->NowNs(), began_ns + 400 * kUs);
  EXPECT_STATUS_OK(step->End());
  EXPECT_STATUS_OK(decode.group->Drain(kS));
}

TEST(GroupStepsTest, OneStepIsOpenAndOtherStepsWaitForItsEnd) {
  Decode decode(2);
  const GroupSteps other = decode.group->CreateSteps(LcApp("prefill")).value();
  GroupStep step = decode.steps.Begin(Short()).value();
  EXPECT_EQ(other.Begin(Short()).status().code(), GPUSHARE_UNAVAILABLE);
  EXPECT_EQ(decode.steps.Begin(Short()).status().code(), GPUSHARE_UNAVAILABLE);
  EXPECT_STATUS_OK(step.End());
  // In flight: its own app may go on, the other one not yet.
  EXPECT_EQ(other.Begin(Short()).status().code(), GPUSHARE_UNAVAILABLE);
  EXPECT_TRUE(decode.steps.Begin(Short()).ok());
  EXPECT_STATUS_OK(decode.group->Drain(kS));
  EXPECT_TRUE(other.Begin(Short()).ok());
  EXPECT_STATUS_OK(decode.group->Drain(kS));
}

// An engine that begins the next step before the last one has ended is in flight all the time.
TEST(GroupStepsTest, StepsOfOneEngineKeepAnotherOneNotOutForEver) {
  std::vector<gpushare::RuntimeOptions> all = Simulated(2);
  for (gpushare::RuntimeOptions& each : all) {
    each.device = "sim:realtime";
    each.drive = GPUSHARE_DRIVE_THREAD;
  }
  const std::unique_ptr<Group> group = Group::Create(all).value();
  const GroupSteps decode = group->CreateSteps(LcApp("decode")).value();
  const GroupSteps prefill = group->CreateSteps(LcApp("prefill")).value();
  StepOptions longer;
  longer.bound_ns = 400 * kMs;
  GroupStep first = decode.Begin(longer).value();
  EXPECT_STATUS_OK(first.End());
  // Its own app may go on while nobody else waits.
  EXPECT_TRUE(decode.Begin(Short()).ok());
  std::thread other([&] {
    StepOptions options = Short();
    options.deadline_ns = group->NowNs() + 10 * kS;
    EXPECT_STATUS_OK(prefill.Begin(options).status());
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const gpushare::Status next = decode.Begin(Short()).status();
  EXPECT_EQ(next.code(), GPUSHARE_UNAVAILABLE);
  EXPECT_NE(next.message().find("has the turn or waits for it"), std::string::npos)
      << next.message();
  other.join();
  EXPECT_STATUS_OK(group->Drain(group->NowNs() + 10 * kS));
  EXPECT_TRUE(decode.Begin(Short()).ok());
}

// A device has 1,024 launches in flight, and the end of a region is one.
TEST(GroupStepsTest, AStepWhoseEndHasNoRoomStaysOpenUntilItIsEndedAgain) {
  Decode decode(2);
  gpushare::AppOptions many = LcApp("flood");
  many.tasks_max = 4096;
  const gpushare::App flood = decode.group->On(1).CreateApp(many).value();
  const gpushare::Kernel kernel = RegisterGraph(decode.group->On(1), "flood", 10 * kUs).value();
  GroupStep step = decode.steps.Begin(Short()).value();
  for (int i = 0; i < 8; ++i) {
    const gpushare::Queue queue = flood.CreateQueue().value();
    for (int j = 0; j < 256; ++j) {
      gpushare::TaskOptions task;
      task.kernel = kernel.get();
      task.detached = 1;
      if (gpushare_submit_lc(queue.get(), &task, nullptr) != GPUSHARE_OK) break;
    }
    decode.Advance(kUs);
  }
  ASSERT_EQ(step.End().code(), GPUSHARE_RESOURCE_EXHAUSTED);
  EXPECT_EQ(step.Wait(0).code(), GPUSHARE_DEADLINE_EXCEEDED);
  EXPECT_EQ(decode.OpenRegions(), 2);
  EXPECT_EQ(decode.steps.Begin(Short()).status().code(), GPUSHARE_UNAVAILABLE);
  decode.Advance(100 * kMs);
  EXPECT_STATUS_OK(step.End());
  EXPECT_STATUS_OK(step.Wait(kS));
  EXPECT_STATUS_OK(decode.group->Drain(kS));
}

// The wait for a GPU that refuses is latency of the step.
TEST(GroupStepsTest, TheLatencyOfAStepCountsFromTheCallOfBegin) {
  Decode decode(2);
  decode.Advance(kMs);
  ASSERT_TRUE(decode.group->On(1).Quiesce(kS).ok());
  const gpushare::GroupKernel* kernel = Register(*decode.group, "query", {3 * kMs, 0});
  const gpushare::GroupLcQueue service = decode.group->CreateLcQueue(LcApp()).value();
  gpushare::LcWork work;
  work.kernel = kernel;
  work.done_user = decode.group.get();
  work.done = [](void* user, int, const gpushare_completion_record*) {
    EXPECT_TRUE(static_cast<Group*>(user)->On(1).Resume().ok());
  };
  EXPECT_STATUS_OK(service.Submit(work));
  StepOptions options = Short();
  options.deadline_ns = decode.group->NowNs() + 10 * kMs;
  GroupStep step = decode.steps.Begin(options).value();
  EXPECT_STATUS_OK(step.End());
  EXPECT_STATUS_OK(decode.group->Drain(kS));
  EXPECT_GT(decode.steps.AppOn(1).Stats().value().latency.max_ns, 2 * kMs);
}

TEST(GroupStepsTest, AStepThatNamesALostGpuIsRefusedAndOnesOnTheRestGoOn) {
  Decode decode(2, {nullptr, "device_lost_at_ns=100000"});
  StepsOptions rest;
  rest.gpus = {0};
  const GroupSteps alone = decode.group->CreateSteps(LcApp("alone"), rest).value();
  decode.Advance(200 * kUs);
  // Nobody has used GPU 1 since, so that nobody knows of its loss before this step.
  GroupStep step = decode.steps.Begin(Short()).value();
  static_cast<void>(step.End());
  EXPECT_EQ(step.Wait(kS).code(), GPUSHARE_ABORTED);
  EXPECT_STATUS_OK(decode.group->Drain(kS));
  EXPECT_EQ(decode.steps.Begin(Short()).status().code(), GPUSHARE_UNAVAILABLE);
  StepOptions options = Short();
  options.deadline_ns = decode.group->NowNs() + 10 * kMs;
  const int64_t began_ns = decode.group->NowNs();
  const gpushare::Status status = decode.steps.Begin(options).status();
  EXPECT_EQ(status.code(), GPUSHARE_UNAVAILABLE);
  EXPECT_LT(decode.group->NowNs(), began_ns + kMs);  // no wait: a lost GPU does not come back
  EXPECT_TRUE(alone.Begin(Short()).ok());
  EXPECT_STATUS_OK(decode.group->Drain(kS));
}

TEST(GroupStepsTest, AGpuThatIsLostUnderAStepAbortsIt) {
  Decode decode(2, {nullptr, "device_lost_at_ns=100000"});
  GroupStep step = decode.steps.Begin(Short()).value();
  decode.Advance(200 * kUs);
  static_cast<void>(step.End());
  const gpushare::Status status = step.Wait(kS);
  EXPECT_EQ(status.code(), GPUSHARE_ABORTED) << status.ToString();
  EXPECT_NE(status.message().find("GPU 1"), std::string::npos) << status.message();
  EXPECT_STATUS_OK(decode.group->Drain(kS));
}

// The next three: BE items in front of GPUs that a step is open on.
struct Beside : Decode {
  explicit Beside(int64_t be_beside_ns)
      : Decode(2, {}, OptionsOf(be_beside_ns)),
        kernel(Register(*group, "batch", {50 * kUs, 50 * kUs})),
        training(group->CreateBeQueue(BeApp()).value()) {}

  static StepsOptions OptionsOf(int64_t be_beside_ns) {
    StepsOptions options;
    options.be_beside_ns = be_beside_ns;
    return options;
  }
  // Items that the runtimes have got.
  int64_t HandedOver() const {
    return training.AppOn(0).Stats().value().submitted +
           training.AppOn(1).Stats().value().submitted;
  }
  void Submit() const {
    gpushare::BeWork work;
    work.kernel = kernel;
    EXPECT_STATUS_OK(training.Submit(work));
  }

  const gpushare::GroupKernel* kernel;
  gpushare::GroupBeQueue training;
};

TEST(GroupStepsTest, BeItemsAreHeldUntilTheStepHasEnded) {
  Beside beside(0);
  GroupStep step = beside.steps.Begin(Short()).value();
  beside.Submit();
  EXPECT_EQ(beside.HandedOver(), 0);
  EXPECT_STATUS_OK(step.End());
  EXPECT_STATUS_OK(step.Wait(kS));
  EXPECT_EQ(beside.HandedOver(), 1);
  EXPECT_STATUS_OK(beside.group->Drain(kS));
}

TEST(GroupStepsTest, ItemsThatLeaveWithinTheBoundAreHandedOver) {
  Beside beside(60 * kUs);
  GroupStep step = beside.steps.Begin(Short()).value();
  beside.Submit();
  EXPECT_EQ(beside.HandedOver(), 1);
  EXPECT_STATUS_OK(step.End());
  EXPECT_STATUS_OK(beside.group->Drain(kS));
}

// Nobody knows how long it stays, so that no hold lets it pass.
TEST(GroupStepsTest, ItemsOfUnknownDurationAreHeldByEveryBound) {
  for (const int64_t be_beside_ns : {int64_t{0}, 60 * kUs}) {
    const std::unique_ptr<Group> group = WithoutEstimates(2);
    StepsOptions options;
    options.be_beside_ns = be_beside_ns;
    const GroupSteps steps = group->CreateSteps(LcApp("decode"), options).value();
    const gpushare::GroupBeQueue training = group->CreateBeQueue(BeApp()).value();
    GroupStep step = steps.Begin(Short()).value();
    gpushare::BeWork work;
    work.kernel = RegisterUnknown(*group);
    EXPECT_STATUS_OK(training.Submit(work));
    EXPECT_EQ(training.AppOn(0).Stats().value().submitted, 0) << be_beside_ns;
    EXPECT_EQ(training.AppOn(1).Stats().value().submitted, 0) << be_beside_ns;
    EXPECT_STATUS_OK(step.End());
    EXPECT_STATUS_OK(group->Drain(group->NowNs() + 5 * kS));
  }
}

TEST(GroupStepsTest, ARefusedStepLetsBeItemsGoOn) {
  Beside beside(0);
  ASSERT_TRUE(beside.group->On(1).Quiesce(kS).ok());
  EXPECT_FALSE(beside.steps.Begin(Short()).ok());
  beside.Submit();
  EXPECT_EQ(beside.HandedOver(), 1);
  ASSERT_TRUE(beside.group->On(1).Resume().ok());
  EXPECT_STATUS_OK(beside.group->Drain(kS));
}

TEST(GroupStepsTest, NothingThatWaitsMayBeCalledInACallback) {
  Decode decode(2);
  const gpushare::GroupKernel* kernel = Register(*decode.group, "query", {50 * kUs, 50 * kUs});
  const gpushare::GroupLcQueue service = decode.group->CreateLcQueue(LcApp()).value();
  gpushare::LcWork work;
  work.kernel = kernel;
  work.done_user = &decode;
  work.done = [](void* user, int, const gpushare_completion_record*) {
    Decode& inside = *static_cast<Decode*>(user);
    EXPECT_EQ(inside.steps.Begin(Short()).status().code(), GPUSHARE_FAILED_PRECONDITION);
    EXPECT_EQ(inside.group->Drain().code(), GPUSHARE_FAILED_PRECONDITION);
    EXPECT_EQ(inside.group->PollUntil(kS).code(), GPUSHARE_FAILED_PRECONDITION);
    EXPECT_EQ(inside.group->Shutdown(kS).code(), GPUSHARE_FAILED_PRECONDITION);
  };
  EXPECT_STATUS_OK(service.Submit(work));
  EXPECT_STATUS_OK(decode.group->Drain(kS));
}

// An item that its runtime refuses ends on the thread that submits it, inside a callback too.
TEST(GroupStepsTest, OnTheThreadThatSubmitsCallbacksMayNotWaitEither) {
  const std::unique_ptr<Group> group = Group::Create(Simulated(2)).value();
  const gpushare::GroupBeQueue training = group->CreateBeQueue(BeApp()).value();
  struct Seen {
    Group* group;
    int done = 0;
    int prepared = 0;
  } seen{group.get()};
  gpushare::BeWork work;
  work.kernel = Register(*group, "batch", {50 * kUs, 50 * kUs});
  const std::array<char, 8192> arguments{};  // more than a runtime takes
  work.task.arguments = arguments.data();
  work.task.arguments_size_bytes = arguments.size();
  work.prepare_user = work.done_user = &seen;
  work.prepare = [](void* user, int, gpushare_task_options*) {
    Seen& inside = *static_cast<Seen*>(user);
    EXPECT_EQ(inside.group->Drain().code(), GPUSHARE_FAILED_PRECONDITION);
    ++inside.prepared;
  };
  work.done = [](void* user, int, const gpushare_completion_record* record) {
    Seen& inside = *static_cast<Seen*>(user);
    EXPECT_EQ(record->verdict, GPUSHARE_VERDICT_FAILED);
    EXPECT_EQ(inside.group->Drain().code(), GPUSHARE_FAILED_PRECONDITION);
    ++inside.done;
  };
  EXPECT_STATUS_OK(training.Submit(work));
  EXPECT_EQ(seen.prepared, 1);
  EXPECT_EQ(seen.done, 1);
  EXPECT_STATUS_OK(group->Drain(kS));
}

}  // namespace
}  // namespace gpushare_test
