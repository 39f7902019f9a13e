// Seeded: an application's policy that fills its plans with random entries. It never harms the
// runtime: every task completes once, none fails or runs a block task twice, and another policy
// drains what it left. Some seeds add faults of the device.
//
// GPUSHARE_FAULT_SEEDS sets the number of seeds, GPUSHARE_FAULT_SEED replays one.

#include <gpushare/gpushare_policy.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/abi/api_fixture.h"

namespace gpushare_test {
namespace {

constexpr int kDefaultSeeds = 4;
constexpr int kTasks = 120;

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}
  uint64_t Below(uint64_t bound) { return engine_() % bound; }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  uint64_t Bits() { return engine_(); }
  int64_t Wide() {
    constexpr int64_t kValues[] = {0,
                                   1,
                                   -1,
                                   2,
                                   7,
                                   1000,
                                   100'000,
                                   1 << 20,
                                   std::numeric_limits<int64_t>::max(),
                                   std::numeric_limits<int64_t>::min()};
    return kValues[Below(std::size(kValues))];
  }
  int32_t Narrow() {
    constexpr int32_t kValues[] = {0,
                                   1,
                                   -1,
                                   2,
                                   3,
                                   4,
                                   5,
                                   8,
                                   31,
                                   32,
                                   33,
                                   64,
                                   128,
                                   1000,
                                   std::numeric_limits<int32_t>::max(),
                                   std::numeric_limits<int32_t>::min()};
    return kValues[Below(std::size(kValues))];
  }

 private:
  std::mt19937_64 engine_;
};

// The policy. One thread plans at a time.
struct Wild {
  explicit Wild(uint64_t seed) : random(seed) {}
  Random random;
  int64_t plans = 0;
  int64_t entries = 0;
};

// Mostly a task of the snapshot, else any number.
gpushare_ticket AnyTicket(Random& random, const gpushare_snapshot& s) {
  const uint64_t kind = random.Below(10);
  if (kind < 6 && s.head_count > 0) {
    return GPUSHARE_AT(gpushare_head_view, s.heads, s.head_stride, random.Below(s.head_count))
        ->task;
  }
  if (kind < 9 && s.running_count > 0) {
    return GPUSHARE_AT(gpushare_running_view, s.running, s.running_stride,
                       random.Below(s.running_count))
        ->task.task;
  }
  return {random.OneIn(3) ? 0 : random.Bits()};
}

int32_t AnyPlace(Random& random, const gpushare_snapshot& s) {
  return random.OneIn(2) ? random.Narrow() : static_cast<int32_t>(random.Below(s.place_count + 1));
}

void AddLaunches(Random& random, const gpushare_snapshot& s, gpushare_plan& plan) {
  plan.launch_count = static_cast<uint32_t>(random.Below(12));
  for (uint32_t i = 0; i < plan.launch_count; ++i) {
    gpushare_planned_launch& launch = plan.launches[i];
    launch.task = AnyTicket(random, s);
    if (random.OneIn(6)) launch.fused_with = AnyTicket(random, s);
    if (random.OneIn(3)) launch.blocks_max = random.Wide();
    if (random.OneIn(3)) launch.count = random.Narrow();
    launch.form = random.OneIn(4) ? random.Narrow() : static_cast<int32_t>(random.Below(9));
    launch.place = AnyPlace(random, s);
    launch.lane_class = random.OneIn(5) ? random.Narrow() : static_cast<int32_t>(random.Below(4));
    if (random.OneIn(3)) launch.workers = random.Narrow();
    if (random.OneIn(2)) launch.reason = random.Narrow();
    if (random.OneIn(30)) launch.reserved[random.Below(2)] = 1;
  }
  if (random.OneIn(40)) plan.launch_count = random.OneIn(2) ? 129 : ~0U;
}

void AddEvictionsAndHolds(Random& random, const gpushare_snapshot& s, gpushare_plan& plan) {
  plan.eviction_count = static_cast<uint32_t>(random.Below(6));
  for (uint32_t i = 0; i < plan.eviction_count; ++i) {
    plan.evictions[i] = {AnyTicket(random, s), AnyPlace(random, s),
                         random.OneIn(2) ? 0 : random.Narrow(), random.Narrow(), 0};
  }
  if (random.OneIn(40)) plan.eviction_count = ~0U;
  plan.hold_count = static_cast<uint32_t>(random.Below(6));
  for (uint32_t i = 0; i < plan.hold_count; ++i) {
    plan.holds[i] = {AnyTicket(random, s), random.Wide(), random.Wide(), random.Narrow(), 0};
  }
  if (random.OneIn(40)) plan.hold_count = 1U << 31;
}

