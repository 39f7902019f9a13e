// What a profile's kernels get from the rows of a samples file.

#include "src/models/training/train_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/models/learned/learned.h"
#include "src/models/online/online_model.h"

namespace gpushare::models {
namespace {

using ::testing::HasSubstr;

constexpr int32_t kSms = 10;

SampleRow Solo(std::string kernel, core::Form form, int64_t block_tasks, std::vector<double> ns) {
  SampleRow row;
  row.kernel = std::move(kernel);
  row.form = form;
  row.block_tasks = block_tasks;
  row.sms = kSms;
  row.ns = std::move(ns);
  return row;
}

SampleRow Counted(std::string kernel) {
  SampleRow row;
  row.what = SampleKind::kCounters;
  row.kernel = std::move(kernel);
  row.block_tasks = 100;
  row.counters = {{"instructions", 50000},  {"global_instructions", 3000},
                  {"async_copies", 1000},   {"global_requests", 2000},
                  {"global_sectors", 8000}, {"issue", 0.5},
                  {"tensor", 0.25},         {"special", 0.125},
                  {"dram", 0.75},           {"l2", 1.01},
                  {"dram_bytes", 4000},     {"dram_write_bytes", 1000}};
  return row;
}

// A kernel of 1 us a block task on 10 SMs with one worker each, and a graph of 1 ms.
class TrainProfileTest : public ::testing::Test {
 protected:
  TrainProfileTest() {
    profile_.device.gpu_model = "gpu";
    profile_.device.sm_count = kSms;
    core::KernelDesc kernel;
    kernel.name = "kernel";
    kernel.resources.workers_per_sm_max = 1;
    kernel.simulation.present = true;
    kernel.simulation.block_task_ns = 1000;
    core::KernelDesc graph;
    graph.name = "graph";
    graph.code = core::GraphCode();
    graph.solo_hint_ns = 1'000'000;
    profile_.kernels = {kernel, graph};
    samples_.head = {"gpu", kSms, false};
  }

  core::Prediction Predict(size_t index, int64_t block_tasks) const {
    const std::unique_ptr<core::CostModel> model = MakeOnlineModel(profile_.device);
    EXPECT_TRUE(model->Load(profile_.learned).ok());
    core::KernelDesc kernel = profile_.kernels[index];
    kernel.id = core::KernelId{1};
    model->AddKernel(kernel);
    core::TaskFeatures features = {
        .kernel = &kernel, .kind = kernel.kind(), .block_tasks = block_tasks};
    return model->durations().PredictSolo(features);
  }

