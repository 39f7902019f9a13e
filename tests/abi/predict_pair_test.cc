// gpushare_predict_pair: what the cost model says of a pair, as a row of gpushare_place, and bad
// input, after which the row is as it was.

#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/abi/api_fixture.h"

namespace gpushare_test {
namespace {

class PredictPairTest : public ::testing::Test {
 protected:
  void SetUp() override {
    api_.Open({"sim", GPUSHARE_DRIVE_POLL});
    query_.push_back(GPUSHARE_PAIR_LAUNCH_INIT);
    query_[0].kernel = api_.graph;
    be_.kernel = api_.sincos;
    be_.block_tasks = 50'000;
    pair_.load = 0.4;
  }
  void TearDown() override {
    for (gpushare_kernel* const kernel : registered_) EXPECT_OK(gpushare_kernel_release(kernel));
    api_.Close();
  }

  // A kernel of one block task of this length that neither leaves nor can be confined.
  gpushare_kernel* Register(const char* name, int64_t block_task_ns) {
    gpushare_simulation_record record = GPUSHARE_SIMULATION_RECORD_INIT;
    record.block_task_ns = block_task_ns;
    gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
    options.name = name;
    options.simulation = &record;
    options.evictable = GPUSHARE_CHOICE_NO;
    options.confinable = GPUSHARE_CHOICE_NO;
    gpushare_kernel* kernel = nullptr;
    EXPECT_OK(gpushare_kernel_register(api_.runtime, &options, &kernel));
    if (kernel != nullptr) registered_.push_back(kernel);
    return kernel;
  }

  gpushare_status Predict(double p99_bound = 0) {
    return gpushare_predict_pair(api_.runtime, query_.data(), query_.size(), &be_, p99_bound,
                                 &pair_);
  }
  gpushare_place_pair Predicted(double load, double p99_bound) {
    pair_.load = load;
    EXPECT_OK(Predict(p99_bound));
    return pair_;
  }

  static constexpr int64_t kQueryNs = 400 * kUs;

