// What the launch stage asks of the device for what a policy plans: each block task runs once, in
// the forms that the tasks have.

#include "src/core/flow/launch.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/flow/scheduler.h"
#include "tests/core/plan_with.h"
#include "tests/core/recording_device.h"
#include "tests/core/simulated_scheduler.h"

namespace gpushare::core {
namespace {

constexpr int64_t kBlockTasks = 1000;

class LaunchTest : public SimulatedSchedulerTest {
 protected:
  std::unique_ptr<Device> Wrap(std::unique_ptr<Device> device) override {
    return std::make_unique<RecordingDevice>(std::move(device), requests_);
  }

  // Routes have no fast path, so that the plan launches everything.
  void StartWith(std::function<void(const Snapshot&, Plan&)> make_plan) {
    auto policy = std::make_unique<PlanWith>(
        [make_plan = std::move(make_plan)](const auto& snapshot, auto& plan) {
          for (LcRoute& route : plan.routes) route.fast_path = false;
          make_plan(snapshot, plan);
        });
    ASSERT_NO_FATAL_FAILURE(StartScheduler(std::move(policy)));
    kernel_ = *scheduler_->RegisterKernel(EvictableKernel("work", 25 * kUs));
  }
  static PlannedLaunch& Add(Plan& plan, TicketId task, Form form) {
    PlannedLaunch& launch = plan.launches.Add();
    launch.task = task;
    launch.form = form;
    if (form == Form::kWorkers) launch.lane_class = LaneClass::kBe;
    return launch;
  }
  TaskSpec Spec(QueueId queue) const {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = kernel_;
    spec.work.block_tasks = kBlockTasks;
    return spec;
  }
  CompletionRecord RecordOf(TicketId ticket) {
    EXPECT_TRUE(scheduler_->Wait(ticket, scheduler_->NowNs() + 1000 * kMs).ok());
    return *scheduler_->Record(ticket);
  }
  CompletionRecord RunBe() {
    const auto ticket = scheduler_->SubmitBe(Spec(AddQueue(AppClass::kBestEffort, "train")));
    EXPECT_TRUE(ticket.ok()) << ticket.status();
    const CompletionRecord record = RecordOf(*ticket);
    EXPECT_EQ(record.verdict, Verdict::kOk);
    EXPECT_EQ(record.block_tasks, kBlockTasks);
    return record;
  }

  // Two slices of a head, and one more for each that has ended.
  static void QueueTwoSlices(const Snapshot& snapshot, Plan& plan) {
    for (const HeadView& head : snapshot.heads) {
      for (int i = 0; i < 2; ++i) Add(plan, head.task, Form::kSlice).blocks_max = 300;
    }
    for (const RunningView& running : snapshot.running) {
      if (running.parts.size() > 1) continue;
      Add(plan, running.task.task, Form::kSlice).blocks_max = 300;
    }
  }

