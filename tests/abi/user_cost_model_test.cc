// A cost model of the application's own, through its C table: the scheduler uses what it predicts
// and nothing that cannot be, it sees what is measured, it is destroyed once. Public headers only.

#include <gpushare/gpushare_cost_model.h>
#include <gpushare/gpushare_policy.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/abi/api_fixture.h"

namespace gpushare_test {
namespace {

constexpr int64_t kHourNs = 3600 * kS;

struct Seen {
  gpushare_task_features task;
  gpushare_observation observation;
  std::vector<gpushare_co_resident_view> beside;
};

struct Model {
  std::optional<gpushare_prediction> solo;  // none: ask the built-in model
  gpushare_bool result = 1;
  std::optional<double> factor;
  bool throws = false;
  bool learned = false;  // what observe returns
  gpushare_runtime* runtime = nullptr;
  gpushare_status inside = GPUSHARE_OK;
  std::vector<gpushare_task_features> asked;
  int asked_beside = 0;
  gpushare_confined_kernel kernel = {};
  gpushare_confined_kernel neighbour = {};
  std::vector<Seen> seen;
  int destroyed = 0;
};

gpushare_bool PredictSolo(void* user, const gpushare_task_features* task,
                          gpushare_prediction* prediction) {
  Model& model = *static_cast<Model*>(user);
  EXPECT_EQ(task->struct_size, sizeof(*task));
  model.asked.push_back(*task);
  if (model.throws) throw std::runtime_error("no idea");
  int64_t now_ns = 0;
  if (model.runtime != nullptr) model.inside = gpushare_now_ns(model.runtime, &now_ns);
  if (!model.solo.has_value()) return 0;
  *prediction = *model.solo;
  return model.result;
}

gpushare_bool PredictBeside(void* user, const gpushare_confined_kernel* kernel,
                            const gpushare_confined_kernel* neighbour, double* factor) {
  Model& model = *static_cast<Model*>(user);
  ++model.asked_beside;
  EXPECT_EQ(kernel->struct_size, sizeof(*kernel));
  EXPECT_EQ(kernel->sms + neighbour->sms, 132);
  if (std::string(kernel->kernel_name) == "chain1") {
    model.kernel = *kernel;
    model.neighbour = *neighbour;
  }
  if (!model.factor.has_value()) return 0;
  *factor = *model.factor;
  return 1;
}

gpushare_bool Observe(void* user, const gpushare_observation* observation) {
  Model& model = *static_cast<Model*>(user);
  EXPECT_EQ(observation->struct_size, sizeof(*observation));
  Seen seen = {*observation->task, *observation, {}};
  for (uint32_t i = 0; i < observation->beside_count; ++i) {
    const char* const row =
        reinterpret_cast<const char*>(observation->beside) + size_t{i} * observation->beside_stride;
    seen.beside.push_back(*reinterpret_cast<const gpushare_co_resident_view*>(row));
  }
  model.seen.push_back(seen);
  if (model.throws) throw 7;
  return model.learned ? 1 : 0;
}

class UserCostModelTest : public testing::Test {
 protected:
  void SetUp() override {
    api_.opening.log = [](void* user, gpushare_log_level, const char* message) {
      static_cast<std::vector<std::string>*>(user)->emplace_back(message);
    };
    api_.opening.log_user = &log_;
    api_.Open({"sim", GPUSHARE_DRIVE_POLL});
    table_.name = "own";
    table_.predict_solo = PredictSolo;
    table_.predict_beside = PredictBeside;
    table_.observe = Observe;
    table_.destroy = [](void* user) { ++static_cast<Model*>(user)->destroyed; };
    table_.user = &model_;
  }
  void TearDown() override { api_.Close(); }

