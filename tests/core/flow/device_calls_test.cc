// The calls that the flow makes on its device, seen by a device that records them: descriptions of
// kernels before they are registered, and which launches of a query announce that more follow.

#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "src/core/flow/scheduler.h"
#include "src/core/policies/registry.h"
#include "src/models/online/online_model.h"
#include "src/null/null_device.h"
#include "tests/core/forwarding_device.h"

namespace gpushare::core {
namespace {

constexpr int64_t kMs = 1000 * 1000;

// The null device behind a diary.
class WritingDevice final : public ForwardingDevice {
 public:
  struct Diary {
    std::vector<std::string> lines;  // launches and flushes
    std::vector<std::string> described;
    std::function<absl::Status(KernelDesc&)> describe;
    std::function<absl::Status(const KernelDesc&)> prepare;
    std::function<absl::Status(const LaneSpec&)> make_lane;
    std::vector<SpeedPoint> speeds;   // that the device measured
    std::function<void()> in_launch;  // runs before a launch reaches the device
  };

  explicit WritingDevice(Diary& diary) : ForwardingDevice(null::MakeNullDevice()), diary_(diary) {}

  absl::Status DescribeKernel(KernelDesc& kernel) override {
    diary_.described.push_back(kernel.name);
    return diary_.describe ? diary_.describe(kernel) : absl::OkStatus();
  }
  absl::Status PrepareKernel(const KernelDesc& kernel) override {
    if (diary_.prepare) {
      if (absl::Status status = diary_.prepare(kernel); !status.ok()) return status;
    }
    return inner().PrepareKernel(kernel);
  }
  absl::Span<const SpeedPoint> SpeedsOf(KernelId /*graph*/) const override { return diary_.speeds; }
  absl::StatusOr<LaneIndex> CreateLane(const LaneSpec& spec) override {
    if (diary_.make_lane) {
      if (absl::Status status = diary_.make_lane(spec); !status.ok()) return status;
    }
    return inner().CreateLane(spec);
  }
  absl::Status Launch(const LaunchRequest& request) override {
    if (diary_.in_launch) diary_.in_launch();
    diary_.lines.push_back(
        absl::StrCat("launch ", request.parts[0].lane, request.more_follows ? " and more" : ""));
    last_grid = {request.parts[0].work.grid[0], request.parts[0].work.grid[1],
                 request.parts[0].work.grid[2]};
    return inner().Launch(request);
  }
  void FlushLane(LaneIndex lane) override { diary_.lines.push_back(absl::StrCat("flush ", lane)); }

  std::array<int32_t, 3> last_grid{};

 private:
  Diary& diary_;
};

class DeviceCallsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto device = std::make_unique<WritingDevice>(diary_);
    device_ = device.get();
    auto model = models::MakeOnlineModel(device->capabilities().profile);
    scheduler_ = Scheduler::Create(SchedulerOptions(), std::move(device), std::move(model),
                                   *MakePolicy("adaptive:evict"))
                     .value();
    AppOptions options = {.name = "server", .app_class = AppClass::kLatencyCritical};
    queue_ = *scheduler_->CreateQueue(*scheduler_->CreateApp(options));
  }