  // A test sets these values and its policy reads them. The policy outlives the test's locals.
  struct Orders {
    Form form = Form::kOriginal;
    LaneClass lane_class = LaneClass::kPlain;
    TicketId task;
    PlaceIndex place = kNoPlace;
  };
  Orders orders_;
  std::vector<LaunchRequest> requests_;
  SlicedPair seen_;  // written by a plan, also while the scheduler ends
  KernelId kernel_;
};

TEST_F(LaunchTest, EachSliceBeginsWhereTheOneBeforeItEnded) {
  StartWith([](const Snapshot& snapshot, Plan& plan) {
    for (const HeadView& head : snapshot.heads) {
      Add(plan, head.task, Form::kSlice).blocks_max = 300;
    }
  });
  EXPECT_EQ(RunBe().launches, 4);
  ASSERT_EQ(requests_.size(), 4u);
  for (size_t i = 0; i < requests_.size(); ++i) {
    EXPECT_EQ(requests_[i].form, Form::kSlice);
    EXPECT_EQ(requests_[i].block_begin, static_cast<int64_t>(i) * 300);
    EXPECT_EQ(requests_[i].parts[0].block_count, i < 3 ? 300 : 100);
    EXPECT_EQ(requests_[i].parts[0].counter, -1);
    EXPECT_EQ(requests_[i].workers, 0);
  }
}

TEST_F(LaunchTest, ASliceWaitsOnTheLaneOfTheOneBeforeIt) {
  StartWith(QueueTwoSlices);
  const CompletionRecord record = RunBe();
  EXPECT_EQ(record.launches, 4);
  EXPECT_EQ(record.block_tasks, 1000);
  ASSERT_EQ(requests_.size(), 4u);
  for (size_t i = 0; i < requests_.size(); ++i) {
    EXPECT_EQ(requests_[i].block_begin, static_cast<int64_t>(i) * 300);
    EXPECT_EQ(requests_[i].parts[0].block_count, i < 3 ? 300 : 100);
    EXPECT_EQ(requests_[i].parts[0].lane, requests_[0].parts[0].lane);
  }
  EXPECT_EQ(scheduler_->Stats().plan_entries_dropped, 0) << "also where no block task was left";
}

TEST_F(LaunchTest, NoTimeOfTheHostStandsBetweenSlicesThatWaitOnALane) {
  StartWith([this](const Snapshot& snapshot, Plan& plan) {
    if (orders_.form == Form::kSlice) return QueueTwoSlices(snapshot, plan);
    for (const HeadView& head : snapshot.heads) {
      Add(plan, head.task, Form::kSlice).blocks_max = 300;
    }
  });
  const auto span_ns = [](const CompletionRecord& record) {
    return record.end_ns - record.start_ns;
  };
  const int64_t one_by_one_ns = span_ns(RunBe());
  orders_.form = Form::kSlice;
  EXPECT_LT(span_ns(RunBe()), one_by_one_ns - 3 * kUs);
}

// What is beside a slice is known only while its lane never runs empty. Against a guess of its
// time alone its speed would have the error of the guess.
TEST_F(LaunchTest, SlicesOfTwoKernelsBesideEachOtherAreSamplesOfTheirPairOnceTheyAreKnownAlone) {
  StartWith([this](const Snapshot& snapshot, Plan& plan) {
    if (orders_.form == Form::kOriginal) {
      for (const HeadView& head : snapshot.heads) Add(plan, head.task, Form::kOriginal);
      return;
    }
    plan.replan_at_ns = snapshot.now_ns + 100 * kUs;
    const auto options = snapshot.co_schedules.Of(1, 0);
    if (options.empty()) return;  // a kernel has no row yet
    seen_ = snapshot.co_schedules.SlicedOf(1, 0)[1];
    const auto fill = [&](const HeadView& task, int slices) {
      const size_t side = task.overlap_index == 1 ? 0 : 1;
      for (int i = slices; i < 2; ++i) {
        Add(plan, task.task, Form::kSlice).blocks_max =
            int64_t{options[1].workers_per_sm[side]} * snapshot.sm_count;
      }
    };
    for (const HeadView& head : snapshot.heads) fill(head, 0);
    for (const RunningView& running : snapshot.running) fill(running.task, running.parts.size());
  });
  TaskSpec first = Spec(AddQueue(AppClass::kBestEffort, "one"));
  TaskSpec second = Spec(AddQueue(AppClass::kBestEffort, "two"));
  second.kernel = *scheduler_->RegisterKernel(EvictableKernel("other", 40 * kUs));
  const auto run_in_slices = [&] {
    orders_.form = Form::kSlice;
    first.work.block_tasks = second.work.block_tasks = 30'000;
    const TicketId tickets[] = {*scheduler_->SubmitBe(first), *scheduler_->SubmitBe(second)};
    for (const TicketId ticket : tickets) EXPECT_EQ(RecordOf(ticket).block_tasks, 30'000);
  };
  run_in_slices();
  EXPECT_EQ(seen_.runs[0] + seen_.runs[1], 0) << "guesses";
  orders_.form = Form::kOriginal;
  for (int64_t i = 0; i < 16; ++i) {
    first.work.block_tasks = second.work.block_tasks = (4 + i % 4) * 8 * sms_;
    RecordOf(*scheduler_->SubmitBe(first));
    RecordOf(*scheduler_->SubmitBe(second));
  }
  run_in_slices();
  for (const size_t side : {size_t{0}, size_t{1}}) {
    EXPECT_GT(seen_.runs[side], 8);
    EXPECT_GT(seen_.speed[side], 0.1);
    EXPECT_LT(seen_.speed[side], 1);
  }
}

TEST_F(LaunchTest, EachPieceOfACopyBeginsWhereTheOneBeforeItEnded) {
  StartWith([](const Snapshot& snapshot, Plan& plan) {
    for (const HeadView& head : snapshot.heads) {
      PlannedLaunch& launch = Add(plan, head.task, Form::kMemcpy);
      launch.lane_class = LaneClass::kCopy;
      launch.blocks_max = 3 << 20;
    }
  });
  TaskSpec copy;
  copy.queue = AddQueue(AppClass::kBestEffort, "train");
  copy.work.kind = TaskKind::kMemcpy;
  copy.work.copy.bytes = 8 << 20;
  copy.work.copy.direction = CopyDirection::kHostToDevice;
  const auto ticket = scheduler_->SubmitBe(copy).value();
  EXPECT_EQ(RecordOf(ticket).verdict, Verdict::kOk);
  ASSERT_EQ(requests_.size(), 3u);
  for (size_t i = 0; i < requests_.size(); ++i) {
    EXPECT_EQ(requests_[i].parts[0].work.copy.offset, static_cast<int64_t>(i) * (3 << 20));
    EXPECT_EQ(requests_[i].parts[0].work.copy.bytes, (i < 2 ? 3 : 2) << 20);
    EXPECT_EQ(requests_[i].block_begin, 0);
  }
}

// Both launches claim from one counter, which the first sets to 0.
TEST_F(LaunchTest, TheLaunchesOfATaskShareACounterThatIsResetOnce) {
  StartWith([](const Snapshot& snapshot, Plan& plan) {
    for (const HeadView& head : snapshot.heads) {
      for (int i = 0; i < 2; ++i) Add(plan, head.task, Form::kWorkers).workers = 8;
    }
  });
  EXPECT_EQ(RunBe().launches, 2);
  RunBe();
  ASSERT_EQ(requests_.size(), 4u);
  for (size_t i = 0; i < requests_.size(); ++i) {
    const LaunchPart& part = requests_[i].parts[0];
    EXPECT_GE(part.counter, 0);
    EXPECT_EQ(part.counter, requests_[i / 2 * 2].parts[0].counter);
    EXPECT_EQ(part.reset_counter, i % 2 == 0) << i;
    EXPECT_EQ(part.block_count, kBlockTasks);
    EXPECT_EQ(requests_[i].workers, 8);
  }
}

// On a lane without an eviction word nothing reads one, so workers would bring nothing.
TEST_F(LaunchTest, WorkersOnAnEvictableLaneAloneClaimAndReadAnEvictionWord) {
  Form& form = orders_.form;
  LaneClass& lane_class = orders_.lane_class;
  StartWith([this](const Snapshot& snapshot, Plan& plan) {
    for (const HeadView& head : snapshot.heads) {
      Add(plan, head.task, orders_.form).lane_class = orders_.lane_class;
    }
  });
  for (const LaneClass each_class : {LaneClass::kPlain, LaneClass::kLc, LaneClass::kBe}) {
    for (const Form each_form : {Form::kOriginal, Form::kSlice, Form::kWorkers}) {
      form = each_form;
      lane_class = each_class;
      requests_.clear();
      RunBe();
      ASSERT_EQ(requests_.size(), 1u);
      const LaunchPart& part = requests_[0].parts[0];
      const bool evictable = form == Form::kWorkers && lane_class == LaneClass::kBe;
      const bool slice = form == Form::kSlice;
      EXPECT_EQ(requests_[0].form, evictable ? Form::kWorkers
                                   : slice   ? Form::kSlice
                                             : Form::kOriginal);
      EXPECT_EQ(part.epoch != 0, evictable);
      EXPECT_EQ(part.counter >= 0, evictable);
      EXPECT_EQ(part.reset_counter, evictable);
    }
  }
}

// Its block tasks are in no counter, so a second launch would run them again.
TEST_F(LaunchTest, AnOrdinaryGridGetsNoSecondLaunch) {
  StartWith([](const Snapshot& snapshot, Plan& plan) {
    for (const HeadView& head : snapshot.heads) Add(plan, head.task, Form::kOriginal);
    for (const RunningView& running : snapshot.running) {
      Add(plan, running.task.task, Form::kWorkers);
    }
    plan.replan_at_ns = snapshot.now_ns + 10 * kUs;
  });
  const CompletionRecord record = RunBe();
  EXPECT_EQ(record.launches, 1);
  EXPECT_EQ(record.form, Form::kOriginal);
  EXPECT_EQ(requests_.size(), 1u);
  EXPECT_GT(scheduler_->Stats().plan_entries_dropped, 0);
}

// Workers and a limit were planned for the pair, which the two kernels do not make.
TEST_F(LaunchTest, ATaskBehindThePlannedHalfOfAPairGoesWhole) {
  StartWith([](const Snapshot& snapshot, Plan& plan) {
    for (const HeadView& head : snapshot.heads) {
      PlannedLaunch& launch = Add(plan, head.task, Form::kFused);
      launch.fused_with = TicketId{0};
      launch.lane_class = LaneClass::kLc;
      launch.count = head.ready_count;
      launch.workers = 4;
      launch.blocks_max = 10;
    }
  });
  const QueueId queue = AddQueue(AppClass::kLatencyCritical, "service");
  const TicketId first = *scheduler_->SubmitLc(Spec(queue));
  const TicketId second = *scheduler_->SubmitLc(Spec(queue));
  for (const TicketId ticket : {first, second}) {
    const CompletionRecord record = RecordOf(ticket);
    EXPECT_EQ(record.verdict, Verdict::kOk);
    EXPECT_EQ(record.launches, 1);
  }
  ASSERT_EQ(requests_.size(), 2u);
  for (const LaunchRequest& request : requests_) {
    EXPECT_EQ(request.form, Form::kOriginal);
    EXPECT_EQ(request.parts[0].block_count, kBlockTasks);
  }
}

TEST_F(LaunchTest, LcTasksAreLaunchedInARowAsFarAsThePlanSays) {
  StartWith([](const Snapshot& snapshot, Plan& plan) {
    for (const HeadView& head : snapshot.heads) {
      PlannedLaunch& launch = Add(plan, head.task, Form::kOriginal);
      launch.lane_class = LaneClass::kLc;
      launch.count = 3;
    }
  });
  const QueueId queue = AddQueue(AppClass::kLatencyCritical, "service");
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(scheduler_->SubmitLc(Spec(queue)).ok());
  scheduler_->Tick();
  EXPECT_EQ(requests_.size(), 3u);
  for (const LaunchRequest& request : requests_) {
    EXPECT_EQ(request.parts[0].lane, requests_[0].parts[0].lane) << "a lane is the queue's order";
  }
}

TEST_F(LaunchTest, BeTasksOfAQueueRunOneAtATimeWhateverThePlanSays) {
  StartWith([](const Snapshot& snapshot, Plan& plan) {
    for (const HeadView& head : snapshot.heads) Add(plan, head.task, Form::kWorkers).count = 3;
  });
  const QueueId queue = AddQueue(AppClass::kBestEffort, "train");
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(scheduler_->SubmitBe(Spec(queue)).ok());
  scheduler_->Tick();
  EXPECT_EQ(requests_.size(), 1u);
}

TEST_F(LaunchTest, ATaskBehindTheHeadOfItsQueueIsNotLaunched) {
  TicketId& planned = orders_.task;
  StartWith([this](const Snapshot&, Plan& plan) {
    if (orders_.task) Add(plan, orders_.task, Form::kOriginal);
  });
  const QueueId queue = AddQueue(AppClass::kBestEffort, "train");
  const TicketId head = *scheduler_->SubmitBe(Spec(queue));
  planned = *scheduler_->SubmitBe(Spec(queue));
  scheduler_->Tick();
  EXPECT_TRUE(requests_.empty());
  EXPECT_EQ(scheduler_->Stats().plan_entries_dropped, 1);
  planned = head;
  ASSERT_TRUE(scheduler_->SubmitBe(Spec(queue)).ok());  // another plan is made
  scheduler_->Tick();
  EXPECT_EQ(requests_.size(), 1u);
}

// The destructor gives the work that is left a second.
TEST_F(LaunchTest, ASchedulerThatEndsRunsWhatFitsIntoASecond) {
  StartWith([](const Snapshot& snapshot, Plan& plan) {
    for (const HeadView& head : snapshot.heads) Add(plan, head.task, Form::kOriginal);
  });
  std::vector<Verdict> verdicts;
  for (const int64_t ms : {300, 3000}) {
    TaskSpec spec = Spec(AddQueue(AppClass::kBestEffort, "train"));
    spec.kernel = *scheduler_->RegisterKernel(Graph("graph" + std::to_string(ms), ms * kMs));
    spec.work.kind = TaskKind::kGraph;
    spec.callback_user = &verdicts;
    spec.callback = [](void* user, const CompletionRecord& record) {
      static_cast<std::vector<Verdict>*>(user)->push_back(record.verdict);
    };
    ASSERT_TRUE(scheduler_->SubmitBe(spec).ok());
  }
  scheduler_ = nullptr;
  EXPECT_EQ(verdicts, (std::vector<Verdict>{Verdict::kOk, Verdict::kTimedOut}));
}

TEST_F(LaunchTest, AnLcRegionIsOnThePlaceOfItsRoute) {
  ASSERT_NO_FATAL_FAILURE(
      StartScheduler(std::make_unique<PlanWith>([this](const Snapshot& snapshot, Plan& plan) {
        orders_.place = snapshot.splits[0].lc_place;
        for (LcRoute& route : plan.routes) {
          route.place = orders_.place;
          route.lane_class = LaneClass::kLc;
        }
      })));
  const QueueId queue = AddQueue(AppClass::kLatencyCritical, "service");
  scheduler_->Tick();
  const TicketId region = *scheduler_->RegionBegin(queue, kMs, nullptr);
  ASSERT_TRUE(scheduler_->RegionEnd(region).ok());
  EXPECT_EQ(RecordOf(region).place, orders_.place);
}

}  // namespace
}  // namespace gpushare::core
