// What the online model predicts of work that overlaps: fused kernels, and neighbours that a query
// never met. What it learned of both survives a profile.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "src/models/learned/learned.h"
#include "src/models/online/online_model.h"

namespace gpushare::models {
namespace {

using core::CostModel;
using core::DeviceProfile;
using core::FusedFeatures;
using core::FusedKernelDesc;
using core::KernelDesc;
using core::KernelId;
using core::Observation;
using core::Prediction;

const int32_t kSms = DeviceProfile().sm_count;

KernelDesc Kernel(uint32_t id, const std::string& name) {
  KernelDesc kernel;
  kernel.id = KernelId{id};
  kernel.name = name;
  kernel.evictable = true;
  return kernel;
}

Observation Solo(const KernelDesc& kernel, int64_t block_tasks) {
  Observation observation;
  observation.features.kernel = &kernel;
  observation.features.block_tasks = block_tasks;
  observation.sms = kSms;
  observation.measured_ns = 1000 * block_tasks;
  return observation;
}

// --- fused ---------------------------------------------------------------------------------------

class FusedPredictionTest : public ::testing::Test {
 protected:
  void SetUp() override { Fill(*model_); }
  void Fill(CostModel& model) {
    model.AddKernel(tensor_);
    model.AddKernel(cuda_);
    fused_.id = KernelId{1};
    fused_.name = "pair";
    fused_.tensor_part = tensor_.id;
    fused_.cuda_part = cuda_.id;
    fused_.opportune_load_ratio = 0.8;
    fused_.opportune_duration_ratio = 1.2;
    model.AddFusedKernel(fused_);
  }
  void TrainParts(CostModel& model) const {
    for (int64_t i = 0; i < 200; ++i) {
      model.Observe(Solo(tensor_, 100 + 100 * (i % 20)));
      model.Observe(Solo(cuda_, 100 + 100 * (i % 20)));
    }
  }
  // A run of 1,000 tensor block tasks, 1 ms alone.
  void Run(int64_t cuda_tasks, double duration_ratio, int32_t sms = kSms) {
    const FusedFeatures features{&fused_, 1000, cuda_tasks};
    Observation observation;
    observation.form = core::Form::kFused;
    observation.sms = sms;
    observation.fused = &features;
    observation.measured_ns = static_cast<int64_t>(duration_ratio * 1e6);
    model_->Observe(observation);
  }
  Prediction Predict(int64_t cuda_tasks) const {
    return model_->overlaps().PredictFused({&fused_, 1000, cuda_tasks});
  }

  KernelDesc tensor_ = Kernel(1, "tensor");
  KernelDesc cuda_ = Kernel(2, "cuda");
  FusedKernelDesc fused_;
  std::unique_ptr<CostModel> model_ = MakeOnlineModel(DeviceProfile());
};

TEST_F(FusedPredictionTest, TheTwoLinesScaleWithTheTensorPart) {
  TrainParts(*model_);
  EXPECT_NEAR(static_cast<double>(Predict(400).duration_ns), 1.1e6, 1e3);
  EXPECT_NEAR(static_cast<double>(Predict(800).duration_ns), 1.2e6, 1e3);
  EXPECT_NEAR(static_cast<double>(Predict(1300).duration_ns), 1.7e6, 1e3);
  EXPECT_FALSE(Predict(400).trained);
  EXPECT_GE(Predict(400).error_ns, 0.2 * 1.1e6);
}

TEST_F(FusedPredictionTest, RunsTrainItAndAProfileKeepsThem) {
  TrainParts(*model_);
  const uint64_t version = model_->overlaps().fused_version();
  for (int i = 0; i < 16; ++i) Run(200 + 100 * (7 * i % 16), 1.3 + 0.05 * (7 * i % 16));
  EXPECT_GT(model_->overlaps().fused_version(), version);
  EXPECT_TRUE(Predict(1000).trained);
  EXPECT_NEAR(static_cast<double>(Predict(1000).duration_ns), 1.7e6, 0.03e6);
  EXPECT_LT(Predict(1000).error_ns, 0.1e6);
  const std::unique_ptr<CostModel> next = MakeOnlineModel(DeviceProfile());
  ASSERT_TRUE(next->Load(model_->Save()).ok());
  Fill(*next);
  EXPECT_NEAR(static_cast<double>(next->overlaps().PredictFused({&fused_, 1000, 1000}).duration_ns),
              1.7e6, 0.03e6);
  EXPECT_TRUE(next->overlaps().CurveOf(fused_).trained);
}

TEST_F(FusedPredictionTest, AgainstGuessesOrOnFewerSmsNothingIsLearned) {
  for (int i = 0; i < 16; ++i) Run(200 + 100 * i, 3);
  TrainParts(*model_);
  for (int i = 0; i < 16; ++i) Run(200 + 100 * i, 3, kSms / 2);
  EXPECT_FALSE(model_->overlaps().CurveOf(fused_).trained);
}

TEST_F(FusedPredictionTest, AnUnknownFusedKernelTakesBothPartsOneAfterTheOther) {
  TrainParts(*model_);
  FusedKernelDesc unknown = fused_;
  unknown.id = KernelId{9};
  const Prediction prediction = model_->overlaps().PredictFused({&unknown, 1000, 500});
  EXPECT_NEAR(static_cast<double>(prediction.duration_ns), 1.5e6, 1e3);
  EXPECT_FALSE(prediction.trained);
}

// --- two kernels on the same SMs -----------------------------------------------------------------

class CoRunPredictionTest : public ::testing::Test {
 protected:
  void SetUp() override { Fill(*model_); }
  void Fill(CostModel& model) const {
    model.AddKernel(one_);
    model.AddKernel(other_);
  }
  void TrainSolo() {
    for (int64_t i = 0; i < 50; ++i) {
      model_->Observe(Solo(one_, 100 + 100 * (i % 20)));
      model_->Observe(Solo(other_, 100 + 100 * (i % 20)));
    }
  }
  // A run of 1,000 block tasks, 1 ms alone, for this part of its time beside the other kernel.
  void Run(const KernelDesc& own, const KernelDesc& neighbour, double ms, double share = 1) {
    const core::CoRun run{{&own, 4, 1000}, {&neighbour, 4, 0}, share};
    Observation observation = Solo(own, 1000);
    observation.form = core::Form::kWorkers;
    observation.measured_ns = static_cast<int64_t>(ms * 1e6);
    observation.co_run = &run;
    model_->Observe(observation);
  }
  core::CoResidentPrediction Predict(const CostModel& model) const {
    return model.overlaps().PredictCoResident({&one_, 4, 1000}, {&other_, 4, 1000});
  }

