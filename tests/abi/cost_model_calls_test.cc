// The answers of a user cost model that the C layer passes on, seen from inside: fused and
// co-resident predictions, for which no call of the API asks by itself.

#include "bindings/c/cost_model_calls.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>

#include "bindings/c/user_cost_model.h"
#include "gtest/gtest.h"
#include "src/models/online/online_model.h"

namespace gpushare::abi {
namespace {

struct Answers {
  gpushare_prediction fused = {5000, 50, 1, 0};
  gpushare_co_resident_prediction both = {{0.5, 0.75}, 0.1, {{100, 1, 1, 0}, {200, 2, 0, 0}}};
  gpushare_bool result = 1;
  bool learned = false;
  double factor = 0.9;
  gpushare_bool beside = 1;
  gpushare_confined_kernel asked_neighbour = {};
  gpushare_fused_features asked_fused = {};
  gpushare_co_resident_side asked_sides[2] = {};
  gpushare_fused_features observed = {};
  bool observed_fused = false;
};

class CostModelCallsTest : public testing::Test {
 protected:
  void SetUp() override {
    table_.name = "own";
    table_.user = &answers_;
    table_.predict_fused = [](void* user, const gpushare_fused_features* fused,
                              gpushare_prediction* out) {
      auto& answers = *static_cast<Answers*>(user);
      answers.asked_fused = *fused;
      *out = answers.fused;
      return answers.result;
    };
    table_.predict_co_resident = [](void* user, const gpushare_co_resident_side* first,
                                    const gpushare_co_resident_side* second,
                                    gpushare_co_resident_prediction* out) {
      auto& answers = *static_cast<Answers*>(user);
      answers.asked_sides[0] = *first;
      answers.asked_sides[1] = *second;
      *out = answers.both;
      return answers.result;
    };
    table_.predict_beside = [](void* user, const gpushare_confined_kernel* /*kernel*/,
                               const gpushare_confined_kernel* neighbour, double* factor) {
      auto& answers = *static_cast<Answers*>(user);
      answers.asked_neighbour = *neighbour;
      *factor = answers.factor;
      return answers.beside;
    };
    table_.observe = [](void* user, const gpushare_observation* observation) {
      auto& answers = *static_cast<Answers*>(user);
      answers.observed_fused = observation->fused != nullptr;
      if (answers.observed_fused) answers.observed = *observation->fused;
      return answers.learned ? 1 : 0;
    };
    kernel_.id = core::KernelId{3};
    kernel_.name = "tensor";
    other_.id = core::KernelId{4};
    other_.name = "cuda";
    pair_.name = "tensor+cuda";
    pair_.tensor_part = kernel_.id;
    pair_.cuda_part = other_.id;
    pair_.tensor_blocks = 2;
    pair_.cuda_blocks = 3;
    pair_.blocks_per_sm = 4;
    pair_.opportune_load_ratio = 0.8;
    pair_.opportune_duration_ratio = 1.25;
    SetTable();
  }
  void SetTable() {
    auto calls = std::make_unique<CostModelCalls>(table_, log_);
    model_.Exchange(calls);
  }
  core::Prediction Fused() { return model_.overlaps().PredictFused({&pair_, 640, 960}); }
  core::CoResidentPrediction Both() {
    return model_.overlaps().PredictCoResident({&kernel_, 2, 100}, {&other_, 6, 300});
  }