  Profile profile_;
  Samples samples_;
};

// The fixed 10 us of a launch are in no record.
TEST_F(TrainProfileTest, EveryRepeatOfEverySizeTrainsTheLine) {
  const std::vector<std::pair<int64_t, double>> sizes = {
      {1000, 110000}, {200, 30000}, {500, 60000}};
  for (const auto& [tasks, ns] : sizes) {
    const core::Form form = tasks == 1000 ? core::Form::kOriginal : core::Form::kSlice;
    samples_.rows.push_back(Solo("kernel", form, tasks, {0.99 * ns, ns, 1.01 * ns, ns}));
  }
  samples_.rows.push_back(Solo("graph", core::Form::kGraph, 0, {2e6, 2.02e6, 1.98e6}));
  // Workers, fewer SMs and fewer workers are not what is predicted.
  samples_.rows.push_back(Solo("kernel", core::Form::kWorkers, 300, {9e6, 9e6, 9e6}));
  samples_.rows.push_back(Solo("kernel", core::Form::kOriginal, 300, {9e6, 9e6, 9e6}));
  samples_.rows.back().sms = kSms - 1;
  samples_.rows.push_back(Solo("unknown", core::Form::kOriginal, 300, {9e6}));
  ASSERT_TRUE(TrainProfile(samples_, {}, profile_).ok());
  const core::Prediction trained = Predict(0, 800);
  EXPECT_TRUE(trained.trained);
  EXPECT_NEAR(static_cast<double>(trained.duration_ns), 90000, 900);
  EXPECT_LE(trained.error_ns, 1800);
  const core::Prediction graph = Predict(1, 0);
  EXPECT_TRUE(graph.trained);
  EXPECT_NEAR(static_cast<double>(graph.duration_ns), 2e6, 2e4);
  const Learned learned = ParseLearned(profile_.learned).value();
  ASSERT_EQ(learned.kernels.size(), 2u);
  EXPECT_EQ(learned.kernels[0].solo.samples, 12);
}

// Rows of kernels that keep half of their speed beside each other reach the scheduler's model.
TEST_F(TrainProfileTest, PairsOnTheSameSmsTrainWhatTheSchedulerPredicts) {
  profile_.kernels.clear();
  for (int i = 0; i < 6; ++i) {
    core::KernelDesc kernel;
    kernel.id = core::KernelId{static_cast<uint32_t>(i + 1)};
    kernel.name = "kernel" + std::to_string(i);
    kernel.resources.workers_per_sm_max = 4;
    kernel.simulation.present = true;
    kernel.simulation.saturating_occupancy = 0.25;
    profile_.kernels.push_back(kernel);
    samples_.rows.push_back(Counted(kernel.name));
    samples_.rows.back().counters[5].value = 0.1 + 0.1 * i;
    for (int j = 0; j < 6; ++j) {
      SampleRow row = Solo(kernel.name, core::Form::kWorkers, 100, {2000, 2000, 2000});
      row.what = SampleKind::kBeside;
      row.neighbour = "kernel" + std::to_string(j);
      row.same_sms = true;
      row.workers_per_sm = 2;
      row.neighbour_workers_per_sm = 2;
      row.alone_ns = {1000, 1000, 1000};
      samples_.rows.push_back(row);
    }
  }
  ASSERT_TRUE(TrainProfile(samples_, {}, profile_).ok());
  const std::unique_ptr<core::CostModel> model = MakeOnlineModel(profile_.device);
  model->AddKernel(profile_.kernels[0]);
  ASSERT_TRUE(model->Load(profile_.learned).ok());
  model->AddKernel(profile_.kernels[1]);
  const auto predict = [&](const core::CostModel& from) {
    return from.overlaps().PredictCoResident({profile_.kernels.data(), 2, 100},
                                             {&profile_.kernels[1], 2, 100});
  };
  const core::CoResidentPrediction pair = predict(*model);
  ASSERT_TRUE(pair.known);
  EXPECT_NEAR(pair.speed[0], 0.5, 0.02);
  EXPECT_NEAR(pair.speed[1], 0.5, 0.02);
  EXPECT_LT(pair.speed_error, 0.1);
  // What the process saves has it too; a text that is refused leaves it.
  const std::unique_ptr<core::CostModel> next = MakeOnlineModel(profile_.device);
  ASSERT_TRUE(next->Load(model->Save()).ok());
  for (const core::KernelDesc& kernel : profile_.kernels) next->AddKernel(kernel);
  EXPECT_EQ(predict(*next).speed, pair.speed);
  EXPECT_FALSE(next->Load(R"({"schema_version": 1, "co_resident": {"pairs": [9, 9, 1]}})").ok());
  EXPECT_EQ(predict(*next).speed, pair.speed);
  // Samples without such rows take nothing away.
  const std::string before = profile_.learned;
  samples_.rows.clear();
  ASSERT_TRUE(TrainProfile(samples_, {}, profile_).ok());
  EXPECT_EQ(profile_.learned, before);
}

// What was known of the durations goes, what was known of evictions and pairs stays.
TEST_F(TrainProfileTest, OnlyTheDurationsAloneStartAnew) {
  Learned before;
  before.kernels.resize(1);
  before.kernels[0].name = "kernel";
  before.kernels[0].solo.samples = 1;
  before.kernels[0].solo.mean_y_ns = 9e6;
  before.kernels[0].eviction = {5000, 100, true};
  before.kernels[0].blocking = {7, 4000, 0};
  before.pairs = {{"graph", "kernel", 4, {9, 0.5, 0}}};
  profile_.learned = FormatLearned(before);
  samples_.rows = {Solo("kernel", core::Form::kOriginal, 1000, {1e5, 1e5, 1e5})};
  ASSERT_TRUE(TrainProfile(samples_, {}, profile_).ok());
  EXPECT_EQ(Predict(0, 1000).duration_ns, 100'000);
  const Learned after = ParseLearned(profile_.learned).value();
  EXPECT_EQ(after.kernels[0].solo.samples, 3);
  EXPECT_EQ(after.kernels[0].eviction.mean_ns, 5000);
  EXPECT_EQ(after.kernels[0].blocking.mean, 4000);
  ASSERT_EQ(after.pairs.size(), 1u);
  EXPECT_EQ(after.pairs[0].speed.mean, 0.5);
}

TEST_F(TrainProfileTest, CopiesOfOneDirectionTrainTheirTable) {
  Samples samples = samples_;
  samples.rows.clear();
  for (const int64_t bytes : {1 << 20, 1 << 21, 1 << 22}) {
    SampleRow row;
    row.what = SampleKind::kCopy;
    row.to_device = true;
    row.pinned = false;
    row.bytes = bytes;
    const auto size = static_cast<double>(bytes);
    row.ns = {size / 4, size / 4, size / 4};
    samples.rows.push_back(row);
    row.both_ways = true;
    row.ns = {size};
    samples.rows.push_back(row);
  }
  Profile profile = profile_;
  ASSERT_TRUE(TrainProfile(samples, TrainOptions(), profile).ok());
  const Learned learned = ParseLearned(profile.learned).value();
  ASSERT_EQ(learned.copies.size(), 1U);
  EXPECT_FALSE(learned.copies[0].pinned);
  EXPECT_EQ(learned.copies[0].table.points.size(), 3U);
  const auto model = MakeOnlineModel(profile.device);
  ASSERT_TRUE(model->Load(profile.learned).ok());
  core::TaskFeatures copy;
  copy.kind = core::TaskKind::kMemcpy;
  copy.direction = core::CopyDirection::kHostToDevice;
  copy.pinned = false;
  copy.bytes = 3 << 20;
  EXPECT_NEAR(static_cast<double>(model->durations().PredictSolo(copy).duration_ns),
              (3 << 20) / 4.0, 1e4);
}

// A kernel with 0.75 of the DRAM's peak keeps 1 / 1.03 beside pinned copies to the device.
TEST_F(TrainProfileTest, KernelsBesideCopiesGiveTheDevicesSlowdown) {
  Samples samples = samples_;
  samples.rows = {Counted("kernel")};
  SampleRow row = Solo("kernel", core::Form::kWorkers, 100, {103, 103, 103});
  row.what = SampleKind::kBesideCopy;
  row.to_device = true;
  row.pinned = true;
  row.bytes = 1 << 20;
  row.alone_ns = {100, 100, 100};
  samples.rows.push_back(row);
  row.pinned = false;
  row.ns = {200, 200, 200};
  samples.rows.push_back(row);
  Profile profile = profile_;
  profile.device.copy_out_slowdown = 0.5;
  ASSERT_TRUE(TrainProfile(samples, TrainOptions(), profile).ok());
  EXPECT_NEAR(profile.device.copy_in_slowdown, 0.04, 0.001);
  EXPECT_EQ(profile.device.copy_out_slowdown, 0.5) << "nobody measured that direction";
}

TEST_F(TrainProfileTest, CountersAreOfABlockTask) {
  samples_.rows = {Counted("kernel")};
  ASSERT_TRUE(TrainProfile(samples_, {}, profile_).ok());
  const core::KernelCounters& counters = profile_.kernels[0].counters;
  EXPECT_DOUBLE_EQ(counters.instructions, 500);
  EXPECT_DOUBLE_EQ(counters.memory_instructions, 40);
  EXPECT_DOUBLE_EQ(counters.sectors_per_request, 4);
  EXPECT_DOUBLE_EQ(counters.issue, 0.5);
  EXPECT_DOUBLE_EQ(counters.l2, 1);  // a share, whatever was counted
  EXPECT_DOUBLE_EQ(counters.dram_write, 0.75 / 4);
  EXPECT_FALSE(profile_.kernels[1].counters.present());
  EXPECT_TRUE(ParseProfile(FormatProfile(profile_)).ok());
}

TEST_F(TrainProfileTest, CountersFillOnlyTheDemandsThatAreZeroUnlessAsked) {
  samples_.rows = {Counted("kernel")};
  core::ResourceDemand& demand = profile_.kernels[0].simulation.demand;
  demand.dram = 1;
  ASSERT_TRUE(TrainProfile(samples_, {}, profile_).ok());
  EXPECT_EQ(demand.issue, 0.5);
  EXPECT_EQ(demand.tensor, 0.25);
  EXPECT_EQ(demand.special, 0.125);
  EXPECT_EQ(demand.dram, 1);
  EXPECT_EQ(demand.l2, 0);  // fitted together with DRAM
  ASSERT_TRUE(TrainProfile(samples_, {.replace_demands = true}, profile_).ok());
  EXPECT_EQ(demand.dram, 0.75);
  EXPECT_EQ(demand.l2, 1);
  // Without a record there is nothing to fill.
  samples_.rows = {Counted("graph")};
  ASSERT_TRUE(TrainProfile(samples_, {}, profile_).ok());
  EXPECT_EQ(profile_.kernels[1].simulation.demand.issue, 0);
}

TEST_F(TrainProfileTest, SamplesOfAnotherGpuAndABrokenTextChangeNothing) {
  samples_.rows = {Counted("kernel")};
  samples_.head.gpu_model = "another";
  const absl::Status status = TrainProfile(samples_, {}, profile_);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(status.message(), HasSubstr("another"));
  samples_.head.gpu_model = "gpu";
  profile_.learned = "{";
  EXPECT_TRUE(absl::IsInvalidArgument(TrainProfile(samples_, {}, profile_)));
  EXPECT_FALSE(profile_.kernels[0].counters.present());
}

}  // namespace
}  // namespace gpushare::models