  KernelId Register() {
    KernelDesc kernel;
    kernel.name = "work";
    return *scheduler_->RegisterKernel(kernel);
  }
  TaskSpec Spec(KernelId kernel, QueryId query) const {
    TaskSpec spec;
    spec.queue = queue_;
    spec.kernel = kernel;
    spec.work.block_tasks = 64;
    spec.query = query;
    return spec;
  }
  // The first task of a queue goes through the flow, which publishes the routes of the fast path.
  void OpenFastPath(KernelId kernel) {
    const auto ticket = scheduler_->SubmitLc(Spec(kernel, QueryId{})).value();
    ASSERT_TRUE(scheduler_->Wait(ticket, Soon()).ok());
    const int64_t before = scheduler_->Stats().fast_path_launches;
    const auto fast = scheduler_->SubmitLc(Spec(kernel, QueryId{})).value();
    ASSERT_EQ(scheduler_->Stats().fast_path_launches, before + 1);
    ASSERT_TRUE(scheduler_->Wait(fast, Soon()).ok());
    diary_.lines.clear();
  }
  // Only what never comes takes so long: a loaded machine may take seconds from a thread.
  TimeNs Soon() const { return scheduler_->NowNs() + 60'000 * kMs; }

  WritingDevice::Diary diary_;
  WritingDevice* device_ = nullptr;
  std::unique_ptr<Scheduler> scheduler_;
  QueueId queue_;
};

TEST_F(DeviceCallsTest, MeasuredSpeedsAreTakenOnlyIfAskedForAndNotKnown) {
  diary_.speeds = {{64, 0.9}, {132, 1}};
  const auto speed_of = [&](const char* name, bool measure, double known) {
    KernelDesc graph;
    graph.name = name;
    graph.code = GraphCode{.measure_places = measure};
    if (known > 0) graph.simulation.speed = {{64, known}, {132, 1}};
    const auto& speeds =
        scheduler_->FindKernel(*scheduler_->RegisterKernel(graph))->simulation.speed;
    return speeds.empty() ? 0 : speeds.front().speed;
  };
  EXPECT_EQ(speed_of("measured", true, 0), 0.9);
  EXPECT_EQ(speed_of("unasked", false, 0), 0);
  EXPECT_EQ(speed_of("of a profile", true, 0.7), 0.7);
}

TEST_F(DeviceCallsTest, OnlyLaunchesOfAnOpenQueryAnnounceMoreAndItsEndFlushesTheirLane) {
  const KernelId kernel = Register();
  OpenFastPath(kernel);
  const QueryId query = *scheduler_->BeginQuery(queue_, 0);
  ASSERT_TRUE(scheduler_->SubmitLc(Spec(kernel, query)).ok());
  ASSERT_TRUE(scheduler_->SubmitLc(Spec(kernel, query)).ok());
  ASSERT_EQ(diary_.lines.size(), 2u);
  EXPECT_EQ(diary_.lines[0].substr(diary_.lines[0].size() - 8), "and more");
  EXPECT_EQ(diary_.lines[1], diary_.lines[0]);
  ASSERT_TRUE(scheduler_->EndQuery(query).ok());
  ASSERT_EQ(diary_.lines.size(), 3u);
  // "launch 5 and more" -> "flush 5"
  const std::string lane = diary_.lines[0].substr(7, diary_.lines[0].find(" and") - 7);
  EXPECT_EQ(diary_.lines[2], "flush " + lane);
  EXPECT_TRUE(scheduler_->Drain(Soon()).ok());
}

// The scheduler launches opaque work with no lock held, after the other launches of its Tick.
TEST_F(DeviceCallsTest, AnOpaqueTaskIsNotOvertakenByTheTaskBehindItInItsQueue) {
  const KernelId kernel = Register();
  AppOptions options = {
      .name = "slow path", .app_class = AppClass::kLatencyCritical, .drop_late = true};
  TaskSpec opaque;
  opaque.queue = *scheduler_->CreateQueue(*scheduler_->CreateApp(options));
  opaque.work.kind = TaskKind::kOpaque;
  opaque.work.host_user = &diary_;
  opaque.work.host_function = [](void* /*stream*/, void* user) {
    static_cast<WritingDevice::Diary*>(user)->lines.push_back("enqueued");
  };
  TaskSpec behind = Spec(kernel, QueryId{});
  behind.queue = opaque.queue;
  ASSERT_TRUE(scheduler_->SetPolicy(*MakePolicy("fifo")).ok());
  ASSERT_TRUE(scheduler_->SubmitLc(opaque).ok());
  ASSERT_TRUE(scheduler_->SubmitLc(behind).ok());
  ASSERT_TRUE(scheduler_->Drain(Soon()).ok());
  ASSERT_EQ(diary_.lines.size(), 3u);
  EXPECT_EQ(diary_.lines[1], "enqueued");
}

TEST_F(DeviceCallsTest, AnImplicitQueryAnnouncesNothingAndFlushesNothing) {
  const KernelId kernel = Register();
  OpenFastPath(kernel);
  ASSERT_TRUE(scheduler_->SubmitLc(Spec(kernel, QueryId{})).ok());
  ASSERT_TRUE(scheduler_->Drain(Soon()).ok());
  ASSERT_EQ(diary_.lines.size(), 1u);
  EXPECT_EQ(diary_.lines[0].find("more"), std::string::npos) << diary_.lines[0];
}

TEST_F(DeviceCallsTest, ATaskThatLaunchesAfterItsQueryEndedIsTheLastOfIt) {
  const KernelId kernel = Register();
  const QueryId query = *scheduler_->BeginQuery(queue_, 0);
  ASSERT_TRUE(scheduler_->SubmitLc(Spec(kernel, query)).ok());  // no route yet: it waits for a Tick
  ASSERT_TRUE(diary_.lines.empty());
  ASSERT_TRUE(scheduler_->EndQuery(query).ok());
  ASSERT_TRUE(scheduler_->Drain(Soon()).ok());
  ASSERT_EQ(diary_.lines.size(), 1u);
  EXPECT_EQ(diary_.lines[0].find("more"), std::string::npos) << diary_.lines[0];
}

// The end's own flush comes before the launch reaches the device, which would wait for ever.
TEST_F(DeviceCallsTest, AQueryThatEndsDuringALaunchDoesNotLoseItsFlush) {
  const KernelId kernel = Register();
  OpenFastPath(kernel);
  const QueryId query = *scheduler_->BeginQuery(queue_, 0);
  diary_.in_launch = [&] { EXPECT_TRUE(scheduler_->EndQuery(query).ok()); };
  ASSERT_TRUE(scheduler_->SubmitLc(Spec(kernel, query)).ok());
  diary_.in_launch = nullptr;
  ASSERT_EQ(diary_.lines.size(), 3u);
  EXPECT_EQ(diary_.lines[0].substr(0, 5), "flush");
  EXPECT_NE(diary_.lines[1].find("and more"), std::string::npos) << diary_.lines[1];
  EXPECT_EQ(diary_.lines[2], diary_.lines[0]);
  EXPECT_TRUE(scheduler_->Drain(Soon()).ok());
}

// Plans as another policy does, and keeps whether it may count on evictions.
class WatchingPolicy final : public Policy {
 public:
  WatchingPolicy(std::unique_ptr<Policy> policy, bool& eviction_available)
      : policy_(std::move(policy)), eviction_available_(eviction_available) {}
  absl::string_view name() const override { return policy_->name(); }
  void MakePlan(const Snapshot& snapshot, Plan& plan) override {
    eviction_available_ = snapshot.eviction_available;
    policy_->MakePlan(snapshot, plan);
  }