  KernelDesc one_ = Kernel(1, "one");
  KernelDesc other_ = Kernel(2, "other");
  std::unique_ptr<CostModel> model_ = MakeOnlineModel(DeviceProfile());
};

TEST_F(CoRunPredictionTest, RunsTeachThePairAndAProfileKeepsThem) {
  TrainSolo();
  const Prediction alone = model_->durations().PredictSolo(Solo(one_, 1000).features);
  const uint64_t version = model_->overlaps().co_schedule_version();
  core::PairChanges changes;
  model_->overlaps().TakeCoScheduleChanges(changes);
  for (int i = 0; i < 8; ++i) {
    Run(one_, other_, 2);
    Run(other_, one_, 1.25);
  }
  EXPECT_GT(model_->overlaps().co_schedule_version(), version);
  model_->overlaps().TakeCoScheduleChanges(changes);
  EXPECT_FALSE(changes.all);
  EXPECT_GE(changes.pairs.size(), 1);
  const core::CoResidentPrediction predicted = Predict(*model_);
  ASSERT_TRUE(predicted.known);
  EXPECT_NEAR(predicted.speed[0], 0.5, 0.01);
  EXPECT_NEAR(predicted.speed[1], 0.8, 0.01);
  EXPECT_LT(predicted.speed_error, 0.03);
  EXPECT_EQ(model_->durations().PredictSolo(Solo(one_, 1000).features), alone)
      << "such runs are no solo samples";
  const std::unique_ptr<CostModel> next = MakeOnlineModel(DeviceProfile());
  ASSERT_TRUE(next->Load(model_->Save()).ok());
  Fill(*next);
  EXPECT_NEAR(Predict(*next).speed[0], predicted.speed[0], 1e-9);
  EXPECT_NEAR(Predict(*next).speed[1], predicted.speed[1], 1e-9);
  EXPECT_NEAR(Predict(*next).speed_error, predicted.speed_error, 1e-9);
  EXPECT_EQ(next->Save(), model_->Save());
  // Of kernels that never came, too.
  const std::unique_ptr<CostModel> empty = MakeOnlineModel(DeviceProfile());
  ASSERT_TRUE(empty->Load(model_->Save()).ok());
  EXPECT_EQ(ParseLearned(empty->Save())->co_runs.size(), 2U);
}

// Half of the workers have half of the speed for the fifth of the time that the neighbour was away.
TEST_F(CoRunPredictionTest, TheTimeWithoutTheNeighbourDoesNotCount) {
  TrainSolo();
  const double rate = 0.8 * 0.3 + 0.2 * 0.5;
  for (int i = 0; i < 8; ++i) {
    Run(one_, other_, 1 / rate, 0.8);
    Run(other_, one_, 1.25);
  }
  EXPECT_NEAR(Predict(*model_).speed[0], 0.3, 0.01);
}

TEST_F(CoRunPredictionTest, AgainstGuessesNothingIsLearned) {
  for (int i = 0; i < 8; ++i) {
    Run(one_, other_, 2);
    Run(other_, one_, 1.25);
  }
  EXPECT_FALSE(Predict(*model_).known);
}

TEST_F(CoRunPredictionTest, ATextWithImpossibleRunsIsRefused) {
  const auto text = [](const char* point) {
    return absl::StrCat(R"({"schema_version":1,"co_runs":[{"kernel":"a","neighbour":"b","point":)",
                        point, "}]}");
  };
  const std::string good =
      R"({"workers":1,"neighbour_workers":1,"mean":{"samples":3,"speed":0.5}})";
  EXPECT_TRUE(ParseLearned(text(good.c_str())).ok());
  for (const char* bad : {R"({"workers":0})", R"({"mean":{"samples":0}})",
                          R"({"mean":{"speed":1.5}})", R"({"mean":{"squared_error":-1}})"}) {
    EXPECT_FALSE(ParseLearned(text(bad)).ok()) << bad;
  }
}

// --- a neighbour that was never met --------------------------------------------------------------

class UnmetNeighbourTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Learned learned;
    learned.kernels.resize(1);
    learned.kernels[0].name = "service";
    learned.kernels[0].neighbours.known = true;
    learned.kernels[0].neighbours.weights = {1, -0.5};  // 1 - 0.5 l2 speed
    learned.kernels[0].neighbours.error = 0.06;
    learned.kernels[0].neighbours.small_error = 0.02;
    ASSERT_TRUE(model_->Load(FormatLearned(learned)).ok());
    service_.code = core::GraphCode();
    stranger_.counters.instructions = 100;
    stranger_.counters.l2 = 0.6;
    stranger_.simulation.speed = {{24, 0.4}, {48, 0.7}};
    for (const KernelDesc& kernel : {service_, stranger_, uncounted_}) model_->AddKernel(kernel);
  }

