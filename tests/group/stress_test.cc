// Threads of clients, BE producers and steps on GPUs in real time, of which one is lost: everything
// ends, exactly once, and in bounded time. A deadlock between runtimes would end no wait here.

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <thread>

#include "tests/group/group_fixture.h"

namespace gpushare_test {
namespace {

using gpushare::Group;

// Longer than any machine needs; short enough to name the test rather than hang the suite.
constexpr int64_t kAtMostNs = 60 * kS;

// Ends the process with a message if the scope takes longer: a deadlock cannot be joined.
class Watchdog {
 public:
  Watchdog() : thread_([this] { Watch(); }) {}
  ~Watchdog() {
    done_ = true;
    thread_.join();
  }

 private:
  void Watch() {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::nanoseconds(kAtMostNs);
    while (!done_) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      if (std::chrono::steady_clock::now() < deadline) continue;
      ADD_FAILURE() << "The group has not come to an end: a deadlock.";
      std::abort();
    }
  }
  std::atomic<bool> done_{false};
  std::thread thread_;
};

struct Counts {
  std::atomic<int> accepted{0};
  std::atomic<int> ended{0};
  std::atomic<int> ok{0};
  std::function<void()> at_end;  // may be empty; runs inside the callback

  template <class Work>
  void Watch(Work* work) {
    work->done_user = this;
    work->done = [](void* user, int, const gpushare_completion_record* record) {
      Counts& counts = *static_cast<Counts*>(user);
      ++counts.ended;
      if (record->verdict == GPUSHARE_VERDICT_OK) ++counts.ok;
      if (counts.at_end) counts.at_end();
    };
  }
};

std::vector<gpushare::RuntimeOptions> RealTime(const char* faults_of_last) {
  std::vector<gpushare::RuntimeOptions> options = Simulated(3);
  for (gpushare::RuntimeOptions& each : options) {
    each.device = "sim:realtime";
    each.drive = GPUSHARE_DRIVE_THREAD;
  }
  options.back().sim_faults = faults_of_last;
  return options;
}

// Submits until `count` were accepted; what is refused for now is tried again.
template <class Queue, class Work>
void Produce(const Queue& queue, Work work, int count, Counts* counts) {
  counts->Watch(&work);
  for (int i = 0; i < count;) {
    const gpushare::Status status = queue.Submit(work);
    if (status.ok()) {
      ++counts->accepted;
      ++i;
      if (i % 8 != 0) continue;
    } else {
      ASSERT_TRUE(status.code() == GPUSHARE_UNAVAILABLE ||
                  status.code() == GPUSHARE_RESOURCE_EXHAUSTED)
          << status.ToString();
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
}

int Step(const Group& group, const gpushare::GroupSteps& steps, int count) {
  int ended = 0;
  for (int i = 0; i < count; ++i) {
    gpushare::StepOptions options;
    options.bound_ns = 20 * kUs;
    options.deadline_ns = group.NowNs() + 20 * kMs;
    gpushare::Result<gpushare::GroupStep> step = steps.Begin(options);
    if (!step.ok()) continue;
    static_cast<void>(step->End());
    if (step->Wait(group.NowNs() + 10 * kS).code() != GPUSHARE_DEADLINE_EXCEEDED) ++ended;
  }
  return ended;
}

void RunAll(const char* faults_of_last) {
  const Watchdog watchdog;
  Counts lc;
  Counts be;
  Counts chained;
  int decoded = 0;
  int prefilled = 0;
  const std::unique_ptr<Group> group = Group::Create(RealTime(faults_of_last)).value();
  const gpushare::GroupKernel* query = Register(*group, "query", {30 * kUs, 30 * kUs, 30 * kUs});
  const gpushare::GroupKernel* batch = Register(*group, "batch", {80 * kUs, 80 * kUs, 80 * kUs});
  const gpushare::GroupLcQueue service = group->CreateLcQueue(LcApp()).value();
  const gpushare::GroupBeQueue training = group->CreateBeQueue(BeApp()).value();
  gpushare::StepsOptions first_two;
  first_two.gpus = {0, 1};
  const gpushare::GroupSteps decode = group->CreateSteps(LcApp("decode"), first_two).value();
  gpushare::StepsOptions second;
  second.gpus = {1};
  const gpushare::GroupSteps prefill = group->CreateSteps(LcApp("prefill"), second).value();
  // Each end of an item, on the thread of its runtime, submits a query that may go to another one.
  be.at_end = [&] {
    gpushare::LcWork work;
    work.kernel = query;
    work.repeatable = true;
    chained.Watch(&work);
    if (service.Submit(work).ok()) ++chained.accepted;
  };
  std::vector<std::thread> threads;
  for (int client = 1; client <= 3; ++client) {
    threads.emplace_back([&, client] {
      gpushare::LcWork work;
      work.kernel = query;
      work.repeatable = true;
      work.client = client - 1;  // the first has no order
      Produce(service, work, 150, &lc);
    });
  }
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      gpushare::BeWork work;
      work.kernel = batch;
      work.repeatable = true;
      Produce(training, work, 60, &be);
    });
  }
  threads.emplace_back([&] { decoded = Step(*group, decode, 30); });
  threads.emplace_back([&] { prefilled = Step(*group, prefill, 30); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_STATUS_OK(group->Drain(group->NowNs() + kAtMostNs / 2));
  EXPECT_EQ(lc.accepted, 450);
  EXPECT_EQ(lc.ended, lc.accepted);
  EXPECT_EQ(lc.ok, lc.accepted);
  EXPECT_GT(chained.accepted, 0);
  EXPECT_EQ(chained.ok, chained.accepted);
  EXPECT_EQ(be.accepted, 120);
  EXPECT_EQ(be.ended, be.accepted);
  EXPECT_EQ(be.ok, be.accepted);
  EXPECT_EQ(group->IsLost(2), faults_of_last != nullptr);
  EXPECT_GT(decoded, 0);
  EXPECT_GT(prefilled, 0);
}

TEST(GroupStressTest, ClientsProducersAndStepsEndInBoundedTime) { RunAll(nullptr); }

TEST(GroupStressTest, AGpuThatIsLostMeanwhileHoldsNobody) { RunAll("device_lost=20"); }

// A shutdown with everything in flight: what was accepted ends once.
TEST(GroupStressTest, AShutdownAmongSubmitsEndsEverythingOnce) {
  const Watchdog watchdog;
  Counts lc;
  Counts be;
  {
    const std::unique_ptr<Group> group = Group::Create(RealTime(nullptr)).value();
    const gpushare::GroupKernel* step = Register(*group, "step", {kMs, kMs, kMs});
    const gpushare::GroupLcQueue service = group->CreateLcQueue(LcApp()).value();
    const gpushare::GroupBeQueue training = group->CreateBeQueue(BeApp()).value();
    const auto submit_until_refused = [&](const auto& queue, auto work, Counts* counts) {
      work.kernel = step;
      counts->Watch(&work);
      while (true) {
        const gpushare_status code = queue.Submit(work).code();
        if (code == GPUSHARE_OK) ++counts->accepted;
        if (code == GPUSHARE_FAILED_PRECONDITION) return;
        std::this_thread::sleep_for(std::chrono::microseconds(100));
      }
    };
    std::thread clients([&] { submit_until_refused(service, gpushare::LcWork(), &lc); });
    std::thread producers([&] { submit_until_refused(training, gpushare::BeWork(), &be); });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    static_cast<void>(group->Shutdown(group->NowNs() + 5 * kMs));
    clients.join();
    producers.join();
  }
  EXPECT_GT(lc.accepted, 0);
  EXPECT_EQ(lc.ended, lc.accepted);
  EXPECT_EQ(be.ended, be.accepted);
}

}  // namespace
}  // namespace gpushare_test