  void Set() { ASSERT_OK(gpushare_set_user_cost_model(api_.runtime, &table_)); }
  // By default many rounds of block tasks, which the built-in model knows to some per cent.
  gpushare_completion_record Run(int64_t block_tasks = 33'792) {
    return api_.Finish(api_.Submit(api_.BeTask(block_tasks), false));
  }
  void ExpectTheBuiltInModelPredicts() {
    const gpushare_completion_record record = Run();
    const auto measured_ns = static_cast<double>(record.measured_ns);
    EXPECT_NEAR(static_cast<double>(record.predicted_ns), measured_ns, measured_ns / 5);
  }
  int64_t Refused() const {
    size_t size = 0;
    gpushare_metrics_text(api_.runtime, nullptr, 0, &size);
    std::string text(size + 1, 0);
    EXPECT_OK(gpushare_metrics_text(api_.runtime, text.data(), text.size(), &size));
    const std::string sample = "\ngpushare_predictions_refused_total{simulated=\"true\"} ";
    const size_t at = text.find(sample);
    EXPECT_NE(at, std::string::npos) << text;
    return at == std::string::npos ? -1 : std::stoll(text.substr(at + sample.size()));
  }
  // How many messages of the log have `text` in them.
  int Logged(const std::string& text) const {
    int lines = 0;
    for (const std::string& line : log_) lines += line.find(text) != std::string::npos ? 1 : 0;
    return lines;
  }