  KernelDesc service_ = Kernel(1, "service");
  KernelDesc stranger_ = Kernel(2, "stranger");
  KernelDesc uncounted_ = Kernel(3, "uncounted");
  std::unique_ptr<CostModel> model_ = MakeOnlineModel(DeviceProfile());
};

TEST_F(UnmetNeighbourTest, ItsCountersPredictWhatItCosts) {
  EXPECT_TRUE(model_->neighbours().KnowsBeside(service_, 84, stranger_));
  EXPECT_DOUBLE_EQ(model_->neighbours().SpeedBeside(service_, 84, stranger_, 48),
                   1 - 0.5 * (0.6 * 0.7));
  EXPECT_DOUBLE_EQ(model_->neighbours().ErrorBeside(service_, 84, stranger_, 48), 0.06);
}

// Its counters then tell how fast it is on fewer SMs: here in proportion to them.
TEST_F(UnmetNeighbourTest, ItNeedsNoCurveOverSms) {
  KernelDesc flat = Kernel(4, "flat");
  flat.counters = stranger_.counters;
  model_->AddKernel(flat);
  EXPECT_DOUBLE_EQ(model_->neighbours().SpeedBeside(service_, 84, flat, 48),
                   1 - 0.5 * (0.6 * 48.0 / kSms));
}

TEST_F(UnmetNeighbourTest, WithoutCountersNothingIsKnown) {
  EXPECT_FALSE(model_->neighbours().KnowsBeside(service_, 84, uncounted_));
  EXPECT_EQ(model_->neighbours().ErrorBeside(service_, 84, uncounted_, 48), 0);
}

// Kernels of an application, with counters and without records. What their demands predict is what
// a trial hopes for, and no more.
TEST_F(UnmetNeighbourTest, DemandsOfCountersAreAGuessThatATrialConfirms) {
  KernelDesc mine = Kernel(4, "mine");
  mine.counters = stranger_.counters;
  mine.counters.l2 = 0.9;
  mine.simulation.speed = {{48, 1}, {84, 1}};
  KernelDesc recorded = Kernel(5, "recorded");
  recorded.simulation.present = true;
  recorded.simulation.demand.l2 = 0.9;
  for (const KernelDesc& kernel : {mine, recorded}) model_->AddKernel(kernel);
  const core::Neighbours& neighbours = model_->neighbours();
  for (const KernelDesc& kernel : {mine, recorded}) {
    EXPECT_FALSE(neighbours.KnowsBeside(kernel, 84, stranger_)) << kernel.name;
  }
  EXPECT_FALSE(neighbours.KnowsBeside(mine, 84, recorded));
  EXPECT_LT(neighbours.SpeedBeside(mine, 84, stranger_, 48), 1) << "the first guess";
  EXPECT_FALSE(neighbours.KnowsBeside(uncounted_, 84, stranger_));
  EXPECT_FALSE(neighbours.KnowsBeside(mine, 84, uncounted_));
  model_->neighbours().GiveUpBeside(mine, 84, stranger_, 0.8);
  EXPECT_TRUE(neighbours.KnowsBeside(mine, 84, stranger_)) << "tried";
}

