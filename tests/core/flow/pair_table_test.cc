// The pair table: updated by rows, it is what computing every row gives, and its version changes
// only with a number. Null device; the stages run by hand.

#include "src/core/flow/planning/pair_table.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/checks/kernel_check.h"
#include "src/core/flow/admit.h"
#include "src/core/flow/predict.h"
#include "src/core/flow/submit.h"
#include "src/core/policies/registry.h"
#include "src/models/online/online_model.h"
#include "src/null/null_device.h"

namespace gpushare::core {
namespace {

class PairTableTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto device = null::MakeNullDevice();
    auto model = models::MakeOnlineModel(device->capabilities().profile);
    flow_ = std::make_unique<Flow>(SchedulerOptions(), std::move(device), std::move(model),
                                   *MakePolicy("adaptive"));
    ASSERT_TRUE(flow_->lanes.Create(*flow_->device, kMaxSplits).ok());
    ASSERT_GT(flow_->lanes.splits().size(), 1u);
    flow_->fast_path.store(false);
    for (int i = 0; i < 3; ++i) lc_kernels_.push_back(Register("lc" + std::to_string(i), 10'000));
    for (int i = 0; i < 5; ++i) be_kernels_.push_back(Register("be" + std::to_string(i), 50'000));
  }

  KernelId Register(const std::string& name, int64_t block_task_ns) {
    KernelDesc kernel;
    kernel.name = name;
    kernel.evictable = true;
    kernel.simulation.present = true;
    kernel.simulation.block_task_ns = block_task_ns;
    return Register(kernel);
  }
  KernelId Register(KernelDesc kernel) {
    EXPECT_TRUE(flow_->device->DescribeKernel(kernel).ok());
    FillUnknown(kernel);
    const KernelDesc& registered = **flow_->tables.StageKernel(kernel);
    EXPECT_TRUE(flow_->device->PrepareKernel(registered).ok());
    flow_->model->AddKernel(registered);
    flow_->tables.PublishKernel();
    return registered.id;
  }

  QueueId AddQueue(AppClass app_class) {
    AppOptions options = {
        .name = "app" + std::to_string(++apps_), .app_class = app_class, .tasks_max = 64};
    App& app = **flow_->tables.CreateApp(options);
    flow_->ledger.AddApp(static_cast<int>(app.slot), app_class);
    return QueueId{(*flow_->tables.CreateQueue(app))->id.load()};
  }

  void Submit(QueueId queue, KernelId kernel, AppClass app_class, int64_t block_tasks = 1000) {
    TaskSpec spec;
    spec.queue = queue;
    spec.kernel = kernel;
    spec.work.block_tasks = block_tasks;
    ASSERT_TRUE(SubmitTask(*flow_, spec, app_class).ok());
  }

  void RunPredict() {
    flow_->now_ns = flow_->device->NowNs();
    Collect(*flow_);
    Admit(*flow_);
    Predict(*flow_);
  }

  // The LC kernel ran so fast on the split's LC side while the BE kernel ran on the other.
  void ObserveBeside(size_t lc, size_t be, size_t split, double factor) {
    const SplitView& sides = flow_->lanes.splits()[split];
    const KernelDesc* const kernel = flow_->tables.FindKernel(lc_kernels_[lc]);
    const CoResident neighbour{.kernel = flow_->tables.FindKernel(be_kernels_[be]),
                               .sms = sides.be_sms};
    Observation observation;
    observation.features.kernel = kernel;
    observation.features.block_tasks = 1000;
    observation.sms = sides.lc_sms;
    const double alone_ns =
        static_cast<double>(
            flow_->model->durations().PredictSolo(observation.features).duration_ns) /
        flow_->model->durations().SpeedOn(*kernel, sides.lc_sms);
    observation.measured_ns = static_cast<int64_t>(alone_ns / factor);
    observation.beside = absl::MakeConstSpan(&neighbour, 1);
    flow_->model->Observe(observation);
  }

  PairTable& table() { return flow_->buffers.snapshot.pairs; }
  std::vector<float> Numbers() {
    std::vector<float> numbers(table().hoped.begin(), table().hoped.end());
    for (const PairOption& option : table().options) {
      numbers.insert(numbers.end(), {option.lc_speed, option.lc_speed_alone,
                                     option.be_speed_be_side, option.be_speed_lc_side});
    }
    return numbers;
  }
  // Updates the table, and compares it with one of which no row is kept.
  void ExpectAllRowsRight(const char* after) {
    flow_->pairs_stale = true;
    RunPredict();
    const std::vector<float> updated = Numbers();
    EXPECT_EQ(table().options.size(), flow_->lc_apps.span().size() *
                                          flow_->pair_kernels.span().size() *
                                          flow_->lanes.splits().size());
    flow_->pair_apps = 0;
    UpdatePairs(*flow_);
    ASSERT_EQ(updated, Numbers()) << after;
  }

  std::unique_ptr<Flow> flow_;
  std::vector<KernelId> lc_kernels_;
  std::vector<KernelId> be_kernels_;
  int apps_ = 0;
};

TEST_F(PairTableTest, RowsAreRightWhateverComes) {
  std::mt19937 random(7);
  std::vector<QueueId> lc_queues;
  std::vector<QueueId> be_queues;
  for (int i = 0; i < 3; ++i) {
    lc_queues.push_back(AddQueue(AppClass::kLatencyCritical));
    Submit(lc_queues.back(), lc_kernels_[static_cast<size_t>(i)], AppClass::kLatencyCritical);
    ExpectAllRowsRight("a new LC app");
  }
  for (size_t k = 0; k < be_kernels_.size(); ++k) {
    be_queues.push_back(AddQueue(AppClass::kBestEffort));
    Submit(be_queues.back(), be_kernels_[k], AppClass::kBestEffort);
    ExpectAllRowsRight("a new BE kernel");
    for (int samples = 0; samples < 40; ++samples) {
      ObserveBeside(random() % 3, random() % be_kernels_.size(), random() % 2,
                    0.5 + 0.01 * static_cast<double>(random() % 50));
      if (random() % 4 == 0) {
        ASSERT_NO_FATAL_FAILURE(ExpectAllRowsRight("a measured pair"));
      }
    }
  }
  Submit(lc_queues[0], lc_kernels_[2], AppClass::kLatencyCritical, 1'000'000);
  ExpectAllRowsRight("another main kernel");
  flow_->model->neighbours().GiveUpBeside(*flow_->tables.FindKernel(lc_kernels_[1]),
                                          flow_->lanes.splits()[1].lc_sms,
                                          *flow_->tables.FindKernel(be_kernels_[4]), 0.3);
  ExpectAllRowsRight("a trial that measured nothing");
  Register("late", 30'000);
  ExpectAllRowsRight("a registration");
  ASSERT_TRUE(flow_->model->Load(flow_->model->Save()).ok());
  ExpectAllRowsRight("a loaded model");
}

TEST_F(PairTableTest, MorePairsThanTheListHoldsAreAllSeen) {
  Submit(AddQueue(AppClass::kLatencyCritical), lc_kernels_[0], AppClass::kLatencyCritical);
  for (int i = 0; i < 5; ++i) {
    Submit(AddQueue(AppClass::kBestEffort), be_kernels_[static_cast<size_t>(i)],
           AppClass::kBestEffort);
  }
  ExpectAllRowsRight("five BE kernels");
  PairChanges changes;
  flow_->model->neighbours().TakePairChanges(changes);
  EXPECT_FALSE(changes.all);
  for (uint32_t i = 0; i < PairChanges::kPairsMost; ++i) changes.Note(KernelId{1}, KernelId{i + 2});
  EXPECT_FALSE(changes.all);
  changes.Note(KernelId{1}, KernelId{2});
  EXPECT_FALSE(changes.all) << "it is noted already";
  changes.Note(KernelId{2}, KernelId{1});
  EXPECT_TRUE(changes.all);
}

// A captured service lost 20 % beside fft on one split, and seven smaller ones were tried after it.
TEST_F(PairTableTest, ALossOnOneSplitIsNotHopedAwayOnTheNext) {
  KernelDesc stranger;
  stranger.name = "stranger";
  stranger.evictable = true;
  be_kernels_.push_back(Register(stranger));
  Submit(AddQueue(AppClass::kLatencyCritical), lc_kernels_[0], AppClass::kLatencyCritical);
  Submit(AddQueue(AppClass::kBestEffort), be_kernels_.back(), AppClass::kBestEffort);
  RunPredict();
  const auto splits = flow_->lanes.splits();
  size_t widest = 0;
  for (size_t s = 0; s < splits.size(); ++s) {
    if (splits[s].be_sms > splits[widest].be_sms) widest = s;
  }
  for (int i = 0; i < 4; ++i) ObserveBeside(0, be_kernels_.size() - 1, widest, 0.8);
  flow_->pairs_stale = true;
  RunPredict();
  int hoped = 0;
  for (size_t s = 0; s < splits.size(); ++s) {
    const float hope = table().HopedAt(0, 0, static_cast<int32_t>(s));
    if (!(hope > 0)) continue;
    ++hoped;
    const double share = static_cast<double>(splits[s].be_sms) / splits[widest].be_sms;
    const double loss = 0.2 * std::clamp(2 * share - 1, 0.0, 1.0);
    EXPECT_NEAR(hope / table().at(0, 0, static_cast<int32_t>(s)).lc_speed_alone, 1 - loss, 1e-3)
        << splits[s].be_sms;
  }
  EXPECT_EQ(hoped, static_cast<int>(splits.size()) - 1);
}

TEST_F(PairTableTest, TheVersionChangesOnlyWithANumber) {
  Submit(AddQueue(AppClass::kLatencyCritical), lc_kernels_[0], AppClass::kLatencyCritical);
  Submit(AddQueue(AppClass::kBestEffort), be_kernels_[0], AppClass::kBestEffort);
  RunPredict();
  const uint64_t version = table().version;
  flow_->pairs_stale = true;
  RunPredict();
  EXPECT_EQ(table().version, version) << "nothing has changed";
  const uint64_t model_version = flow_->model->version();
  Observation solo;
  solo.features.kernel = flow_->tables.FindKernel(be_kernels_[0]);
  solo.features.block_tasks = 1000;
  solo.measured_ns = 50'000'000;
  for (int i = 0; i < 20; ++i) flow_->model->Observe(solo);
  ASSERT_NE(flow_->model->version(), model_version);
  RunPredict();
  EXPECT_EQ(table().version, version) << "a duration is no number of the table";
  for (int i = 0; i < 5; ++i) ObserveBeside(0, 0, 1, 0.6);
  RunPredict();
  EXPECT_NE(table().version, version);
  EXPECT_LT(table().at(0, 0, 1).lc_speed, 0.7F * table().at(0, 0, 1).lc_speed_alone);
}

}  // namespace
}  // namespace gpushare::core