 private:
  std::unique_ptr<Policy> policy_;
  bool& eviction_available_;
};

// The device's self-test of the lane found that evictions do not reach it.
TEST(BlockedLanes, AreCountedAndUsedAsNotEvictable) {
  WritingDevice::Diary diary;
  int refused = 0;
  int plain = 0;
  diary.make_lane = [&](const LaneSpec& spec) {
    ++(spec.evictable ? refused : plain);
    return spec.evictable ? absl::DeadlineExceededError("Evictions are blocked.")
                          : absl::OkStatus();
  };
  auto device = std::make_unique<WritingDevice>(diary);
  auto model = models::MakeOnlineModel(device->capabilities().profile);
  bool eviction_available = true;
  auto policy = std::make_unique<WatchingPolicy>(*MakePolicy("adaptive:evict"), eviction_available);
  const auto scheduler =
      Scheduler::Create(SchedulerOptions(), std::move(device), std::move(model), std::move(policy))
          .value();
  EXPECT_GT(refused, 0);
  EXPECT_GT(plain, refused) << "each has a lane in its place";
  EXPECT_EQ(scheduler->Stats().evictions_blocked, refused);
  AppOptions options = {.name = "train", .app_class = AppClass::kBestEffort};
  TaskSpec spec;
  spec.queue = *scheduler->CreateQueue(*scheduler->CreateApp(options));
  KernelDesc kernel;
  kernel.name = "work";
  kernel.evictable = true;
  spec.kernel = *scheduler->RegisterKernel(kernel);
  spec.work.block_tasks = 64;
  const auto ticket = scheduler->SubmitBe(spec).value();
  ASSERT_TRUE(scheduler->Wait(ticket, scheduler->NowNs() + 60'000 * kMs).ok());
  EXPECT_EQ(scheduler->Record(ticket)->verdict, Verdict::kOk);
  EXPECT_FALSE(eviction_available);
}

TEST_F(DeviceCallsTest, TheGridReachesTheDevice) {
  const KernelId kernel = Register();
  TaskSpec spec = Spec(kernel, QueryId{});
  spec.work.grid = {8, 4, 2};
  ASSERT_TRUE(scheduler_->SubmitLc(spec).ok());
  ASSERT_TRUE(scheduler_->Drain(Soon()).ok());
  EXPECT_EQ(device_->last_grid, (std::array<int32_t, 3>{8, 4, 2}));
  spec.work.grid = {8, 4, 3};
  EXPECT_EQ(scheduler_->SubmitLc(spec).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(DeviceCallsTest, TheDeviceFillsWhatNobodyGaveBeforeTheDefaultsDo) {
  diary_.describe = [](KernelDesc& kernel) {
    if (kernel.resources.registers_per_thread == 0) kernel.resources.registers_per_thread = 40;
    if (kernel.resources.shared_memory_bytes == 0) kernel.resources.shared_memory_bytes = 1024;
    if (kernel.resources.workers_per_sm_max == 0) kernel.resources.workers_per_sm_max = 6;
    return absl::OkStatus();
  };
  KernelDesc unknown;
  unknown.name = "unknown";
  unknown.resources.threads_per_block = unknown.resources.registers_per_thread =
      unknown.resources.workers_per_sm_max = 0;
  const auto id = scheduler_->RegisterKernel(unknown);
  ASSERT_TRUE(id.ok()) << id.status();
  const KernelDesc* found = scheduler_->FindKernel(*id);
  ASSERT_NE(found, nullptr);
  EXPECT_EQ(found->id.value, id->value);
  EXPECT_EQ(found->resources.threads_per_block, kDefaultThreadsPerBlock);  // nobody knows
  EXPECT_EQ(found->resources.registers_per_thread, 40);
  EXPECT_EQ(found->resources.shared_memory_bytes, 1024);
  EXPECT_EQ(found->resources.workers_per_sm_max, 6);
  KernelDesc known;
  known.name = "known";
  known.resources.registers_per_thread = 64;
  known.resources.workers_per_sm_max = 2;
  found = scheduler_->FindKernel(*scheduler_->RegisterKernel(known));
  EXPECT_EQ(found->resources.registers_per_thread, 64);
  EXPECT_EQ(found->resources.workers_per_sm_max, 2);
  EXPECT_EQ(scheduler_->FindKernel(KernelId{77}), nullptr);
}

// Loading modules takes tens of milliseconds, in which queries come.
TEST_F(DeviceCallsTest, QueriesGoOnWhileADevicePreparesAKernel) {
  const KernelId kernel = Register();
  std::atomic<bool> preparing{false};
  std::atomic<bool> released{false};
  std::atomic<bool> gave_up{false};
  diary_.prepare = [&](const KernelDesc& prepared) {
    EXPECT_EQ(scheduler_->FindKernel(prepared.id), nullptr) << "nobody may launch it yet";
    preparing.store(true);
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!released.load() && !gave_up.load()) {
      if (std::chrono::steady_clock::now() > until) gave_up.store(true);
      std::this_thread::yield();
    }
    return absl::OkStatus();
  };
  absl::StatusOr<KernelId> second;
  std::thread registration([&] {
    KernelDesc desc;
    desc.name = "slow to load";
    second = scheduler_->RegisterKernel(desc);
  });
  while (!preparing.load()) std::this_thread::yield();
  // The first task of a queue goes through a plan.
  const auto ticket = scheduler_->SubmitLc(Spec(kernel, QueryId{}));
  EXPECT_TRUE(ticket.ok()) << ticket.status();
  if (ticket.ok()) {
    EXPECT_TRUE(scheduler_->Wait(*ticket, Soon()).ok());
  }
  EXPECT_EQ(scheduler_->Stats().fast_path_launches, 0);
  EXPECT_FALSE(gave_up.load()) << "the query waited for the preparation";
  released.store(true);
  registration.join();
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_NE(scheduler_->FindKernel(*second), nullptr);
  ASSERT_TRUE(scheduler_->SubmitLc(Spec(*second, QueryId{})).ok());
  EXPECT_TRUE(scheduler_->Drain(Soon()).ok());
}

TEST_F(DeviceCallsTest, KernelsArePreparedOneAtATimeAndARefusedOneLeavesNoTrace) {
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  diary_.prepare = [&](const KernelDesc& prepared) {
    const int now = ++inside;
    if (now > most.load()) most.store(now);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    --inside;
    return prepared.name[0] == 'r' ? absl::ResourceExhaustedError("No memory.") : absl::OkStatus();
  };
  std::vector<std::thread> threads;
  std::array<std::atomic<uint32_t>, 8> ids{};
  for (size_t i = 0; i < ids.size(); ++i) {
    threads.emplace_back([&, i] {
      KernelDesc desc;
      desc.name = absl::StrCat(i % 2 == 0 ? "made " : "refused ", i);
      const auto id = scheduler_->RegisterKernel(desc);
      EXPECT_EQ(id.ok(), i % 2 == 0) << id.status();
      if (id.ok()) ids[i].store(id->value);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(most.load(), 1);
  for (size_t i = 0; i < ids.size(); i += 2) {
    const KernelDesc* const found = scheduler_->FindKernel(KernelId{ids[i].load()});
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->name, absl::StrCat("made ", i));
  }
  EXPECT_EQ(scheduler_->FindKernel(KernelId{5}), nullptr) << "four of eight are there";
}

TEST_F(DeviceCallsTest, AKernelThatContradictsItsFunctionIsNotRegistered) {
  diary_.describe = [](KernelDesc&) { return absl::InvalidArgumentError("It has 512 threads."); };
  KernelDesc kernel;
  kernel.name = "work";
  EXPECT_EQ(scheduler_->RegisterKernel(kernel).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(scheduler_->FindKernel(KernelId{1}), nullptr);
  diary_.describe = nullptr;
  diary_.described.clear();
  kernel.resources.block_x = -3;  // the device never sees what cannot be
  EXPECT_EQ(scheduler_->RegisterKernel(kernel).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(diary_.described.empty());
}

// Its thread has taken the region from the shutdown, and has not handed its end to the flow.
TEST_F(DeviceCallsTest, AShutdownAwaitsTheEndOfARegionThatIsUnderWay) {
  const TicketId region = *scheduler_->RegionBegin(queue_, kMs, nullptr);
  std::atomic<bool> launching{false};
  diary_.in_launch = [&] {
    launching.store(true);
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  };
  std::thread ender([&] { EXPECT_TRUE(scheduler_->RegionEnd(region).ok()); });
  while (!launching.load()) std::this_thread::yield();
  scheduler_->Shutdown(scheduler_->NowNs()).IgnoreError();
  EXPECT_EQ(scheduler_->Stats().tasks_pending, 0);
  EXPECT_TRUE(*scheduler_->IsComplete(region));
  ender.join();
}

}  // namespace
}  // namespace gpushare::core