// A graph that a program captured, beside a kernel of the profile.
TEST_F(UnmetNeighbourTest, TheRecordOfTheNeighbourAloneSaysNothing) {
  KernelDesc recorded = Kernel(4, "recorded");
  recorded.simulation.present = true;
  recorded.simulation.demand.dram = 1;
  KernelDesc captured = Kernel(5, "captured");
  captured.code = core::GraphCode();
  for (const KernelDesc& kernel : {recorded, captured}) model_->AddKernel(kernel);
  EXPECT_FALSE(model_->neighbours().KnowsBeside(captured, 84, recorded));
  captured.simulation.present = true;
  EXPECT_TRUE(model_->neighbours().KnowsBeside(captured, 84, recorded));
  captured.simulation.present = false;
  recorded.simulation.demand.dram = recorded.simulation.demand.l2 = 0.01;
  EXPECT_TRUE(model_->neighbours().KnowsBeside(captured, 84, recorded)) << "it shares nothing";
}

TEST_F(UnmetNeighbourTest, OneThatSharesNothingCostsNothing) {
  KernelDesc compute = Kernel(4, "compute");
  compute.counters.instructions = 100;
  compute.counters.issue = 0.9;
  compute.counters.l2 = 0.005;
  model_->AddKernel(compute);
  EXPECT_TRUE(model_->neighbours().KnowsBeside(service_, 84, compute));
  EXPECT_EQ(model_->neighbours().SpeedBeside(service_, 84, compute, 48), 1);
  EXPECT_EQ(model_->neighbours().ErrorBeside(service_, 84, compute, 48), 0);
}

TEST_F(UnmetNeighbourTest, OneThatSharesLittleCostsWhatTheWeightsSay) {
  KernelDesc compute = Kernel(4, "compute");
  compute.counters.instructions = 100;
  compute.counters.l2 = 0.02;
  KernelDesc unweighed = Kernel(5, "unweighed");
  unweighed.code = core::GraphCode();
  for (const KernelDesc& kernel : {compute, unweighed}) model_->AddKernel(kernel);
  EXPECT_LT(model_->neighbours().SpeedBeside(service_, 84, compute, 48), 1);
  EXPECT_TRUE(model_->neighbours().KnowsBeside(unweighed, 84, compute))
      << "it shares too little to try it";
  EXPECT_EQ(model_->neighbours().SpeedBeside(unweighed, 84, compute, 48), 1);
}

TEST_F(UnmetNeighbourTest, AMeasurementReplacesThePrediction) {
  for (int i = 0; i < 8; ++i) {
    Observation alone;
    alone.features.kernel = &service_;
    alone.features.kind = core::TaskKind::kGraph;
    alone.sms = kSms;
    alone.measured_ns = 500'000;
    model_->Observe(alone);
  }
  const core::CoResident beside{&stranger_, 48, false};
  for (int i = 0; i < 8; ++i) {
    Observation observation;
    observation.features.kernel = &service_;
    observation.features.kind = core::TaskKind::kGraph;
    observation.sms = 84;
    observation.measured_ns =
        static_cast<int64_t>(500'000 / (0.9 * model_->durations().SpeedOn(service_, 84)));
    observation.beside = absl::MakeConstSpan(&beside, 1);
    model_->Observe(observation);
  }
  EXPECT_NEAR(model_->neighbours().SpeedBeside(service_, 84, stranger_, 48), 0.9, 0.01);
  EXPECT_EQ(model_->neighbours().ErrorBeside(service_, 84, stranger_, 48), 0);
}

TEST_F(UnmetNeighbourTest, AProfileKeepsTheWeights) {
  const auto learned = ParseLearned(model_->Save()).value();
  ASSERT_FALSE(learned.kernels.empty());
  EXPECT_TRUE(learned.kernels[0].neighbours.known);
  EXPECT_DOUBLE_EQ(learned.kernels[0].neighbours.weights[1], -0.5);
  // Eight weights are no model of ten.
  const std::string bad = R"({"schema_version":1,"kernels":[{"name":"a","neighbours":)"
                          R"({"weights":[1,2,3,4,5,6,7,8],"error":0.1}}]})";
  EXPECT_FALSE(ParseLearned(bad).ok());
}

}  // namespace
}  // namespace gpushare::models