void MakeWildPlan(void* user, const gpushare_snapshot* snapshot, gpushare_plan* plan) {
  Wild& wild = *static_cast<Wild*>(user);
  Random& random = wild.random;
  ++wild.plans;
  AddLaunches(random, *snapshot, *plan);
  AddEvictionsAndHolds(random, *snapshot, *plan);
  wild.entries += plan->launch_count % 129 + plan->eviction_count % 129 + plan->hold_count % 129;
  for (uint32_t i = 0; i < snapshot->lc_app_count; ++i) {
    gpushare_lc_route& route = plan->routes[i];
    route.place = random.OneIn(2) ? 0 : random.Narrow();
    route.lane_class = random.OneIn(2) ? GPUSHARE_LANE_LC : random.Narrow();
    route.fast_path = random.OneIn(3) ? random.Narrow() : static_cast<int32_t>(random.Below(2));
    route.evict_overlapping =
        random.OneIn(3) ? random.Narrow() : static_cast<int32_t>(random.Below(2));
  }
  for (uint32_t i = 0; i < snapshot->lc_app_count; ++i) {
    plan->waits_for_empty_sms[i] = random.OneIn(4) ? random.Narrow() : 0;
  }
  plan->arrangement.split =
      random.OneIn(4) ? random.Narrow() : static_cast<int32_t>(random.Below(4)) - 1;
  plan->arrangement.trial_kernel =
      random.OneIn(4) ? random.Narrow() : static_cast<int32_t>(random.Below(3)) - 1;
  plan->arrangement.segments =
      random.OneIn(4) ? random.Narrow() : static_cast<int32_t>(random.Below(3));
  plan->choice.kind = random.OneIn(4) ? random.Narrow() : static_cast<int32_t>(random.Below(4));
  plan->choice.tasks[0] = AnyTicket(random, *snapshot);
  plan->choice.chosen = random.Wide();
  plan->choice.shift_ns = random.Wide();
  plan->replan_at_ns =
      random.OneIn(3) ? random.Wide() : snapshot->now_ns + static_cast<int64_t>(random.Below(1e5));
  if (random.OneIn(100)) plan->struct_size = static_cast<uint32_t>(random.Narrow());
}

struct Submitted {
  int callbacks = 0;
  int64_t block_tasks = 0;  // 0: not a kernel
  gpushare_completion_record record = {};
};

class World {
 public:
  World(uint64_t seed, gpushare_drive drive)
      : random_(seed), wild_(std::make_unique<Wild>(seed + 1)), drive_(drive) {
    faults_ = seed % 4 == 0 ? "launch_failure=p0.02,blocked_eviction=p0.05,launch_error=p0.02" : "";
  }

