// Places that are made when a plan wants them and end when none does: what is asked of the device,
// and that work never waits longer or loses anything for it.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/base/random.h"
#include "src/core/base/tuning.h"
#include "src/core/flow/scheduler.h"
#include "src/core/policies/registry.h"
#include "src/null/null_device.h"
#include "tests/core/forwarding_device.h"
#include "tests/core/plan_with.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

// What was asked of the device. It outlives the device.
struct Asked {
  std::mutex mutex;
  std::vector<PlaceIndex> made;
  std::vector<PlaceIndex> ended;
  std::set<PlaceIndex> live;
  size_t most = 0;
  std::function<absl::Status(PlaceIndex)> before_make;

  size_t Made() {
    const std::lock_guard<std::mutex> lock(mutex);
    return made.size();
  }
  size_t Ended() {
    const std::lock_guard<std::mutex> lock(mutex);
    return ended.size();
  }
};

class AskedDevice final : public ForwardingDevice {
 public:
  AskedDevice(std::unique_ptr<Device> device, Asked& asked)
      : ForwardingDevice(std::move(device)), asked_(asked) {}
  absl::Status CreatePlace(PlaceIndex place, const PlaceSpec& spec) override {
    if (asked_.before_make) {
      if (absl::Status status = asked_.before_make(place); !status.ok()) return status;
    }
    const absl::Status status = inner().CreatePlace(place, spec);
    EXPECT_TRUE(status.ok()) << status;
    const std::lock_guard<std::mutex> lock(asked_.mutex);
    asked_.made.push_back(place);
    asked_.live.insert(place);
    asked_.most = std::max(asked_.most, asked_.live.size());
    return status;
  }
  absl::Status DestroyPlace(PlaceIndex place) override {
    const absl::Status status = inner().DestroyPlace(place);
    const std::lock_guard<std::mutex> lock(asked_.mutex);
    if (!status.ok()) return status;
    asked_.ended.push_back(place);
    asked_.live.erase(place);
    return status;
  }

 private:
  Asked& asked_;
};

class PlacesTest : public SimulatedSchedulerTest {
 protected:
  std::unique_ptr<Device> Wrap(std::unique_ptr<Device> device) override {
    return std::make_unique<AskedDevice>(std::move(device), asked_);
  }

  // BE heads go to `be_place_`, LC work to `lc_place_`.
  void Start(const SchedulerOptions& options = SchedulerOptions()) {
    auto policy = std::make_unique<PlanWith>([this](const Snapshot& snapshot, Plan& plan) {
      plan.routes[0].place = lc_place_;
      plan.routes[0].evict_overlapping = evicts_;
      for (const HeadView& head : snapshot.heads) {
        const bool lc = head.app_class == AppClass::kLatencyCritical;
        PlannedLaunch& launch = plan.launches.Add();
        launch.task = head.task;
        launch.place = lc ? lc_place_ : be_place_;
        launch.lane_class = lc ? LaneClass::kLc : LaneClass::kBe;
        launch.form = lc ? Form::kOriginal : Form::kWorkers;
      }
      plan.places_wanted = wanted_;
    });
    ASSERT_NO_FATAL_FAILURE(StartScheduler(std::move(policy), options));
    kernel_ = *scheduler_->RegisterKernel(EvictableKernel("work", 25 * kUs));
    be_ = AddQueue(AppClass::kBestEffort, "train");
    lc_ = AddQueue(AppClass::kLatencyCritical, "service");
  }

