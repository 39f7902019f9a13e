// Opening a group, registering on its GPUs, and what is refused.

#include <chrono>
#include <gpushare/group/group.hpp>
#include <thread>

#include "tests/group/group_fixture.h"

namespace gpushare_test {
namespace {

using gpushare::Group;

TEST(GroupTest, OneCallOpensARuntimeForEachGpu) {
  gpushare::RuntimeOptions each = Simulated(1)[0];
  const std::unique_ptr<Group> group = Group::OfGpus(4, each).value();
  EXPECT_EQ(group->size(), 4);
  EXPECT_NE(group->On(0).get(), group->On(3).get());
  EXPECT_STATUS_OK(group->PollUntil(kMs));
  for (int gpu = 0; gpu < 4; ++gpu) EXPECT_EQ(group->On(gpu).NowNs(), kMs);
}

TEST(GroupTest, WhatCannotBeOneGroupIsRefusedWithTheGpu) {
  EXPECT_EQ(Group::Create({}).status().code(), GPUSHARE_INVALID_ARGUMENT);
  EXPECT_EQ(Group::OfGpus(17, Simulated(1)[0]).status().code(), GPUSHARE_INVALID_ARGUMENT);
  std::vector<gpushare::RuntimeOptions> options = Simulated(2);
  options[1].policy = "no_such";
  const gpushare::Status unknown = Group::Create(options).status();
  EXPECT_EQ(unknown.code(), GPUSHARE_INVALID_ARGUMENT);
  EXPECT_EQ(unknown.message().rfind("GPU 1: ", 0), 0u) << unknown.message();
  options = Simulated(2);
  options[1].device = "sim:realtime";
  EXPECT_EQ(Group::Create(options).status().code(), GPUSHARE_INVALID_ARGUMENT);
  options = Simulated(2);
  options[1].drive = GPUSHARE_DRIVE_THREAD;
  EXPECT_EQ(Group::Create(options).status().code(), GPUSHARE_INVALID_ARGUMENT);
}

TEST(GroupTest, AFactoryThatFailsNamesTheGpu) {
  const std::unique_ptr<Group> group = Group::Create(Simulated(2)).value();
  const auto fails_on_1 = [](const gpushare::Runtime& runtime, int gpu) {
    return RegisterGraph(runtime, "step", gpu == 1 ? -1 : kMs);
  };
  const gpushare::Status status = group->RegisterKernel("step", fails_on_1).status();
  EXPECT_EQ(status.code(), GPUSHARE_INVALID_ARGUMENT);
  EXPECT_EQ(status.message().rfind("GPU 1: ", 0), 0u) << status.message();
  // Nothing of it is left on GPU 0.
  EXPECT_NE(Register(*group, "step", {kMs, kMs}), nullptr);
  const auto nowhere = [](const gpushare::Runtime&, int) -> gpushare::Result<gpushare::Kernel> {
    return gpushare::Kernel();
  };
  EXPECT_EQ(group->RegisterKernel("no", nowhere).status().code(), GPUSHARE_INVALID_ARGUMENT);
}

TEST(GroupTest, AKernelKnowsItsDurationOnEachGpu) {
  const std::unique_ptr<Group> group = Group::Create(Simulated(2)).value();
  const gpushare::GroupKernel* kernel = Register(*group, "step", {100 * kUs, 300 * kUs});
  EXPECT_EQ(kernel->SoloNs(0, 0), 100 * kUs);
  EXPECT_EQ(kernel->SoloNs(1, 0), 300 * kUs);
  gpushare::KernelOptions sincos;
  sincos.name = "sincos_27us";  // of the profile: workers that leave at a block boundary
  const gpushare::GroupKernel* workers = group->RegisterKernel(sincos).value();
  EXPECT_GT(workers->SoloNs(0, 100'000), workers->SoloNs(0, 1'000));
  EXPECT_LT(workers->LeavesWithinNs(0, 10 * kMs), kMs);
}

TEST(GroupTest, AGpuWithoutAPredictionTakesThatOfAnother) {
  std::vector<gpushare::RuntimeOptions> options = Simulated(2);
  for (gpushare::RuntimeOptions& each : options) each.device = "null";
  const std::unique_ptr<Group> group = Group::Create(options).value();
  const auto known_on_0 = [](const gpushare::Runtime& runtime, int gpu) {
    if (gpu == 0) return RegisterGraph(runtime, "step", 100 * kUs);
    gpushare::KernelOptions unknown;
    unknown.name = "step";
    return runtime.RegisterKernel(unknown);
  };
  const gpushare::GroupKernel* kernel = group->RegisterKernel("step", known_on_0).value();
  EXPECT_EQ(kernel->SoloNs(1, 1), 100 * kUs);
  EXPECT_EQ(RegisterUnknown(*group)->SoloNs(1, 1), 0);
  // Less than 1 ns is not unknown.
  gpushare::SimulationRecord record;
  record.block_task_ns = 20;
  gpushare::KernelOptions tiny;
  tiny.name = "tiny";
  tiny.simulation = &record;
  EXPECT_EQ(group->RegisterKernel(tiny).value()->SoloNs(0, 1), 1);
}

TEST(GroupTest, WorkOfUnknownDurationGoesToEachGpuInTurn) {
  const std::unique_ptr<Group> group = WithoutEstimates(2);
  const gpushare::GroupLcQueue service = group->CreateLcQueue(LcApp()).value();
  const gpushare::GroupBeQueue training = group->CreateBeQueue(BeApp()).value();
  gpushare::LcWork query;
  query.kernel = RegisterUnknown(*group);
  gpushare::BeWork item;
  item.kernel = query.kernel;
  for (int i = 0; i < 10; ++i) EXPECT_STATUS_OK(service.Submit(query));
  for (int i = 0; i < 2; ++i) EXPECT_STATUS_OK(training.Submit(item));
  for (int gpu = 0; gpu < 2; ++gpu) {
    EXPECT_EQ(service.AppOn(gpu).Stats().value().submitted, 5);
    EXPECT_EQ(training.AppOn(gpu).Stats().value().submitted, 1);
  }
  EXPECT_STATUS_OK(group->Drain(group->NowNs() + 5 * kS));
}

TEST(GroupTest, ADurationThatNoSumCouldHoldIsRefused) {
  const std::unique_ptr<Group> group = Group::Create(Simulated(2)).value();
  const gpushare::GroupLcQueue service = group->CreateLcQueue(LcApp()).value();
  gpushare::LcWork work;
  work.kernel = Register(*group, "step", {kMs, kMs});
  for (const int64_t expected_ns : {int64_t{-1}, INT64_MAX}) {
    work.expected_ns = expected_ns;
    const gpushare::Status status = service.Submit(work);
    EXPECT_EQ(status.code(), GPUSHARE_INVALID_ARGUMENT);
    EXPECT_NE(status.message().find(std::to_string(expected_ns)), std::string::npos);
  }
}

TEST(GroupTest, OptionsOutOfTheirRangeAreRefused) {
  const std::unique_ptr<Group> group = Group::Create(Simulated(2)).value();
  gpushare::LcQueueOptions lc;
  lc.queues_per_gpu = 0;
  EXPECT_EQ(group->CreateLcQueue(LcApp(), lc).status().code(), GPUSHARE_INVALID_ARGUMENT);
  gpushare::BeQueueOptions be;
  be.window = 65;
  EXPECT_EQ(group->CreateBeQueue(BeApp(), be).status().code(), GPUSHARE_INVALID_ARGUMENT);
  be.window = 8;
  gpushare::AppOptions few = BeApp();
  few.tasks_max = 7;
  EXPECT_EQ(group->CreateBeQueue(few, be).status().code(), GPUSHARE_INVALID_ARGUMENT);
  EXPECT_EQ(group->CreateBeQueue(LcApp()).status().code(), GPUSHARE_INVALID_ARGUMENT);
  EXPECT_EQ(group->CreateLcQueue(BeApp()).status().code(), GPUSHARE_INVALID_ARGUMENT);
  gpushare::AppOptions many = LcApp();
  many.tasks_max = INT32_MAX;
  EXPECT_EQ(group->CreateLcQueue(many).status().code(), GPUSHARE_INVALID_ARGUMENT);
  gpushare::StepsOptions steps;
  steps.gpus = {1, 0};
  EXPECT_EQ(group->CreateSteps(LcApp(), steps).status().code(), GPUSHARE_INVALID_ARGUMENT);
  steps.gpus = {0, 2};
  EXPECT_EQ(group->CreateSteps(LcApp(), steps).status().code(), GPUSHARE_INVALID_ARGUMENT);
  steps.gpus = {0, 1};
  for (const int64_t be_beside_ns : {int64_t{-1}, 3600 * kS}) {
    steps.be_beside_ns = be_beside_ns;
    EXPECT_EQ(group->CreateSteps(LcApp(), steps).status().code(), GPUSHARE_INVALID_ARGUMENT);
  }
  EXPECT_TRUE(group->CreateLcQueue(LcApp()).ok());  // nothing of the refused ones is left
}

TEST(GroupTest, PreparationFillsInWhatIsOfOneGpu) {
  const std::unique_ptr<Group> group = Group::Create(Simulated(2)).value();
  gpushare::KernelOptions sincos;
  sincos.name = "sincos_27us";
  const gpushare::GroupKernel* kernel = group->RegisterKernel(sincos).value();
  const gpushare::GroupLcQueue queue = group->CreateLcQueue(LcApp()).value();
  std::array<int64_t, 2> prepared = {0, 0};
  gpushare::LcWork work;
  work.kernel = kernel;
  work.prepare_user = &prepared;
  work.prepare = [](void* user, int gpu, gpushare_task_options* task) {
    ++(*static_cast<std::array<int64_t, 2>*>(user))[static_cast<size_t>(gpu)];
    task->block_tasks = 1000 * (gpu + 1);
  };
  for (int i = 0; i < 6; ++i) EXPECT_STATUS_OK(queue.Submit(work));
  EXPECT_STATUS_OK(group->Drain(kS));
  for (int gpu = 0; gpu < 2; ++gpu) {
    const int64_t count = prepared[static_cast<size_t>(gpu)];
    EXPECT_GT(count, 0);
    EXPECT_EQ(queue.AppOn(gpu).Stats().value().block_tasks, 1000 * (gpu + 1) * count);
  }
}

// The clocks of real time are one, so that no GPU is ever behind it: each is driven all the same.
TEST(GroupTest, EveryPolledGpuIsDrivenInRealTimeByAnyThreadThatWaits) {
  std::vector<gpushare::RuntimeOptions> options = Simulated(3);
  for (gpushare::RuntimeOptions& each : options) each.device = "sim:realtime";
  const std::unique_ptr<Group> group = Group::Create(options).value();
  const gpushare::GroupKernel* kernel = Register(*group, "step", {100 * kUs, 100 * kUs, 100 * kUs});
  const gpushare::GroupLcQueue queue = group->CreateLcQueue(LcApp()).value();
  gpushare::LcWork work;
  work.kernel = kernel;
  for (int i = 0; i < 12; ++i) EXPECT_STATUS_OK(queue.Submit(work));
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] { EXPECT_STATUS_OK(group->Drain(group->NowNs() + 5 * kS)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (int gpu = 0; gpu < 3; ++gpu) EXPECT_EQ(queue.AppOn(gpu).Stats().value().completed, 4);
  // A time that has passed drives each runtime once.
  for (int i = 0; i < 3; ++i) EXPECT_STATUS_OK(queue.Submit(work));
  for (int i = 0; i < 1000 && !group->Drain(0).ok(); ++i) {
    EXPECT_STATUS_OK(group->PollUntil(0));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_STATUS_OK(group->Drain(0));
}

// It would lose the completion of the work if the group set its fields before.
TEST(GroupTest, APreparationMayAssignTheWholeTask) {
  const std::unique_ptr<Group> group = Group::Create(Simulated(2)).value();
  gpushare::KernelOptions sincos;
  sincos.name = "sincos_27us";
  const gpushare::GroupKernel* kernel = group->RegisterKernel(sincos).value();
  const gpushare::GroupLcQueue service = group->CreateLcQueue(LcApp()).value();
  const gpushare::GroupBeQueue training = group->CreateBeQueue(BeApp()).value();
  const int64_t solo_ns = kernel->SoloNs(0, 50'000);
  const auto assign = [](void*, int, gpushare_task_options* task) {
    gpushare::TaskOptions own;
    own.block_tasks = 50'000;
    *task = own;
  };
  Ends ends(4);
  for (size_t i = 0; i < 2; ++i) {
    gpushare::LcWork query;
    query.kernel = kernel;
    query.prepare = assign;
    ends.Watch(i, &query);
    EXPECT_STATUS_OK(service.Submit(query));
    gpushare::BeWork item;
    item.kernel = kernel;
    item.prepare = assign;
    ends.Watch(2 + i, &item);
    EXPECT_STATUS_OK(training.Submit(item));
  }
  EXPECT_STATUS_OK(group->Drain(kS));
  ends.ExpectAll(GPUSHARE_VERDICT_OK);
  // What is learnt of the kernel is for the block tasks that ran.
  EXPECT_NEAR(static_cast<double>(kernel->SoloNs(0, 50'000)), static_cast<double>(solo_ns),
              0.2 * static_cast<double>(solo_ns));
}

// A drain would wait for ever for work whose end was not counted.
TEST(GroupTest, WhatACallbackThrowsEndsNoCount) {
  const std::unique_ptr<Group> group = Group::Create(Simulated(2)).value();
  const gpushare::GroupLcQueue service = group->CreateLcQueue(LcApp()).value();
  const gpushare::GroupBeQueue training = group->CreateBeQueue(BeApp()).value();
  const gpushare::GroupKernel* kernel = Register(*group, "query", {kMs, kMs});
  const gpushare::GroupKernel* batch = Register(*group, "batch", {kMs, kMs});
  const auto throws = [](void*, int, const gpushare_completion_record*) { throw 1; };
  gpushare::LcWork query;
  query.kernel = kernel;
  query.done = throws;
  gpushare::BeWork item;
  item.kernel = batch;
  item.done = throws;
  EXPECT_STATUS_OK(service.Submit(query));
  for (int i = 0; i < 8; ++i) EXPECT_STATUS_OK(training.Submit(item));  // more than both windows
  EXPECT_STATUS_OK(group->Drain(kS));
  query.prepare = [](void*, int, gpushare_task_options*) { throw 1; };
  EXPECT_EQ(service.Submit(query).code(), GPUSHARE_INVALID_ARGUMENT);
  Ends ends(1);
  item.prepare = query.prepare;
  ends.Watch(0, &item);
  EXPECT_STATUS_OK(training.Submit(item));
  ends.ExpectAll(GPUSHARE_VERDICT_FAILED);
  EXPECT_STATUS_OK(group->Drain(2 * kS));
}

TEST(GroupTest, DrainSaysHowMuchIsPendingAtItsDeadline) {
  const std::unique_ptr<Group> group = Group::Create(Simulated(2)).value();
  const gpushare::GroupKernel* kernel = Register(*group, "step", {kMs, kMs});
  const gpushare::GroupLcQueue queue = group->CreateLcQueue(LcApp()).value();
  gpushare::LcWork work;
  work.kernel = kernel;
  for (int i = 0; i < 8; ++i) EXPECT_STATUS_OK(queue.Submit(work));
  const gpushare::Status status = group->Drain(100 * kUs);
  EXPECT_EQ(status.code(), GPUSHARE_DEADLINE_EXCEEDED);
  EXPECT_NE(status.message().find("8 queries"), std::string::npos) << status.message();
  EXPECT_STATUS_OK(group->Drain(kS));
}

}  // namespace
}  // namespace gpushare_test
