// Memory that is exhausted while work runs: a submit is refused or its task completes, exactly
// once, whichever allocation fails, in both drives. The allocations of the thread behind submit and
// of every poll are among those that fail.

#include <gpushare/gpushare.h>
#include <gpushare/gpushare_policy.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <vector>

#include "tests/abi/api_fixture.h"
#include "tests/faults/failing_allocations.h"
#include "tests/faults/failing_sample.h"

namespace gpushare_test {
namespace {

struct Scenario {
  const char* name;
  DeviceCase device;
  const char* faults;
};

void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }

constexpr int kTasks = 120;

void Completed(void* user, const gpushare_completion_record* /*record*/) {
  static_cast<std::atomic<int>*>(user)->fetch_add(1);
}

void Enqueue(void* /*stream*/, void* /*user*/) {}

// Work of every kind on one runtime, and what became of it.
class Workload {
 public:
  explicit Workload(const Scenario& scenario) {
    api_.Open(scenario.device, scenario.faults, "adaptive");
    for (std::atomic<int>& count : completed_) count.store(0);
  }
  ~Workload() { api_.Close(); }
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  // Submits, waits, cancels and releases, and expects no more than that calls answer.
  void Run() {
    for (int i = 0; i < kTasks; ++i) {
      gpushare_ticket ticket = {0};
      const gpushare_status status = SubmitOne(i, &ticket);
      if (status != GPUSHARE_OK) {
        if (status != GPUSHARE_RESOURCE_EXHAUSTED) unexpected_ = status;
        continue;
      }
      accepted_[static_cast<size_t>(i)] = true;
      if (i % 11 == 0) gpushare_ticket_cancel(api_.runtime, ticket);
      if (i % 5 == 0) Wait(ticket);
      gpushare_ticket_release(api_.runtime, ticket);
    }
  }

  // Completes what was accepted, still without memory. A hang is found after at most 20 s.
  gpushare_status Drain() {
    int64_t now_ns = 0;
    gpushare_now_ns(api_.runtime, &now_ns);
    return gpushare_runtime_drain(api_.runtime, now_ns + int64_t{60} * 1000 * 1000 * 1000);
  }

  // Each callback has run once. With memory again.
  void ExpectEachAcceptedOnce() {
    EXPECT_EQ(unexpected_, GPUSHARE_OK);
    EXPECT_OK(gpushare_runtime_shutdown(api_.runtime, api_.Deadline()));
    for (size_t i = 0; i < kTasks; ++i) {
      EXPECT_EQ(completed_[i].load(), accepted_[i] ? 1 : 0) << "task " << i;
    }
  }

 private:
  gpushare_status SubmitOne(int i, gpushare_ticket* ticket) {
    static constexpr std::array<char, 4096> kArguments{};
    const int kind = i % 6;
    const bool lc = kind == 0;
    gpushare_task_options task = lc ? api_.LcTask() : api_.BeTask(500 + 37 * i);
    task.callback = &Completed;
    task.callback_user = &completed_[static_cast<size_t>(i)];
    if (kind == 1) {
      task.arguments = kArguments.data();
      task.arguments_size_bytes = kArguments.size();
    } else if (kind == 2) {
      MakePlain(task, GPUSHARE_TASK_MEMCPY);
      task.copy_size_bytes = 100'000;
      task.copy_direction = GPUSHARE_COPY_HOST_TO_DEVICE;
    } else if (kind == 3) {
      MakePlain(task, GPUSHARE_TASK_OPAQUE);
      task.enqueue = &Enqueue;
      task.declared_ns = 1000;
    }
    return lc ? gpushare_submit_lc(api_.lc_queue, &task, ticket)
              : gpushare_submit_be(api_.be_queue, &task, ticket);
  }

  static void MakePlain(gpushare_task_options& task, gpushare_task_kind kind) {
    task.kind = kind;
    task.kernel = nullptr;
    task.block_tasks = 0;
  }

  void Wait(gpushare_ticket ticket) {
    int64_t now_ns = 0;
    gpushare_now_ns(api_.runtime, &now_ns);
    const gpushare_status status = gpushare_ticket_wait(api_.runtime, ticket, now_ns + 2'000'000);
    if (status != GPUSHARE_OK && status != GPUSHARE_DEADLINE_EXCEEDED &&
        status != GPUSHARE_RESOURCE_EXHAUSTED) {
      unexpected_ = status;
    }
  }