  TaskSpec Spec(QueueId queue, int64_t block_tasks = 1000) const {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = kernel_;
    spec.work.block_tasks = block_tasks;
    return spec;
  }
  CompletionRecord Finish(TicketId ticket) {
    EXPECT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 10'000 * kMs).ok());
    const CompletionRecord record = *scheduler_->Record(ticket);
    EXPECT_EQ(record.verdict, Verdict::kOk);
    EXPECT_TRUE(scheduler_->CheckInvariants().ok()) << scheduler_->CheckInvariants();
    return record;
  }
  CompletionRecord RunBe() { return Finish(*scheduler_->SubmitBe(Spec(be_))); }
  CompletionRecord RunLc() { return Finish(*scheduler_->SubmitLc(Spec(lc_))); }
  void Sleep(int64_t ns) { ASSERT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + ns).ok()); }

  Asked asked_;
  PlaceIndex be_place_ = kWholeDevice;
  PlaceIndex lc_place_ = kWholeDevice;
  uint64_t wanted_ = 0;
  bool evicts_ = false;
  KernelId kernel_;
  QueueId be_, lc_;
};

TEST_F(PlacesTest, NoPlaceIsMadeBeforeAPlanWantsOne) {
  Start();
  RunBe();
  RunLc();
  EXPECT_TRUE(asked_.made.empty());
  be_place_ = 4;
  EXPECT_EQ(RunBe().place, 4) << "in virtual time a place is there at once";
  EXPECT_EQ(asked_.made, std::vector<PlaceIndex>{4});
  RunBe();
  EXPECT_EQ(asked_.made.size(), 1U);
  wanted_ = uint64_t{1} << 7 | uint64_t{1} << 8;
  RunBe();
  EXPECT_EQ(asked_.made, (std::vector<PlaceIndex>{4, 7, 8})) << "what the arrangement has";
}

TEST_F(PlacesTest, AllPlacesAreMadeAtStartWhereThatIsAskedFor) {
  SchedulerOptions options;
  options.places = PlacesMode::kEager;
  options.place_idle_ns = kMs;
  Start(options);
  EXPECT_EQ(asked_.made.size(), size_t{2} * kMaxSplits) << "both sides of each split";
  Sleep(100 * kMs);
  RunBe();
  EXPECT_TRUE(asked_.ended.empty());
}

TEST_F(PlacesTest, APlaceThatNoPlanWantsEndsAndIsMadeAgain) {
  SchedulerOptions options;
  options.place_idle_ns = 50 * kMs;
  Start(options);
  be_place_ = 4;
  RunBe();
  be_place_ = kWholeDevice;
  Sleep(20 * kMs);
  RunBe();
  EXPECT_TRUE(asked_.ended.empty()) << "not yet";
  Sleep(60 * kMs);
  RunBe();
  EXPECT_EQ(asked_.ended, std::vector<PlaceIndex>{4});
  be_place_ = 4;
  EXPECT_EQ(RunBe().place, 4);
  EXPECT_EQ(asked_.made, (std::vector<PlaceIndex>{4, 4}));
}

TEST_F(PlacesTest, APlaceWithWorkStays) {
  SchedulerOptions options;
  options.place_idle_ns = kMs;
  Start(options);
  be_place_ = 4;
  const TicketId running = *scheduler_->SubmitBe(Spec(be_, 1'000'000));
  scheduler_->Tick();
  be_place_ = kWholeDevice;
  for (int i = 0; i < 5; ++i) {
    Sleep(2 * kMs);
    RunLc();
  }
  ASSERT_FALSE(*scheduler_->IsComplete(running));
  EXPECT_TRUE(asked_.ended.empty());
  Finish(running);
  Sleep(2 * kMs);
  RunLc();
  EXPECT_EQ(asked_.ended, std::vector<PlaceIndex>{4});
}

