// Nothing allocates on submit, plan and launch: every operator new on this thread is counted while
// a task goes from submit to complete, for each policy, after a warm-up that fills what is built
// lazily.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <utility>

#include "src/core/policy.h"
#include "src/core/scheduler.h"
#include "src/models/online_model.h"
#include "src/null/null_device.h"

namespace {

thread_local int64_t allocations = 0;
thread_local bool counting = false;

void* Allocate(std::size_t bytes, std::size_t alignment) {
  if (counting) ++allocations;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* const memory = std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
  if (memory == nullptr) std::abort();
  return memory;
}

constexpr std::size_t kDefaultAlignment = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace

// Never inlined: gcc would see free() beside operator new and warn of a mismatch.
#define GPUSHARE_NOT_INLINED __attribute__((noinline))

GPUSHARE_NOT_INLINED void* operator new(std::size_t bytes) {
  return Allocate(bytes, kDefaultAlignment);
}
GPUSHARE_NOT_INLINED void* operator new[](std::size_t bytes) {
  return Allocate(bytes, kDefaultAlignment);
}
GPUSHARE_NOT_INLINED void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<std::size_t>(alignment));
}
GPUSHARE_NOT_INLINED void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return Allocate(bytes, static_cast<std::size_t>(alignment));
}
GPUSHARE_NOT_INLINED void operator delete(void* memory) noexcept { std::free(memory); }
GPUSHARE_NOT_INLINED void operator delete[](void* memory) noexcept { std::free(memory); }
GPUSHARE_NOT_INLINED void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
GPUSHARE_NOT_INLINED void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
GPUSHARE_NOT_INLINED void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
GPUSHARE_NOT_INLINED void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
GPUSHARE_NOT_INLINED void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
GPUSHARE_NOT_INLINED void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace gpushare::core {
namespace {

class CountAllocations {
 public:
  CountAllocations() {
    allocations = 0;
    counting = true;
  }
  ~CountAllocations() { counting = false; }
  CountAllocations(const CountAllocations&) = delete;
  CountAllocations& operator=(const CountAllocations&) = delete;
  static int64_t count() { return allocations; }
};

class NoAllocationTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    auto device = null::MakeNullDevice();
    auto model = models::MakeOnlineModel(device->capabilities().profile);
    auto policy = MakePolicy(GetParam());
    ASSERT_TRUE(policy.ok()) << policy.status();
    auto scheduler = Scheduler::Create(SchedulerOptions(), std::move(device), std::move(model),
                                       *std::move(policy));
    ASSERT_TRUE(scheduler.ok()) << scheduler.status();
    scheduler_ = *std::move(scheduler);

    lc_queue_ = MakeQueue("service", AppClass::kLatencyCritical);
    be_queue_ = MakeQueue("train", AppClass::kBestEffort);
    KernelDesc kernel;
    kernel.name = "kernel";
    kernel.evictable = true;
    kernel.solo_hint_ns = 100'000;
    auto id = scheduler_->RegisterKernel(kernel);
    ASSERT_TRUE(id.ok()) << id.status();
    kernel_ = *id;
    for (int round = 0; round < 50; ++round) Round();
  }

  QueueId MakeQueue(const char* name, AppClass app_class) {
    AppOptions options;
    options.name = name;
    options.app_class = app_class;
    if (app_class == AppClass::kLatencyCritical) {
      options.p99_bound = 1.05;
      // Loose enough that no policy holds BE work back for longer than the rounds last.
      options.p99_alone_ns = 2'000'000'000;
      options.target_ns = 1'000'000'000;
    }
    auto app = scheduler_->CreateApp(options);
    EXPECT_TRUE(app.ok()) << app.status();
    auto queue = scheduler_->CreateQueue(*app);
    EXPECT_TRUE(queue.ok()) << queue.status();
    return *queue;
  }

  TaskSpec Spec(QueueId queue) const {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = kernel_;
    spec.block_tasks = 1024;
    spec.arguments = arguments_;
    spec.arguments_bytes = sizeof(arguments_);
    spec.detached = true;
    return spec;
  }

  // LC and BE tasks, small and large arguments, from submit until nothing is left to do.
  void Round() {
    for (int i = 0; i < 8; ++i) {
      EXPECT_TRUE(scheduler_->SubmitBe(Spec(be_queue_)).ok());
      TaskSpec large = Spec(be_queue_);
      large.arguments = large_arguments_;
      large.arguments_bytes = sizeof(large_arguments_);
      EXPECT_TRUE(scheduler_->SubmitBe(large).ok());
      EXPECT_TRUE(scheduler_->SubmitLc(Spec(lc_queue_)).ok());
    }
    for (int tick = 0; tick < 100; ++tick) scheduler_->Tick();
  }

  std::unique_ptr<Scheduler> scheduler_;
  QueueId lc_queue_;
  QueueId be_queue_;
  KernelId kernel_;
  unsigned char arguments_[64] = {};
  unsigned char large_arguments_[4096] = {};
};

TEST_P(NoAllocationTest, FromSubmitToCompleteNothingIsAllocated) {
  int64_t count = 0;
  {
    const CountAllocations counter;
    for (int round = 0; round < 20; ++round) Round();
    count = CountAllocations::count();
  }
  EXPECT_EQ(count, 0) << "operator new was called " << count << " times in 480 tasks.";
  const auto stats = scheduler_->Stats();
  EXPECT_EQ(stats.tasks_pending, 0) << "the rounds did not complete what they submitted";
}

INSTANTIATE_TEST_SUITE_P(EveryPolicy, NoAllocationTest, testing::ValuesIn(PolicyNames()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           std::string name = info.param;
                           for (char& letter : name) {
                             if (letter == ':') letter = '_';
                           }
                           return name;
                         });

// The counter counts: else the test above would pass whatever the flow does.
TEST(AllocationCounterTest, AnAllocationIsCounted) {
  int64_t count = 0;
  {
    const CountAllocations counter;
    const auto value = std::make_unique<int>(1);
    count = CountAllocations::count() * *value;
  }
  EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace gpushare::core