  Model model_;
  std::vector<std::string> log_;
  gpushare_cost_model_table table_ = GPUSHARE_COST_MODEL_TABLE_INIT;
  Api api_;
};

TEST_F(UserCostModelTest, ItsPredictionIsTheRecords) {
  const int64_t built_in_ns = Run().predicted_ns;
  model_.solo = gpushare_prediction{10 * built_in_ns, 77, 1, 0};
  Set();
  const gpushare_completion_record record = Run();
  EXPECT_EQ(record.predicted_ns, 10 * built_in_ns);
  EXPECT_EQ(record.predicted_error_ns, 77);
  ASSERT_EQ(model_.asked.size(), 1u);
  const gpushare_task_features& asked = model_.asked.front();
  EXPECT_EQ(asked.kernel_id, gpushare_kernel_id(api_.sincos));
  EXPECT_STREQ(asked.kernel_name, "sincos_27us");
  EXPECT_EQ(asked.kind, GPUSHARE_TASK_KERNEL);
  EXPECT_EQ(asked.app_id, gpushare_app_id(api_.be_app));
  EXPECT_EQ(asked.block_tasks, 33'792);
  EXPECT_EQ(asked.size_bytes, 0);
}

TEST_F(UserCostModelTest, ACopyHasItsBytesAndNoKernel) {
  Set();
  gpushare_task_options copy = GPUSHARE_TASK_OPTIONS_INIT;
  copy.kind = GPUSHARE_TASK_MEMCPY;
  copy.copy_size_bytes = 4096;
  copy.copy_direction = GPUSHARE_COPY_DEVICE_TO_HOST;
  EXPECT_EQ(api_.Finish(api_.Submit(copy, false)).verdict, GPUSHARE_VERDICT_OK);
  ASSERT_EQ(model_.asked.size(), 1u);
  const gpushare_task_features& asked = model_.asked.front();
  EXPECT_EQ(asked.kernel_id, 0u);
  EXPECT_EQ(asked.kernel_name, nullptr);
  EXPECT_EQ(asked.kind, GPUSHARE_TASK_MEMCPY);
  EXPECT_EQ(asked.size_bytes, 4096);
  EXPECT_EQ(asked.block_tasks, 0);
  EXPECT_EQ(asked.direction, GPUSHARE_COPY_DEVICE_TO_HOST);
}

TEST_F(UserCostModelTest, WhatItDoesNotPredictTheBuiltInModelDoes) {
  Set();  // predict_solo returns 0
  ExpectTheBuiltInModelPredicts();
  EXPECT_EQ(model_.asked.size(), 1u);
  table_.predict_solo = nullptr;
  table_.observe = nullptr;
  table_.predict_beside = nullptr;
  Set();
  ExpectTheBuiltInModelPredicts();
  EXPECT_EQ(Refused(), 0);
}

// A task of one round is shorter than the profile's line says. The model learns that below a table
// that answers everything.
TEST_F(UserCostModelTest, TheBuiltInModelLearnsMeanwhile) {
  const auto error_ns = [](const gpushare_completion_record& record) {
    return std::abs(record.predicted_ns - record.measured_ns);
  };
  constexpr int64_t kOneRound = 1000;
  const int64_t before_ns = error_ns(Run(kOneRound));
  model_.solo = gpushare_prediction{1000, 1, 1, 0};
  Set();
  for (int i = 0; i < 12; ++i) EXPECT_EQ(Run(kOneRound).predicted_ns, 1000);
  const gpushare_runtime_stats stats = api_.RuntimeStats();
  EXPECT_EQ(stats.prediction_samples, 13);
  EXPECT_GT(stats.prediction_error, 0.9) << "it judges the predictions that were planned with";
  ASSERT_OK(gpushare_set_user_cost_model(api_.runtime, nullptr));
  EXPECT_LT(error_ns(Run(kOneRound)), before_ns / 2);
}

TEST_F(UserCostModelTest, AnAnswerThatCannotBeIsNotUsed) {
  const gpushare_prediction wrong[] = {
      {0, 0, 1, 0},           {-5, 0, 1, 0},
      {kHourNs + 1, 0, 1, 0}, {1, -1, 1, 0},
      {1, 0, 2, 0},           {1, kHourNs + 1, 1, 0},
      {1, 0, 1, 1},           {std::numeric_limits<int64_t>::min(), 0, 1, 0}};
  Set();
  int64_t refused = 0;
  for (const gpushare_prediction& answer : wrong) {
    model_.solo = answer;
    SCOPED_TRACE(answer.duration_ns);
    ExpectTheBuiltInModelPredicts();
    EXPECT_EQ(Refused(), ++refused);
  }
  model_.solo = gpushare_prediction{1000, 0, 1, 0};
  model_.result = 7;
  ExpectTheBuiltInModelPredicts();
  EXPECT_EQ(Refused(), ++refused);
  EXPECT_EQ(Logged("The cost model 'own' answers predict_solo of 'sincos_27us' with 0 ns"), 1);
  EXPECT_EQ(Logged("'own'"), 1) << "the first one only";
  model_.result = 1;
  for (const int64_t duration_ns : {int64_t{1}, kHourNs}) {
    model_.solo = gpushare_prediction{duration_ns, kHourNs, 0, 0};
    EXPECT_EQ(Run().predicted_ns, duration_ns);
  }
  EXPECT_EQ(Refused(), refused);
  // A table after this one reports its own first wrong answer, and the count goes on.
  model_.result = 7;
  Set();
  ExpectTheBuiltInModelPredicts();
  EXPECT_EQ(Logged("returns 7 from predict_solo"), 1);
  EXPECT_EQ(Refused(), refused + 1);
}

// A policy that sees the pair table, and launches everything.
struct Pairs {
  float alone = 0;
  float beside = 0;
  uint64_t version = 0;
};

void ReadPairs(void* user, const gpushare_snapshot* snapshot, gpushare_plan* plan) {
  Pairs& pairs = *static_cast<Pairs*>(user);
  const gpushare_pair_option* const option = gpushare_pair_at(snapshot, 0, 0, 0);
  if (option != nullptr) pairs = {option->lc_speed_alone, option->lc_speed, snapshot->pair_version};
  for (uint32_t i = 0; i < snapshot->head_count; ++i) {
    const gpushare_head_view* const head =
        GPUSHARE_AT(gpushare_head_view, snapshot->heads, snapshot->head_stride, i);
    gpushare_planned_launch& launch = plan->launches[plan->launch_count++];
    launch.task = head->task;
    const bool lc = head->app_class == GPUSHARE_CLASS_LATENCY_CRITICAL;
    launch.form = lc ? GPUSHARE_FORM_GRAPH : GPUSHARE_FORM_ORIGINAL;
    launch.lane_class = lc ? GPUSHARE_LANE_LC : GPUSHARE_LANE_BE;
  }
}

class UserCostModelPairsTest : public UserCostModelTest {
 protected:
  void SetUp() override {
    UserCostModelTest::SetUp();
    gpushare_policy_table policy = GPUSHARE_POLICY_TABLE_INIT;
    policy.name = "reader";
    policy.make_plan = ReadPairs;
    policy.user = &pairs_;
    ASSERT_OK(gpushare_set_user_policy(api_.runtime, &policy));
    RunBoth();
    ASSERT_GT(pairs_.alone, 0) << "no pair table";
    before_ = pairs_.beside;
  }
  void RunBoth() {
    EXPECT_EQ(Run().verdict, GPUSHARE_VERDICT_OK);
    EXPECT_EQ(api_.Finish(api_.Submit(api_.LcTask(), true)).verdict, GPUSHARE_VERDICT_OK);
    EXPECT_EQ(Run().verdict, GPUSHARE_VERDICT_OK);
  }

  Pairs pairs_;
  float before_ = 0;
};

TEST_F(UserCostModelPairsTest, ItsFactorIsInThePairTable) {
  model_.factor = 0.25;
  Set();
  RunBoth();
  EXPECT_FLOAT_EQ(pairs_.beside, 0.25F * pairs_.alone);
  EXPECT_EQ(model_.kernel.kernel_id, gpushare_kernel_id(api_.graph));
  EXPECT_STREQ(model_.neighbour.kernel_name, "sincos_27us");
  EXPECT_EQ(model_.neighbour.kernel_id, gpushare_kernel_id(api_.sincos));
  ASSERT_OK(gpushare_set_user_cost_model(api_.runtime, nullptr));
  RunBoth();
  EXPECT_EQ(pairs_.beside, before_);
}

TEST_F(UserCostModelPairsTest, TheTableIsAskedForAgainOnlyWhenObserveSaysSo) {
  model_.factor = 0.25;
  Set();
  RunBoth();
  model_.factor = 0.5;
  RunBoth();
  EXPECT_FLOAT_EQ(pairs_.beside, 0.25F * pairs_.alone);
  const int asked = model_.asked_beside;
  model_.learned = true;
  RunBoth();
  RunBoth();
  EXPECT_GT(model_.asked_beside, asked);
  EXPECT_FLOAT_EQ(pairs_.beside, 0.5F * pairs_.alone);
}

TEST_F(UserCostModelPairsTest, AFactorThatCannotBeIsNotUsed) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double wrong : {std::nan(""), -0.5, 0.0, 1e-9, 1.5, infinity, -infinity}) {
    model_.factor = wrong;
    Set();
    RunBoth();
    EXPECT_EQ(pairs_.beside, before_) << wrong;
  }
  EXPECT_GT(Refused(), 6);
  EXPECT_EQ(Logged("answers predict_beside of 'chain1'"), 7) << "once a table";
  EXPECT_EQ(Logged("and the factor lies between 0.001 and 1"), 7);
}

TEST_F(UserCostModelTest, ItObservesWhatIsMeasured) {
  Set();
  const gpushare_completion_record record = Run();
  ASSERT_EQ(model_.seen.size(), 1u);
  const Seen& seen = model_.seen.front();
  EXPECT_EQ(seen.observation.measured_ns, record.measured_ns);
  EXPECT_EQ(seen.observation.predicted_ns, record.predicted_ns);
  EXPECT_GT(seen.observation.measured_ns, 0);
  EXPECT_EQ(seen.observation.form, record.form);
  EXPECT_EQ(seen.observation.sms, 132);
  EXPECT_EQ(seen.observation.evicted, 0);
  EXPECT_EQ(seen.observation.fused, nullptr);
  EXPECT_TRUE(seen.beside.empty());
  EXPECT_STREQ(seen.task.kernel_name, "sincos_27us");
  EXPECT_EQ(seen.task.block_tasks, 33'792);
}

TEST_F(UserCostModelTest, ItObservesEvictionsAndNeighbours) {
  Set();
  const gpushare_ticket be = api_.Submit(api_.BeTask(200'000), false);
  ASSERT_OK(gpushare_poll_until(api_.runtime, api_.NowNs() + 500 * kUs));
  const gpushare_completion_record lc = api_.Finish(api_.Submit(api_.LcTask(), true));
  EXPECT_GT(api_.Finish(be).evictions, 0);
  bool evicted = false;
  bool beside = false;
  for (const Seen& seen : model_.seen) {
    const bool is_lc = seen.task.kernel_id == gpushare_kernel_id(api_.graph);
    evicted |= seen.observation.evicted == 1 && !is_lc && seen.observation.measured_ns > 0;
    if (!is_lc || seen.beside.empty()) continue;
    beside = true;
    EXPECT_EQ(seen.task.kind, GPUSHARE_TASK_GRAPH);
    EXPECT_EQ(seen.beside.front().kernel_id, gpushare_kernel_id(api_.sincos));
    EXPECT_STREQ(seen.beside.front().kernel_name, "sincos_27us");
    EXPECT_EQ(lc.beside_kernel_id, seen.beside.front().kernel_id);
  }
  EXPECT_TRUE(evicted);
  EXPECT_TRUE(beside);
}

TEST_F(UserCostModelTest, WhatThrowsIsContainedAndLoggedOnce) {
  model_.throws = true;
  Set();
  for (int i = 0; i < 3; ++i) ExpectTheBuiltInModelPredicts();
  EXPECT_EQ(Refused(), 6) << "predictions and observations";
  EXPECT_EQ(
      Logged("The predict_solo of cost model 'own' threw std::runtime_error: no idea. The built-in "
             "model answers where it throws"),
      1);
  EXPECT_EQ(Logged("threw"), 1);
}

TEST_F(UserCostModelTest, AWrongAnswerOfATableThatIsReplacedIsLogged) {
  model_.throws = true;
  table_.predict_solo = nullptr;  // observe throws, in the last stage of a pass
  Set();
  const gpushare_ticket ticket = api_.Submit(api_.BeTask(), false);
  while (model_.seen.empty()) ASSERT_OK(gpushare_poll(api_.runtime, nullptr));
  model_.throws = false;
  ASSERT_OK(gpushare_set_user_cost_model(api_.runtime, nullptr));
  api_.Finish(ticket);
  Run();
  EXPECT_EQ(Logged("The observe of cost model 'own' threw a value of type int."), 1);
  EXPECT_EQ(Refused(), 1);
}

TEST_F(UserCostModelTest, ACallFromInsideIsRefused) {
  model_.runtime = api_.runtime;
  Set();
  EXPECT_EQ(Run().verdict, GPUSHARE_VERDICT_OK);
  EXPECT_EQ(model_.inside, GPUSHARE_FAILED_PRECONDITION);
  EXPECT_GE(api_.NowNs(), 0) << "the thread is outside again";
}

TEST_F(UserCostModelTest, AReplacedTableIsAskedNothingMore) {
  model_.solo = gpushare_prediction{1000, 0, 1, 0};
  Set();
  EXPECT_EQ(Run().predicted_ns, 1000);
  Model other;
  other.solo = gpushare_prediction{2000, 0, 1, 0};
  table_.user = &other;
  Set();
  EXPECT_EQ(model_.destroyed, 1);
  const size_t asked = model_.asked.size();
  const size_t seen = model_.seen.size();
  EXPECT_EQ(Run().predicted_ns, 2000);
  EXPECT_EQ(model_.asked.size(), asked);
  EXPECT_EQ(model_.seen.size(), seen);
  ASSERT_OK(gpushare_set_user_cost_model(api_.runtime, nullptr));
  EXPECT_EQ(other.destroyed, 1);
  EXPECT_NE(Run().predicted_ns, 2000);
  ASSERT_OK(gpushare_set_user_cost_model(api_.runtime, nullptr)) << "nothing to restore";
}

TEST_F(UserCostModelTest, ItIsDestroyedOnceWithTheRuntime) {
  Set();
  EXPECT_EQ(model_.destroyed, 0);
  api_.Close();
  EXPECT_EQ(model_.destroyed, 1);
}

TEST_F(UserCostModelTest, ATableThatIsNotGoodIsRefusedAndItsUserLeftAlone) {
  gpushare_cost_model_table bad = table_;
  bad.version = GPUSHARE_COST_MODEL_VERSION + 1;
  EXPECT_FAILS(gpushare_set_user_cost_model(api_.runtime, &bad), GPUSHARE_UNIMPLEMENTED, "version");
  bad = table_;
  bad.name = nullptr;
  EXPECT_FAILS(gpushare_set_user_cost_model(api_.runtime, &bad), GPUSHARE_INVALID_ARGUMENT, "name");
  bad = table_;
  bad.struct_size = 8;
  EXPECT_FAILS(gpushare_set_user_cost_model(api_.runtime, &bad), GPUSHARE_INVALID_ARGUMENT,
               "struct_size");
  Run();
  EXPECT_TRUE(model_.asked.empty());
  EXPECT_EQ(model_.destroyed, 0);
}

}  // namespace
}  // namespace gpushare_test