// The work is on all SMs, and no route that was published before names the place's lanes.
TEST_F(PlacesTest, ANewPlaceTakesNoBeWorkWhileLcWorkThatEvictsIsOnItsSms) {
  Start();
  evicts_ = true;
  const TicketId lc = *scheduler_->SubmitLc(Spec(lc_, 100'000));
  scheduler_->Tick();
  lc_place_ = 5;
  be_place_ = 6;
  const TicketId be = *scheduler_->SubmitBe(Spec(be_));
  scheduler_->Tick();
  EXPECT_EQ(asked_.made.size(), 2U);
  const CompletionRecord evicting = Finish(lc);
  EXPECT_GE(Finish(be).launch_ns, evicting.end_ns);
}

TEST_F(PlacesTest, APlaceThatARouteNamesStays) {
  SchedulerOptions options;
  options.place_idle_ns = kMs;
  Start(options);
  lc_place_ = 5;
  EXPECT_EQ(RunLc().place, 5);
  Sleep(100 * kMs);
  RunBe();
  EXPECT_TRUE(asked_.ended.empty());
  lc_place_ = kWholeDevice;
  RunBe();
  Sleep(100 * kMs);
  RunBe();
  EXPECT_EQ(asked_.ended, std::vector<PlaceIndex>{5});
  EXPECT_EQ(RunLc().place, kWholeDevice);
}

TEST_F(PlacesTest, AnotherPlaceMakesRoomForOneTooMany) {
  Start();
  for (PlaceIndex place = 1; place <= 30; ++place) {
    be_place_ = place;
    EXPECT_EQ(RunBe().place, place);
  }
  EXPECT_EQ(asked_.most, static_cast<size_t>(kLivePlacesMax));
  EXPECT_EQ(asked_.ended.front(), 1) << "the one that was unused for longest";
}

TEST_F(PlacesTest, ARefusedPlaceIsReportedOnceAndAskedForLater) {
  std::vector<std::string> reports;
  int refusals = 0;
  asked_.before_make = [&](PlaceIndex) -> absl::Status {
    ++refusals;
    return absl::ResourceExhaustedError("No memory.");
  };
  SchedulerOptions options;
  options.report = [&](const std::string& sentence) { reports.push_back(sentence); };
  Start(options);
  lc_place_ = be_place_ = 4;
  EXPECT_EQ(RunLc().place, kWholeDevice) << "an LC task does not wait for a place";
  RunLc();
  EXPECT_EQ(refusals, 1);
  const TicketId held = *scheduler_->SubmitBe(Spec(be_));
  scheduler_->Tick();
  EXPECT_FALSE(*scheduler_->IsComplete(held));
  Sleep(2 * kPlaceAgainNs);
  RunLc();
  EXPECT_EQ(refusals, 2);
  EXPECT_EQ(reports.size(), 1U);
  EXPECT_NE(reports[0].find("No memory."), std::string::npos) << reports[0];
  asked_.before_make = nullptr;
  Sleep(2 * kPlaceAgainNs);
  RunLc();
  EXPECT_EQ(Finish(held).place, 4);
}

TEST_F(PlacesTest, APlaceWithALaneThatHungStays) {
  sim::SimOptions sim_options;
  sim_options.faults.hang.nth = 1;
  SchedulerOptions options;
  options.place_idle_ns = kMs;
  options.hang_floor_ns = kMs;
  auto policy = std::make_unique<PlanWith>([this](const Snapshot& snapshot, Plan& plan) {
    for (const HeadView& head : snapshot.heads) {
      PlannedLaunch& launch = plan.launches.Add();
      launch.task = head.task;
      launch.place = be_place_;
      launch.lane_class = LaneClass::kBe;
      launch.form = Form::kWorkers;
    }
  });
  ASSERT_NO_FATAL_FAILURE(StartScheduler(std::move(policy), options, sim_options));
  kernel_ = *scheduler_->RegisterKernel(EvictableKernel("work", 25 * kUs));
  be_ = AddQueue(AppClass::kBestEffort, "train");
  be_place_ = 4;
  const TicketId hangs = *scheduler_->SubmitBe(Spec(be_));
  ASSERT_TRUE(scheduler_->Wait(hangs, scheduler_->NowNs() + 10'000 * kMs).ok());
  EXPECT_EQ(scheduler_->Record(hangs)->verdict, Verdict::kTimedOut);
  be_place_ = kWholeDevice;
  Sleep(10 * kMs);
  RunBe();
  EXPECT_TRUE(asked_.ended.empty());
}

// The home of a quota is there before its first task, and for as long as the quota.
TEST_F(PlacesTest, AQuotaKeepsItsPlace) {
  SchedulerOptions options;
  options.place_idle_ns = kMs;
  ASSERT_NO_FATAL_FAILURE(StartScheduler(*MakePolicy("adaptive"), options));
  kernel_ = *scheduler_->RegisterKernel(EvictableKernel("work", 25 * kUs));
  const AppId app = *scheduler_->CreateApp({.name = "train"});
  be_ = *scheduler_->CreateQueue(app);
  ASSERT_TRUE(scheduler_->ReserveCapSm({.app = app, .capsms = 44, .packed = true}).ok());
  scheduler_->Tick();
  ASSERT_EQ(asked_.made.size(), 1U);
  Sleep(100 * kMs);
  EXPECT_EQ(RunBe().place, asked_.made[0]);
  EXPECT_TRUE(asked_.ended.empty());
  ASSERT_TRUE(scheduler_->ReserveCapSm({.app = app}).ok());
  RunBe();
  Sleep(100 * kMs);
  RunBe();
  EXPECT_EQ(asked_.ended, asked_.made);
}

// --- devices in real time: a thread makes the places ---

class PlaceThreadTest : public ::testing::Test {
 protected:
  void Start(std::function<void(const Snapshot&, Plan&)> plan) {
    SchedulerOptions options;
    options.place_idle_ns = kMs;
    auto device = std::make_unique<AskedDevice>(null::MakeNullDevice(), asked_);
    auto model = models::MakeOnlineModel(device->capabilities().profile);
    auto scheduler = Scheduler::Create(options, std::move(device), std::move(model),
                                       std::make_unique<PlanWith>(std::move(plan)));
    ASSERT_TRUE(scheduler.ok()) << scheduler.status();
    scheduler_ = *std::move(scheduler);
    KernelDesc kernel;
    kernel.name = "work";
    kernel.evictable = true;
    kernel_ = *scheduler_->RegisterKernel(kernel);
    ASSERT_TRUE(scheduler_->StartThread().ok());
  }
  void TearDown() override { scheduler_ = nullptr; }

  QueueId AddQueue(const std::string& name, AppClass app_class) {
    AppOptions options;
    options.name = name;
    options.app_class = app_class;
    return *scheduler_->CreateQueue(*scheduler_->CreateApp(options));
  }
  TaskSpec Spec(QueueId queue) const {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = kernel_;
    spec.work.block_tasks = 64;
    return spec;
  }
  void Finish(TicketId ticket) {
    ASSERT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 60'000 * kMs).ok());
    EXPECT_EQ(scheduler_->Record(ticket)->verdict, Verdict::kOk);
    EXPECT_TRUE(scheduler_->ReleaseTicket(ticket).ok());
  }

  Asked asked_;
  std::unique_ptr<Scheduler> scheduler_;
  KernelId kernel_;
};

void PlanOn(const Snapshot& snapshot, PlaceIndex lc_place, PlaceIndex be_place, Plan& plan) {
  for (LcRoute& route : plan.routes) {
    route.place = lc_place;
    route.evict_overlapping = true;
  }
  for (const HeadView& head : snapshot.heads) {
    const bool lc = head.app_class == AppClass::kLatencyCritical;
    PlannedLaunch& launch = plan.launches.Add();
    launch.task = head.task;
    launch.place = lc ? lc_place : be_place;
    launch.lane_class = lc ? LaneClass::kLc : LaneClass::kBe;
    launch.form = lc ? Form::kOriginal : Form::kWorkers;
  }
}

TEST_F(PlaceThreadTest, LcWorkDoesNotWaitForAPlaceAndBeWorkDoes) {
  // The policy and the device outlive the test's body.
  const auto go = std::make_shared<std::atomic<bool>>(false);
  asked_.before_make = [go](PlaceIndex) {
    while (!go->load()) std::this_thread::yield();
    return absl::OkStatus();
  };
  Start([](const Snapshot& snapshot, Plan& plan) { PlanOn(snapshot, 3, 4, plan); });
  const QueueId lc = AddQueue("service", AppClass::kLatencyCritical);
  const QueueId be = AddQueue("train", AppClass::kBestEffort);
  for (int i = 0; i < 20; ++i) Finish(*scheduler_->SubmitLc(Spec(lc)));
  const TicketId waits = *scheduler_->SubmitBe(Spec(be));
  for (int i = 0; i < 20; ++i) Finish(*scheduler_->SubmitLc(Spec(lc)));
  EXPECT_FALSE(*scheduler_->IsComplete(waits));
  EXPECT_EQ(asked_.Made(), 0U);
  go->store(true);
  ASSERT_TRUE(scheduler_->Wait(waits, scheduler_->NowNs() + 60'000 * kMs).ok());
  EXPECT_EQ(scheduler_->Record(waits)->place, 4);
}

TEST_F(PlaceThreadTest, AnIdleProcessGivesItsPlacesBack) {
  const auto place = std::make_shared<std::atomic<PlaceIndex>>(4);
  Start([place](const Snapshot& snapshot, Plan& plan) {
    PlanOn(snapshot, kWholeDevice, place->load(), plan);
  });
  const QueueId be = AddQueue("train", AppClass::kBestEffort);
  Finish(*scheduler_->SubmitBe(Spec(be)));
  EXPECT_EQ(asked_.Made(), 1U);
  place->store(kWholeDevice);
  Finish(*scheduler_->SubmitBe(Spec(be)));
  for (int i = 0; i < 2000 && asked_.Ended() == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(asked_.Ended(), 1U);
}

// Routes and places change all the time beneath submitters that launch by themselves.
TEST_F(PlaceThreadTest, PlacesComeAndGoBeneathSubmittersAndNothingIsLost) {
  Start([random = Random(7)](const Snapshot& snapshot, Plan& plan) mutable {
    const auto split = static_cast<size_t>(random.Next() % snapshot.splits.size());
    const bool whole = random.Next() % 3 == 0;
    PlanOn(snapshot, whole ? kWholeDevice : snapshot.splits[split].lc_place,
           whole ? kWholeDevice : snapshot.splits[split].be_place, plan);
    plan.replan_at_ns = snapshot.now_ns + 200 * kUs;
  });
  constexpr int kTasks = 400;
  std::vector<std::thread> submitters;
  std::atomic<int> done{0};
  for (int t = 0; t < 3; ++t) {
    const AppClass app_class = t < 2 ? AppClass::kLatencyCritical : AppClass::kBestEffort;
    const QueueId queue = AddQueue("app" + std::to_string(t), app_class);
    submitters.emplace_back([this, t, queue, app_class, &done] {
      for (int i = 0; i < kTasks; ++i) {
        const auto ticket = app_class == AppClass::kLatencyCritical
                                ? scheduler_->SubmitLc(Spec(queue))
                                : scheduler_->SubmitBe(Spec(queue));
        if (!ticket.ok()) continue;
        if (!scheduler_->Wait(*ticket, scheduler_->NowNs() + 60'000 * kMs).ok()) continue;
        if (scheduler_->Record(*ticket)->verdict == Verdict::kOk) done.fetch_add(1);
        scheduler_->ReleaseTicket(*ticket).IgnoreError();
        if (i % 8 == t) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    });
  }
  for (std::thread& submitter : submitters) submitter.join();
  EXPECT_EQ(done.load(), 3 * kTasks);
  EXPECT_GT(asked_.Made(), 5U);
  EXPECT_GT(asked_.Ended(), 0U);
  EXPECT_TRUE(scheduler_->CheckInvariants().ok()) << scheduler_->CheckInvariants();
}

}  // namespace
}  // namespace gpushare::core