  Api api_;
  std::array<std::atomic<int>, kTasks> completed_;
  std::array<bool, kTasks> accepted_{};
  gpushare_status unexpected_ = GPUSHARE_OK;
};

class AllocationFailureFlowTest : public ::testing::TestWithParam<Scenario> {
 protected:
  void SetUp() override {
    if (!CanFailAllocations()) GTEST_SKIP() << "A sanitizer replaces the allocator.";
  }
};

TEST_P(AllocationFailureFlowTest, EveryAcceptedTaskCompletesOnce) {
  for (const Failing failing : {Failing::kFromThereOn, Failing::kOnce}) {
    for (FailingSample sample; sample.more(); sample.Next()) {
      SCOPED_TRACE(testing::Message() << "allocation " << sample.number() << " fails " << failing);
      const ContextOfAbort context(GetParam().name, sample.number());
      Workload workload(GetParam());
      FailingAllocations failures(sample.number(), failing, Of::kEveryThread);
      workload.Run();
      const gpushare_status drained = workload.Drain();
      failures.Stop();
      EXPECT_EQ(drained, GPUSHARE_OK) << gpushare_last_error_message();
      workload.ExpectEachAcceptedOnce();
      if (failures.failed() == 0 || HasFailure()) break;
    }
  }
}

constexpr Scenario kScenarios[] = {
    {"SimPolled", {"sim", GPUSHARE_DRIVE_POLL}, nullptr},
    {"SimThreaded", {"sim", GPUSHARE_DRIVE_THREAD}, nullptr},
    {"NullPolled", {"null", GPUSHARE_DRIVE_POLL}, nullptr},
    {"NullThreaded", {"null", GPUSHARE_DRIVE_THREAD}, nullptr},
    {"RefusedLaunchesPolled", {"sim", GPUSHARE_DRIVE_POLL}, "launch_error=p0.2"},
    {"RefusedLaunchesThreaded", {"sim", GPUSHARE_DRIVE_THREAD}, "launch_error=p0.2"},
    {"HangsPolled", {"sim", GPUSHARE_DRIVE_POLL}, "hang=20"},
    {"BlockedEvictions", {"sim", GPUSHARE_DRIVE_POLL}, "blocked_eviction=p0.2"},
};

INSTANTIATE_TEST_SUITE_P(Scenarios, AllocationFailureFlowTest, ::testing::ValuesIn(kScenarios),
                         [](const ::testing::TestParamInfo<Scenario>& scenario) {
                           return std::string(scenario.param.name);
                         });

// Peaks, not the average: the first work of new apps and kernels, and more callbacks and opaque
// launches at once than any tick before.
TEST(AllocationFailurePeaksTest, WorkThatWasAcceptedNeedsNoMemory) {
  if (!CanFailAllocations()) GTEST_SKIP() << "A sanitizer replaces the allocator.";
  constexpr int kPeak = 3000;
  Api api;
  api.Open({"sim", GPUSHARE_DRIVE_POLL}, nullptr, "adaptive");
  std::vector<gpushare_app*> apps(4);
  std::vector<gpushare_queue*> queues(apps.size());
  for (size_t i = 0; i < apps.size(); ++i) {
    const std::string name = "burst " + std::to_string(i);
    const gpushare_app_options options = AppOptionsOf(GPUSHARE_CLASS_BEST_EFFORT, name.c_str());
    ASSERT_OK(gpushare_app_create(api.runtime, &options, &apps[i]));
    ASSERT_OK(gpushare_queue_create(apps[i], &queues[i]));
  }
  std::atomic<int> completed{0};
  for (int i = 0; i < kPeak; ++i) {
    gpushare_task_options task = api.BeTask(1);
    if (i % 2 == 0) {
      task.kernel = nullptr;
      task.kind = GPUSHARE_TASK_OPAQUE;
      task.block_tasks = 0;
      task.enqueue = &Enqueue;
      task.declared_ns = 1000;
    }
    task.callback = &Completed;
    task.callback_user = &completed;
    ASSERT_OK(gpushare_submit_be(queues[static_cast<size_t>(i) % queues.size()], &task, nullptr));
  }
  int64_t failed = 0;
  {
    FailingAllocations failures(1, Failing::kFromThereOn, Of::kEveryThread);
    gpushare_poll(api.runtime, nullptr);
    gpushare_poll(api.runtime, nullptr);
    gpushare_runtime_shutdown(api.runtime, api.Deadline());  // completes all that waits at once
    failures.Stop();
    failed = failures.failed();
  }
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(completed.load(), kPeak);
  for (size_t i = 0; i < apps.size(); ++i) {
    EXPECT_OK(gpushare_queue_release(queues[i]));
    EXPECT_OK(gpushare_app_release(apps[i]));
  }
  api.Close();
}

// The last release ends in a destructor, which must not throw.
TEST(AllocationFailureEndTest, AShutdownThatCutsOffWorkKeepsItsCode) {
  if (!CanFailAllocations()) GTEST_SKIP() << "A sanitizer replaces the allocator.";
  for (const gpushare_drive drive : {GPUSHARE_DRIVE_POLL, GPUSHARE_DRIVE_THREAD}) {
    Api api;
    api.Open({"sim", drive});
    ASSERT_OK(gpushare_runtime_quiesce(api.runtime, api.Deadline()));
    const gpushare_ticket held = api.Submit(api.BeTask(), false);
    FailingAllocations failures(1, Failing::kFromThereOn);
    const gpushare_status status = gpushare_runtime_shutdown(api.runtime, 0);
    failures.Stop();
    EXPECT_EQ(status, GPUSHARE_DEADLINE_EXCEEDED);
    EXPECT_EQ(api.Finish(held).verdict, GPUSHARE_VERDICT_SHUTDOWN);
    api.Close();
  }
}

TEST(AllocationFailureEndTest, TheDestroyFunctionOfAPolicyMayThrow) {
  if (!CanFailAllocations()) GTEST_SKIP() << "A sanitizer replaces the allocator.";
  Api api;
  api.Open({"sim", GPUSHARE_DRIVE_POLL});
  gpushare_policy_table table = GPUSHARE_POLICY_TABLE_INIT;
  table.name = "a policy";
  table.make_plan = [](void*, const gpushare_snapshot*, gpushare_plan*) {};
  table.destroy = [](void* user) {
    static_cast<std::unique_ptr<FailingAllocations>*>(user)->reset(
        new FailingAllocations(1, Failing::kFromThereOn));
    throw 1;
  };
  std::unique_ptr<FailingAllocations> failures;
  table.user = &failures;
  ASSERT_OK(gpushare_set_user_policy(api.runtime, &table));
  ASSERT_OK(gpushare_set_policy(api.runtime, "priority"));
  ASSERT_NE(failures, nullptr);
  failures->Stop();
  EXPECT_GT(failures->failed(), 0);
  api.Close();
}

}  // namespace
}  // namespace gpushare_test