  Api api_;
  std::vector<gpushare_kernel*> registered_;
  std::vector<gpushare_pair_launch> query_;
  gpushare_pair_launch be_ = GPUSHARE_PAIR_LAUNCH_INIT;
  gpushare_place_pair pair_ = GPUSHARE_PLACE_PAIR_INIT;
};

// The query cannot be confined, so BE is on the device between queries, and leaves for each.
TEST_F(PredictPairTest, BestEffortGetsWhatTheQueriesLeave) {
  query_[0].kernel = Register("whole", kQueryNs);
  query_[0].block_tasks = 1;
  for (const double load : {0.0, 0.2, 0.4, 0.6, 0.8}) {
    const gpushare_place_pair row = Predicted(load, 1.05);
    EXPECT_GE(row.p99_ratio, 1) << load;
    EXPECT_LE(row.p99_ratio + row.p99_error, 1.05) << load;
    EXPECT_LE(row.be_rate, 1 - load) << load;
    EXPECT_GT(row.be_rate, 0.9 * (1 - load)) << load;
    EXPECT_GE(row.be_error, 0) << load;
  }
}

// A graph that keeps its speed on a part of the SMs leaves BE the others.
TEST_F(PredictPairTest, ASplitIsTakenWhereItGainsWithinTheBound) {
  for (const double load : {0.2, 0.5, 0.8}) {
    const gpushare_place_pair tight = Predicted(load, 1.05);
    const gpushare_place_pair loose = Predicted(load, 2);
    EXPECT_LE(tight.p99_ratio + tight.p99_error, 1.05) << load;
    EXPECT_LE(loose.p99_ratio + loose.p99_error, 2) << load;
    EXPECT_GE(tight.be_rate, 0.9 * (1 - load)) << load;
    EXPECT_GE(loose.be_rate, tight.be_rate) << load;
  }
  EXPECT_GT(Predicted(0.8, 1.05).be_rate, 0.3);
}

// The same wait moves the p99 of a query of three launches by a third.
TEST_F(PredictPairTest, ALongerQueryIsMovedLess) {
  query_[0].kernel = Register("whole", kQueryNs);
  query_[0].block_tasks = 1;
  const gpushare_place_pair once = Predicted(0.4, 1.05);
  ASSERT_GT(once.p99_ratio, 1);
  query_[0].count = 3;
  const gpushare_place_pair three = Predicted(0.4, 1.05);
  EXPECT_NEAR((once.p99_ratio - 1) / (three.p99_ratio - 1), 3, 0.01);
  query_.assign(3, query_[0]);
  for (gpushare_pair_launch& launch : query_) launch.count = 0;
  EXPECT_NEAR(Predicted(0.4, 1.05).p99_ratio, three.p99_ratio, 1e-9);
}

// A launch that cannot leave is waited for, so a long one breaks the bound.
TEST_F(PredictPairTest, AKernelThatCannotLeaveMovesTheP99ByItsLength) {
  be_.kernel = Register("stays", 5 * kMs);
  be_.block_tasks = 1;
  EXPECT_GT(Predicted(0.4, 1.05).p99_ratio, 1.5);
}

TEST_F(PredictPairTest, ARowPlacesAndItsNamesStay) {
  pair_.lc = "service";
  pair_.be = "training";
  ASSERT_OK(Predict());
  EXPECT_STREQ(pair_.lc, "service");
  EXPECT_STREQ(pair_.be, "training");
  EXPECT_EQ(pair_.load, 0.4);
  gpushare_place_options options = GPUSHARE_PLACE_OPTIONS_INIT;
  options.risk = -1;
  gpushare_place_gpu gpu = GPUSHARE_PLACE_GPU_INIT;
  gpu.name = "gpu";
  gpu.count = 1;
  gpu.memory_bytes = 100;
  gpushare_place_lc lc = GPUSHARE_PLACE_LC_INIT;
  lc.name = lc.kind = pair_.lc;
  lc.replicas = 1;
  lc.load = 0.4;
  gpushare_place_be be = GPUSHARE_PLACE_BE_INIT;
  be.name = be.kind = pair_.be;
  be.instances = 1;
  int32_t gpus[2] = {};
  gpushare_place_result result = GPUSHARE_PLACE_RESULT_INIT;
  ASSERT_OK(
      gpushare_place(&options, &gpu, 1, &lc, 1, &be, 1, &pair_, 1, nullptr, gpus, 2, &result));
  EXPECT_EQ(result.be_placed, 1);
  EXPECT_NEAR(result.be_rate, pair_.be_rate, 1e-9);
}

TEST_F(PredictPairTest, BadInputLeavesTheRow) {
  Api other;
  other.Open({"sim", GPUSHARE_DRIVE_POLL});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const struct {
    const char* text;
    std::function<void()> change;
  } kCases[] = {
      {"pair.load is 0.99", [&] { pair_.load = 0.99; }},
      {"pair.load is -0.1", [&] { pair_.load = -0.1; }},
      {"pair.load is nan", [&] { pair_.load = nan; }},
      {"query_count is 0", [&] { query_.clear(); }},
      {"query has 65 entries", [&] { query_.resize(65, query_[0]); }},
      {"query[1].struct_size", [&] { query_.resize(2); }},
      {"query[0].count is -1", [&] { query_[0].count = -1; }},
      {"query[0].count is 1000001", [&] { query_[0].count = 1'000'001; }},
      {"query[0].block_tasks is 7", [&] { query_[0].block_tasks = 7; }},
      {"query[0].kernel", [&] { query_[0].kernel = other.graph; }},
      {"be.block_tasks is 0", [&] { be_.block_tasks = 0; }},
      {"be.block_tasks is 1099511627777", [&] { be_.block_tasks = (int64_t{1} << 40) + 1; }},
      {"be.count is 2", [&] { be_.count = 2; }},
      {"be.kernel: ", [&] { be_.kernel = nullptr; }},
  };
  const std::vector<gpushare_pair_launch> query = query_;
  const gpushare_pair_launch be = be_;
  const gpushare_place_pair pair = pair_;
  for (const auto& one : kCases) {
    query_ = query;
    be_ = be;
    pair_ = pair;
    pair_.be_rate = 0.125;
    one.change();
    EXPECT_FAILS(Predict(), GPUSHARE_INVALID_ARGUMENT, one.text);
    EXPECT_EQ(pair_.be_rate, 0.125) << one.text;
    EXPECT_EQ(pair_.p99_ratio, 0) << one.text;
  }
  query_ = query;
  be_ = be;
  pair_ = pair;
  for (const double bound : {0.99, -1.0, 1e7, nan}) {
    EXPECT_FAILS(Predict(bound), GPUSHARE_INVALID_ARGUMENT, "p99_bound is ");
  }
  EXPECT_FAILS(gpushare_predict_pair(api_.runtime, nullptr, 1, &be_, 0, &pair_),
               GPUSHARE_INVALID_ARGUMENT, "query");
  EXPECT_FAILS(gpushare_predict_pair(api_.runtime, query_.data(), 1, nullptr, 0, &pair_),
               GPUSHARE_INVALID_ARGUMENT, "be");
  EXPECT_FAILS(gpushare_predict_pair(api_.runtime, query_.data(), 1, &be_, 0, nullptr),
               GPUSHARE_INVALID_ARGUMENT, "pair");
  EXPECT_FAILS(gpushare_predict_pair(nullptr, query_.data(), 1, &be_, 0, &pair_),
               GPUSHARE_INVALID_ARGUMENT, "runtime");
  pair_.reserved = 1;
  EXPECT_FAILS(Predict(), GPUSHARE_UNIMPLEMENTED, "pair.reserved");
  pair_.reserved = 0;
  EXPECT_OK(Predict());
  other.Close();
}

}  // namespace
}  // namespace gpushare_test