  Answers answers_;
  gpushare_cost_model_table table_ = GPUSHARE_COST_MODEL_TABLE_INIT;
  Log log_{nullptr, nullptr};
  core::KernelDesc kernel_;
  core::KernelDesc other_;
  core::FusedKernelDesc pair_;
  UserCostModel model_{models::MakeOnlineModel(core::DeviceProfile()), 132};
};

TEST_F(CostModelCallsTest, AFusedLaunchIsAskedForWithBothParts) {
  const core::Prediction fused = Fused();
  EXPECT_EQ(fused.duration_ns, 5000);
  EXPECT_EQ(fused.error_ns, 50);
  EXPECT_TRUE(fused.trained);
  const gpushare_fused_features& asked = answers_.asked_fused;
  EXPECT_EQ(asked.struct_size, sizeof(asked));
  EXPECT_STREQ(asked.name, "tensor+cuda");
  EXPECT_EQ(asked.tensor_kernel_id, 3u);
  EXPECT_EQ(asked.cuda_kernel_id, 4u);
  EXPECT_EQ(asked.tensor_blocks, 2);
  EXPECT_EQ(asked.cuda_blocks, 3);
  EXPECT_EQ(asked.blocks_per_sm, 4);
  EXPECT_EQ(asked.tensor_block_tasks, 640);
  EXPECT_EQ(asked.cuda_block_tasks, 960);
  EXPECT_EQ(asked.opportune_load_ratio, 0.8);
  EXPECT_EQ(asked.opportune_duration_ratio, 1.25);
}

TEST_F(CostModelCallsTest, CoResidentKernelsAreAskedForWithBothSides) {
  const core::CoResidentPrediction both = Both();
  ASSERT_TRUE(both.known);
  EXPECT_EQ(both.speed[0], 0.5);
  EXPECT_EQ(both.speed[1], 0.75);
  EXPECT_EQ(both.speed_error, 0.1);
  EXPECT_EQ(both.finish[0].duration_ns, 100);
  EXPECT_TRUE(both.finish[0].trained);
  EXPECT_EQ(both.finish[1].duration_ns, 200);
  EXPECT_EQ(both.finish[1].error_ns, 2);
  EXPECT_FALSE(both.finish[1].trained);
  EXPECT_STREQ(answers_.asked_sides[0].kernel_name, "tensor");
  EXPECT_EQ(answers_.asked_sides[0].workers_per_sm, 2);
  EXPECT_EQ(answers_.asked_sides[1].kernel_id, 4u);
  EXPECT_EQ(answers_.asked_sides[1].block_tasks, 300);
}

// Nobody measured the pair, and its neighbour has no record: the built-in model knows nothing.
TEST_F(CostModelCallsTest, APairThatTheTableAnswersIsKnown) {
  EXPECT_TRUE(model_.neighbours().KnowsBeside(kernel_, 76, other_));
  EXPECT_EQ(answers_.asked_neighbour.sms, 56);
  EXPECT_EQ(model_.neighbours().SpeedBeside(kernel_, 76, other_, 56), 0.9);
  answers_.factor = 1.5;
  EXPECT_FALSE(model_.neighbours().KnowsBeside(kernel_, 76, other_));
  answers_.beside = 0;
  EXPECT_FALSE(model_.neighbours().KnowsBeside(kernel_, 76, other_));
}

TEST_F(CostModelCallsTest, ZeroAsksTheBuiltInModel) {
  const std::unique_ptr<core::CostModel> built_in = models::MakeOnlineModel(core::DeviceProfile());
  answers_.result = 0;
  EXPECT_EQ(Fused().duration_ns, built_in->overlaps().PredictFused({&pair_, 640, 960}).duration_ns);
  EXPECT_EQ(Both().known,
            built_in->overlaps().PredictCoResident({&kernel_, 2, 100}, {&other_, 6, 300}).known);
  EXPECT_EQ(model_.AnswersRefused(), 0);
}

TEST_F(CostModelCallsTest, AnswersThatCannotBeAreNotUsed) {
  answers_.fused.duration_ns = 0;
  EXPECT_NE(Fused().error_ns, 50);
  EXPECT_EQ(model_.AnswersRefused(), 1);
  const gpushare_co_resident_prediction good = answers_.both;
  int64_t refused = 1;
  const auto expect_refused = [&](const char* what) {
    EXPECT_NE(Both().speed_error, 0.1) << what;
    EXPECT_EQ(model_.AnswersRefused(), ++refused) << what;
    answers_.both = good;
  };
  answers_.both.speed[0] = std::nan("");
  expect_refused("a speed that is no number");
  answers_.both.speed[1] = 1.01;
  expect_refused("a speed above 1");
  answers_.both.speed[1] = 0;
  expect_refused("a speed of 0");
  answers_.both.finish[1].duration_ns = -1;
  expect_refused("a negative duration");
  answers_.both.finish[0].reserved = 1;
  expect_refused("a reserved field");
  answers_.both.speed_error = std::numeric_limits<double>::infinity();
  const core::CoResidentPrediction both = Both();
  EXPECT_FALSE(std::isinf(both.speed_error));
  EXPECT_EQ(model_.AnswersRefused(), refused + 1);
}

TEST_F(CostModelCallsTest, TheFirstWrongAnswerChangesTheVersionAndIsReportedOnce) {
  answers_.fused.duration_ns = -7;
  const uint64_t version = model_.version();
  EXPECT_EQ(model_.TakeReport(), "");
  Fused();
  EXPECT_GT(model_.version(), version);
  const std::string report = model_.TakeReport();
  EXPECT_NE(report.find("The cost model 'own' answers predict_fused of 'tensor+cuda' with -7 ns"),
            std::string::npos)
      << report;
  const uint64_t reported = model_.version();
  Fused();
  EXPECT_EQ(model_.TakeReport(), "");
  EXPECT_EQ(model_.version(), reported);
  EXPECT_EQ(model_.AnswersRefused(), 2);
}

// The flow asks for a report only after a change of the version.
TEST_F(CostModelCallsTest, AReportOfEachOfTwoTablesIsTaken) {
  answers_.fused.duration_ns = -7;
  Fused();
  SetTable();
  Fused();
  EXPECT_NE(model_.TakeReport(), "");
  const uint64_t version = model_.version();
  EXPECT_NE(model_.TakeReport(), "");
  EXPECT_EQ(model_.version(), version);
  EXPECT_EQ(model_.TakeReport(), "");
}

TEST_F(CostModelCallsTest, TheVersionNeverRepeatsWhenATableIsReplaced) {
  core::Observation observation;
  observation.features.kernel = &kernel_;
  answers_.learned = true;
  uint64_t version = model_.version();
  for (int i = 0; i < 3; ++i) {
    model_.Observe(observation);
    EXPECT_GT(model_.version(), version);
    version = model_.version();
  }
  std::unique_ptr<CostModelCalls> none;
  model_.Exchange(none);
  EXPECT_GT(model_.version(), version);
}

TEST_F(CostModelCallsTest, AFusedMeasurementHasBothParts) {
  const core::FusedFeatures fused = {&pair_, 640, 960};
  core::Observation observation;
  observation.features.kernel = &kernel_;
  observation.form = core::Form::kFused;
  observation.measured_ns = 9000;
  observation.fused = &fused;
  model_.Observe(observation);
  ASSERT_TRUE(answers_.observed_fused);
  EXPECT_EQ(answers_.observed.cuda_block_tasks, 960);
  EXPECT_STREQ(answers_.observed.name, "tensor+cuda");
}

}  // namespace
}  // namespace gpushare::abi