  void Run() {
    ASSERT_NO_FATAL_FAILURE(Open());
    gpushare_policy_table table = GPUSHARE_POLICY_TABLE_INIT;
    table.name = "wild";
    table.make_plan = MakeWildPlan;
    table.user = wild_.get();
    ASSERT_OK(gpushare_set_user_policy(runtime_, &table));
    for (int i = 0; i < kTasks; ++i) {
      SubmitOne();
      if (random_.OneIn(2)) {
        EXPECT_OK(
            gpushare_poll_until(runtime_, NowNs() + static_cast<int64_t>(random_.Below(4e5))));
      }
    }
    ASSERT_OK(gpushare_set_policy(runtime_, "priority"));
    EXPECT_OK(gpushare_runtime_drain(runtime_, NowNs() + int64_t{10'000'000'000}));
    EXPECT_OK(gpushare_runtime_shutdown(runtime_, NowNs() + 1'000'000'000));
    Check();
    Close();
  }

  const Wild& wild() const { return *wild_; }

 private:
  void Open() {
    gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
    options.device = "sim";
    options.drive = drive_;
    options.seed = random_.Bits();
    options.sim_faults = faults_.empty() ? nullptr : faults_.c_str();
    ASSERT_OK(gpushare_runtime_create(&options, &runtime_));
    gpushare_app_options lc = AppOptionsOf(GPUSHARE_CLASS_LATENCY_CRITICAL, "service");
    lc.p99_bound = 1.05;
    lc.p99_alone_ns = 2'000'000;
    const gpushare_app_options be = AppOptionsOf(GPUSHARE_CLASS_BEST_EFFORT, "training");
    ASSERT_OK(gpushare_app_create(runtime_, &lc, &apps_[0]));
    ASSERT_OK(gpushare_app_create(runtime_, &be, &apps_[1]));
    for (size_t i = 0; i < queues_.size(); ++i) {
      ASSERT_OK(gpushare_queue_create(apps_[i < 2 ? 0 : 1], &queues_[i]));
    }
    const char* const names[] = {"chain1", "decode16", "sincos_27us", "streaming_59us", "gemm_mma"};
    for (size_t i = 0; i < kernels_.size(); ++i) {
      gpushare_kernel_options kernel = GPUSHARE_KERNEL_OPTIONS_INIT;
      kernel.name = names[i];
      ASSERT_OK(gpushare_kernel_register(runtime_, &kernel, &kernels_[i]));
    }
    gpushare_fused_kernel_options fused = GPUSHARE_FUSED_KERNEL_OPTIONS_INIT;
    fused.name = "pair";
    fused.tensor_part = kernels_[4];
    fused.cuda_part = kernels_[2];
    ASSERT_OK(gpushare_fused_kernel_register(runtime_, &fused, &fused_));
  }

  void SubmitOne() {
    submitted_.push_back(std::make_unique<Submitted>());
    Submitted& entry = *submitted_.back();
    gpushare_task_options task = GPUSHARE_TASK_OPTIONS_INIT;
    task.detached = 1;
    task.callback_user = &entry;
    task.callback = [](void* user, const gpushare_completion_record* record) {
      auto* const mine = static_cast<Submitted*>(user);
      ++mine->callbacks;
      mine->record = *record;
    };
    const uint64_t kind = random_.Below(8);
    if (kind < 2) {
      task.kernel = kernels_[random_.Below(2)];
      EXPECT_OK(gpushare_submit_lc(queues_[random_.Below(2)], &task, nullptr));
      return;
    }
    if (kind == 2) {
      task.kind = GPUSHARE_TASK_MEMCPY;
      task.copy_direction = 1 + static_cast<int32_t>(random_.Below(3));
      task.copy_size_bytes = 1 + static_cast<int64_t>(random_.Below(10'000'000));
    } else if (kind == 3) {
      task.kind = GPUSHARE_TASK_OPAQUE;
      task.enqueue = [](void*, void*) {};
      task.declared_ns = 1000;
    } else {
      task.kernel = kernels_[2 + random_.Below(3)];
      task.block_tasks = entry.block_tasks = 1 + static_cast<int64_t>(random_.Below(30'000));
    }
    EXPECT_OK(gpushare_submit_be(queues_[2 + random_.Below(3)], &task, nullptr));
  }

  void Check() const {
    for (size_t i = 0; i < submitted_.size(); ++i) {
      const Submitted& entry = *submitted_[i];
      EXPECT_EQ(entry.callbacks, 1) << "task " << i;
      const gpushare_verdict verdict = entry.record.verdict;
      // Without faults of the device nothing may fail.
      if (faults_.empty()) {
        EXPECT_EQ(verdict, GPUSHARE_VERDICT_OK)
            << "task " << i << " of kind " << entry.record.kind << " in form " << entry.record.form;
      }
      if (verdict == GPUSHARE_VERDICT_OK && entry.block_tasks > 0) {
        EXPECT_EQ(entry.record.block_tasks, entry.block_tasks) << "task " << i;
      }
    }
  }

  void Close() const {
    EXPECT_OK(gpushare_fused_kernel_release(fused_));
    for (gpushare_kernel* const kernel : kernels_) EXPECT_OK(gpushare_kernel_release(kernel));
    for (gpushare_queue* const queue : queues_) EXPECT_OK(gpushare_queue_release(queue));
    for (gpushare_app* const app : apps_) EXPECT_OK(gpushare_app_release(app));
    EXPECT_OK(gpushare_runtime_release(runtime_));
  }

  int64_t NowNs() const {
    int64_t now_ns = 0;
    EXPECT_OK(gpushare_now_ns(runtime_, &now_ns));
    return now_ns;
  }

  Random random_;
  std::unique_ptr<Wild> wild_;
  const gpushare_drive drive_;
  std::string faults_;
  gpushare_runtime* runtime_ = nullptr;
  std::array<gpushare_app*, 2> apps_{};
  std::array<gpushare_queue*, 5> queues_{};  // two of the LC app
  std::array<gpushare_kernel*, 5> kernels_{};
  gpushare_fused_kernel* fused_ = nullptr;
  std::vector<std::unique_ptr<Submitted>> submitted_;
};

uint64_t Environment(const char* name, uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class UserPolicyFuzz : public testing::TestWithParam<gpushare_drive> {};

TEST_P(UserPolicyFuzz, ARandomPlanHarmsNobody) {
  const uint64_t replayed = Environment("GPUSHARE_FAULT_SEED", 0);
  const uint64_t seeds = replayed > 0 ? 1 : Environment("GPUSHARE_FAULT_SEEDS", kDefaultSeeds);
  const uint64_t first = replayed > 0 ? replayed : 1;
  int64_t entries = 0;
  for (uint64_t seed = first; seed < first + seeds && !HasFailure(); ++seed) {
    SCOPED_TRACE("replay with GPUSHARE_FAULT_SEED=" + std::to_string(seed));
    World world(seed, GetParam());
    world.Run();
    entries += world.wild().entries;
  }
  EXPECT_GT(entries, static_cast<int64_t>(10 * seeds));
}

INSTANTIATE_TEST_SUITE_P(Drives, UserPolicyFuzz,
                         testing::Values(GPUSHARE_DRIVE_POLL, GPUSHARE_DRIVE_THREAD),
                         [](const testing::TestParamInfo<gpushare_drive>& tested) {
                           return tested.param == GPUSHARE_DRIVE_POLL ? "Polled" : "Threaded";
                         });

}  // namespace
}  // namespace gpushare_test
