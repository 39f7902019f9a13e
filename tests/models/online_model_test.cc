// The online model: it starts from the record, learns from solo samples only, and follows a change.

#include "src/models/online/online_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <new>
#include <random>
#include <string>

#include "absl/strings/str_replace.h"
#include "src/models/profile/profile.h"

namespace {
// Counts what PredictSolo must not do.
int64_t allocations = 0;
}  // namespace

// Not inlined: the compiler would take malloc beside a delete for a mismatch.
[[gnu::noinline]] void* operator new(size_t size) {
  ++allocations;
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace gpushare::models {
namespace {

using core::CoResident;
using core::CostModel;
using core::DelayedQuery;
using core::DeviceProfile;
using core::GraphCode;
using core::KernelDesc;
using core::KernelId;
using core::Observation;
using core::Prediction;
using core::TaskFeatures;
using core::TaskKind;

KernelDesc Worker(uint32_t id, const std::string& name, int64_t block_task_ns) {
  KernelDesc kernel;
  kernel.id = KernelId{id};
  kernel.name = name;
  kernel.evictable = true;
  kernel.resources.workers_per_sm_max = 8;
  kernel.simulation.present = true;
  kernel.simulation.block_task_ns = block_task_ns;
  return kernel;
}

TaskFeatures Features(const KernelDesc& kernel, int64_t block_tasks) {
  TaskFeatures features = {.kernel = &kernel, .kind = kernel.kind(), .block_tasks = block_tasks};
  return features;
}

Observation Solo(const KernelDesc& kernel, int64_t block_tasks, double measured_ns) {
  Observation observation;
  observation.features = Features(kernel, block_tasks);
  observation.sms = DeviceProfile().sm_count;
  observation.measured_ns = static_cast<int64_t>(measured_ns);
  return observation;
}

double RelativeError(const CostModel& model, const TaskFeatures& features, double truth) {
  return std::abs(static_cast<double>(model.durations().PredictSolo(features).duration_ns) -
                  truth) /
         truth;
}

class OnlineModelTest : public ::testing::Test {
 protected:
  std::unique_ptr<CostModel> model_ = MakeOnlineModel(DeviceProfile());
};

// By its counters at first, twice what they say; then by what was measured, which trains no other
// direction and no duration alone.
TEST_F(OnlineModelTest, LearnsWhatCopiesTakeOfAKernel) {
  DeviceProfile device;
  device.copy_in_slowdown = 0.05;
  model_ = MakeOnlineModel(device);
  KernelDesc kernel = Worker(1, "decode", 10'000);
  kernel.simulation.demand.dram = 0.8;
  model_->AddKernel(kernel);
  EXPECT_NEAR(model_->neighbours().SpeedBesideCopies(kernel, core::kLinkIn), 1 / 1.08, 1e-9);
  EXPECT_EQ(model_->neighbours().SpeedBesideCopies(kernel, core::kLinkOut), 1);
  EXPECT_EQ(model_->neighbours().SpeedBesideCopies(kernel, 0), 1);
  Observation beside = Solo(kernel, 1056, 94'000);
  beside.copies = core::kLinkOut;
  model_->Observe(beside);
  EXPECT_EQ(model_->neighbours().SpeedBesideCopies(kernel, core::kLinkOut), 1)
      << "the kernel is not known alone";
  for (int i = 0; i < 20; ++i) model_->Observe(Solo(kernel, 1056, 90'000));
  const uint64_t version = model_->version();
  for (int i = 0; i < 8; ++i) model_->Observe(beside);
  constexpr double kKept = 90.0 / 94 - 0.005;  // less the error bar
  EXPECT_NEAR(model_->neighbours().SpeedBesideCopies(kernel, core::kLinkOut), kKept, 0.002);
  EXPECT_GT(model_->version(), version);
  EXPECT_NEAR(model_->neighbours().SpeedBesideCopies(kernel, core::kLinkIn), 1 / 1.08, 1e-9);
  EXPECT_LT(RelativeError(*model_, Features(kernel, 1056), 90'000), 0.01);
  // Something else held this one up.
  beside.measured_ns = 900'000;
  for (int i = 0; i < 8; ++i) model_->Observe(beside);
  EXPECT_NEAR(model_->neighbours().SpeedBesideCopies(kernel, core::kLinkOut), kKept, 0.002);
  const auto again = MakeOnlineModel(device);
  ASSERT_TRUE(again->Load(model_->Save()).ok());
  again->AddKernel(kernel);
  EXPECT_NEAR(again->neighbours().SpeedBesideCopies(kernel, core::kLinkOut), kKept, 0.002);
}

// A captured graph of which nothing is known, beside copies from its first query on.
TEST_F(OnlineModelTest, LearnsAnUnknownGraphBesideCopiesFirst) {
  KernelDesc graph;
  graph.id = KernelId{1};
  graph.name = "captured";
  graph.code = GraphCode();
  model_->AddKernel(graph);
  Observation beside = Solo(graph, 0, 500'000);
  beside.copies = core::kLinkIn;
  const CoResident copy = {};
  beside.beside = {&copy, 1};
  for (int i = 0; i < 20; ++i) model_->Observe(beside);
  EXPECT_LT(RelativeError(*model_, Features(graph, 0), 500'000), 0.01);
}

TEST_F(OnlineModelTest, PriorCountsRoundsOfBlockTasks) {
  const KernelDesc kernel = Worker(1, "sincos", 27000);
  model_->AddKernel(kernel);
  EXPECT_EQ(model_->durations().PredictSolo(Features(kernel, 1)).duration_ns, 27000);
  EXPECT_EQ(model_->durations().PredictSolo(Features(kernel, 132 * 8)).duration_ns, 27000);
  EXPECT_EQ(model_->durations().PredictSolo(Features(kernel, 132 * 8 + 1)).duration_ns, 54000);
  EXPECT_FALSE(model_->durations().PredictSolo(Features(kernel, 1)).trained);
  EXPECT_GT(model_->durations().PredictSolo(Features(kernel, 1)).error_ns, 0);
}

TEST_F(OnlineModelTest, PriorOfAGraphIsNodesAndTheGapsBetweenThem) {
  KernelDesc graph = Worker(1, "ffn", 0);
  graph.code = GraphCode();
  graph.simulation.nodes = {{1000, 10, 3, true, {}}, {500, 10, 1, true, {}}};
  graph.simulation.node_gap_ns = 100;
  model_->AddKernel(graph);
  EXPECT_EQ(model_->durations().PredictSolo(Features(graph, 0)).duration_ns,
            3 * 1000 + 500 + 3 * 100);
}

TEST_F(OnlineModelTest, WithoutARecordTheHintIsThePrior) {
  KernelDesc kernel;
  kernel.id = KernelId{7};
  kernel.name = "library";
  kernel.solo_hint_ns = 667000;
  model_->AddKernel(kernel);
  EXPECT_EQ(model_->durations().PredictSolo(Features(kernel, 5)).duration_ns, 667000);
}

// Tacker fig. 17: mean error below 2 %, at most 3 %.
TEST_F(OnlineModelTest, LinearKernelsAreLearnedWithinTwoPercent) {
  std::mt19937_64 random(1);
  std::uniform_int_distribution<int64_t> tasks(200, 60000);
  std::normal_distribution<double> noise(1, 0.01);
  double sum = 0;
  double worst = 0;
  int count = 0;
  for (uint32_t id = 1; id <= 20; ++id) {
    // The record is wrong by up to a factor of five either way.
    const double intercept = 500.0 * id;
    const double slope = 3.0 + 2.0 * id;
    const KernelDesc kernel = Worker(id, "k" + std::to_string(id), 20000);
    model_->AddKernel(kernel);
    for (int i = 0; i < 200; ++i) {
      const int64_t n = tasks(random);
      model_->Observe(
          Solo(kernel, n, (intercept + slope * static_cast<double>(n)) * noise(random)));
    }
    for (int i = 0; i < 100; ++i) {
      const int64_t n = tasks(random);
      const double error =
          RelativeError(*model_, Features(kernel, n), intercept + slope * static_cast<double>(n));
      sum += error;
      worst = std::max(worst, error);
      ++count;
    }
    EXPECT_TRUE(model_->durations().PredictSolo(Features(kernel, 100)).trained);
  }
  RecordProperty("mean_error_ppm", static_cast<int>(1e6 * sum / count));
  RecordProperty("worst_error_ppm", static_cast<int>(1e6 * worst));
  EXPECT_LT(sum / count, 0.02);
  EXPECT_LT(worst, 0.03);
}

TEST_F(OnlineModelTest, OneSizeScalesThePriorsShape) {
  const KernelDesc kernel = Worker(1, "sincos", 27000);
  model_->AddKernel(kernel);
  const int64_t round = 132 * 8;
  for (int i = 0; i < 10; ++i) model_->Observe(Solo(kernel, round, 40500));
  EXPECT_LT(RelativeError(*model_, Features(kernel, round), 40500), 0.001);
  EXPECT_LT(RelativeError(*model_, Features(kernel, 4 * round), 4 * 40500), 0.001);
}

TEST_F(OnlineModelTest, ErrorBarsFollowTheScatter) {
  std::mt19937_64 random(2);
  const KernelDesc quiet = Worker(1, "quiet", 27000);
  const KernelDesc noisy = Worker(2, "noisy", 27000);
  model_->AddKernel(quiet);
  model_->AddKernel(noisy);
  std::normal_distribution<double> one(1, 0.01);
  std::normal_distribution<double> six(1, 0.06);
  for (int i = 0; i < 300; ++i) {
    model_->Observe(Solo(quiet, 1000, 30000 * one(random)));
    model_->Observe(Solo(noisy, 1000, 30000 * six(random)));
  }
  const Prediction sharp = model_->durations().PredictSolo(Features(quiet, 1000));
  const Prediction blurred = model_->durations().PredictSolo(Features(noisy, 1000));
  EXPECT_NEAR(static_cast<double>(sharp.error_ns), 300, 150);
  EXPECT_NEAR(static_cast<double>(blurred.error_ns), 1800, 900);
}

// T6. The old line must neither linger in the mean nor lose its shape.
TEST_F(OnlineModelTest, ATenfoldChangeIsRefittedAfterTwoSamples) {
  for (double factor : {10.0, 0.1}) {
    model_ = MakeOnlineModel(DeviceProfile());
    const KernelDesc kernel = Worker(1, "k", 20000);
    model_->AddKernel(kernel);
    std::mt19937_64 random(3);
    std::uniform_int_distribution<int64_t> tasks(1000, 50000);
    const auto truth = [](int64_t n) { return 2000 + 12.0 * static_cast<double>(n); };
    for (int i = 0; i < 200; ++i) {
      const int64_t n = tasks(random);
      model_->Observe(Solo(kernel, n, truth(n)));
    }
    const uint64_t version = model_->version();
    for (int i = 0; i < 2; ++i) {
      const int64_t n = tasks(random);
      model_->Observe(Solo(kernel, n, factor * truth(n)));
    }
    EXPECT_GT(model_->version(), version);
    // Another size than any since the change: the line's shape was kept.
    EXPECT_LT(RelativeError(*model_, Features(kernel, 30000), factor * truth(30000)), 0.05);
    for (int i = 0; i < 100; ++i) {
      const int64_t n = tasks(random);
      model_->Observe(Solo(kernel, n, factor * truth(n)));
    }
    EXPECT_LT(RelativeError(*model_, Features(kernel, 5000), factor * truth(5000)), 0.01);
    EXPECT_LT(RelativeError(*model_, Features(kernel, 50000), factor * truth(50000)), 0.01);
  }
}

TEST_F(OnlineModelTest, OneOutlierRefitsNothing) {
  const KernelDesc kernel = Worker(1, "k", 20000);
  model_->AddKernel(kernel);
  for (int i = 0; i < 50; ++i) model_->Observe(Solo(kernel, 1000, 20000));
  const uint64_t version = model_->version();
  model_->Observe(Solo(kernel, 1000, 200000));
  EXPECT_EQ(model_->version(), version);
  EXPECT_LT(RelativeError(*model_, Features(kernel, 1000), 20000), 0.03);
}

TEST_F(OnlineModelTest, TheVersionRestsWhilePredictionsDo) {
  const KernelDesc kernel = Worker(1, "k", 20000);
  model_->AddKernel(kernel);
  for (int i = 0; i < 10; ++i) model_->Observe(Solo(kernel, 1000, 20000));
  const uint64_t version = model_->version();
  std::mt19937_64 random(4);
  std::normal_distribution<double> noise(1, 0.03);
  for (int i = 0; i < 1000; ++i) model_->Observe(Solo(kernel, 1000, 20000 * noise(random)));
  EXPECT_EQ(model_->version(), version);
}

TEST_F(OnlineModelTest, SamplesWithCoResidentsTrainNoSoloModel) {
  const KernelDesc kernel = Worker(1, "k", 20000);
  const KernelDesc other = Worker(2, "other", 20000);
  model_->AddKernel(kernel);
  model_->AddKernel(other);
  const Prediction before = model_->durations().PredictSolo(Features(kernel, 1000));
  CoResident beside;
  beside.kernel = &other;
  for (int i = 0; i < 50; ++i) {
    Observation observation = Solo(kernel, 1000, 90000);
    observation.beside = absl::MakeConstSpan(&beside, 1);
    model_->Observe(observation);
  }
  const Prediction after = model_->durations().PredictSolo(Features(kernel, 1000));
  EXPECT_EQ(after.duration_ns, before.duration_ns);
  EXPECT_FALSE(after.trained);
  int64_t samples = -1;
  EXPECT_EQ(model_->MeanRelativeError(&samples), 0);
  EXPECT_EQ(samples, 0);
}

// An LC launch of `measured_ns` on `sms` SMs that met `other`.
Observation Beside(const KernelDesc& kernel, int32_t sms, int64_t measured_ns,
                   const CoResident& other) {
  Observation observation = Solo(kernel, 0, static_cast<double>(measured_ns));
  observation.sms = sms;
  observation.beside = absl::MakeConstSpan(&other, 1);
  return observation;
}

class PairTest : public OnlineModelTest {
 protected:
  PairTest() {
    lc_.code = GraphCode();
    lc_.evictable = false;
    lc_.solo_hint_ns = 500'000;
    lc_.simulation = {};
    lc_.simulation.speed = {{76, 0.8}};
    for (const KernelDesc& kernel : {lc_, be_}) model_->AddKernel(kernel);
  }

  DelayedQuery Delayed(int64_t added_ns) const {
    return {.kernel = &lc_, .evicted = &be_, .added_ns = added_ns};
  }

  KernelDesc lc_ = Worker(1, "lc", 0);
  KernelDesc be_ = Worker(2, "be", 30'000);
};

TEST_F(PairTest, TheSpeedBesideANeighbourIsLearnedBySizeAndKept) {
  const CoResident beside{&be_, 56, false};
  const uint64_t version = model_->version();
  for (int i = 0; i < 3; ++i) model_->Observe(Beside(lc_, 76, 781'250, beside));
  EXPECT_EQ(model_->neighbours().SpeedBeside(lc_, 76, be_, 56), 1) << "after three samples";
  EXPECT_EQ(model_->version(), version);
  model_->Observe(Beside(lc_, 76, 781'250, beside));
  EXPECT_NEAR(model_->neighbours().SpeedBeside(lc_, 76, be_, 56), 0.8, 1e-6);
  EXPECT_GT(model_->version(), version);
  EXPECT_EQ(model_->neighbours().SpeedBeside(lc_, 84, be_, 48), 1) << "another size";
  EXPECT_EQ(model_->neighbours().SpeedBeside(be_, 56, lc_, 76), 1) << "the other way round";

  for (const bool lc_first : {true, false}) {
    const std::unique_ptr<CostModel> later = MakeOnlineModel(DeviceProfile());
    later->AddKernel(lc_first ? lc_ : be_);
    ASSERT_TRUE(later->Load(model_->Save()).ok());
    EXPECT_EQ(later->neighbours().SpeedBeside(lc_, 76, be_, 56), 1)
        << "the other one is not registered yet";
    EXPECT_EQ(later->Save(), model_->Save());
    later->AddKernel(lc_first ? be_ : lc_);
    EXPECT_NEAR(later->neighbours().SpeedBeside(lc_, 76, be_, 56), 0.8, 1e-6);
  }
}

// Of an LC kernel of which only a guess is known, a pair would learn the guess's error.
TEST_F(PairTest, NothingIsLearnedAgainstAGuess) {
  KernelDesc unknown = Worker(3, "unknown", 0);
  unknown.code = GraphCode();
  unknown.simulation = {};
  model_->AddKernel(unknown);
  const CoResident beside{&be_, 56, false};
  for (int i = 0; i < 8; ++i) model_->Observe(Beside(unknown, 76, 10'000'000, beside));
  EXPECT_EQ(model_->neighbours().SpeedBeside(unknown, 76, be_, 56), 1);
}

// Several kernels ran beside it, so that none is to blame.
TEST_F(PairTest, NothingIsLearnedOfANeighbourWithoutSms) {
  for (int i = 0; i < 8; ++i) model_->Observe(Beside(lc_, 76, 781'250, {&be_, 0, false}));
  EXPECT_EQ(model_->neighbours().SpeedBeside(lc_, 76, be_, 56), 1);
  EXPECT_EQ(model_->durations().PredictBlocking(be_).duration_ns,
            model_->durations().PredictEviction(be_).duration_ns);
}

TEST_F(PairTest, SteadySamplesAnnounceNothingAndAChangeIsFollowed) {
  const CoResident beside{&be_, 56, false};
  for (int i = 0; i < 100; ++i) model_->Observe(Beside(lc_, 76, 650'000 + i % 2 * 2000, beside));
  const uint64_t version = model_->version();
  for (int i = 0; i < 100; ++i) model_->Observe(Beside(lc_, 76, 650'000 + i % 2 * 2000, beside));
  EXPECT_EQ(model_->version(), version);
  for (int i = 0; i < 200; ++i) model_->Observe(Beside(lc_, 76, 1'250'000, beside));
  EXPECT_NEAR(model_->neighbours().SpeedBeside(lc_, 76, be_, 56), 0.5, 0.05);
}

TEST_F(PairTest, WhatAnEvictionAddsIsLearnedFromTheQueriesThatMetIt) {
  const Prediction eviction = model_->durations().PredictEviction(be_);
  EXPECT_EQ(model_->durations().PredictBlocking(be_).duration_ns, eviction.duration_ns);
  for (int i = 0; i < 8; ++i) model_->ObserveDelay(Delayed(11'000));
  EXPECT_EQ(model_->durations().PredictBlocking(be_).duration_ns, 11'000);
  EXPECT_EQ(model_->durations().PredictEviction(be_).duration_ns, eviction.duration_ns);
  const std::unique_ptr<CostModel> later = MakeOnlineModel(DeviceProfile());
  ASSERT_TRUE(later->Load(model_->Save()).ok());
  later->AddKernel(be_);
  EXPECT_EQ(later->durations().PredictBlocking(be_).duration_ns, 11'000);
}

// 10 ms are no eviction of 30 us block tasks: counted whole, they would keep the kernel out (1.1 ms
// on average), and then no query meets it that could tell better.
TEST_F(PairTest, OneQueryThatLostFarMoreThanAnEvictionTakesIsCut) {
  const Prediction eviction = model_->durations().PredictEviction(be_);
  // The prior: 4 us for the write and 0.9 of a block task; twice (3 us and 0.03 of it) above.
  ASSERT_EQ(eviction.duration_ns + 2 * eviction.error_ns, 31'000 + 2 * 3'900);
  for (int i = 0; i < 8; ++i) model_->ObserveDelay(Delayed(11'000));
  model_->ObserveDelay(Delayed(10'000'000));
  // (8 x 11,000 + 2 x 38,800) / 9; a last digit may be lost to rounding.
  EXPECT_NEAR(static_cast<double>(model_->durations().PredictBlocking(be_).duration_ns), 18'400, 1);
  model_->ObserveDelay(Delayed(11'000));
  EXPECT_NEAR(static_cast<double>(model_->durations().PredictBlocking(be_).duration_ns), 17'660, 1);
  EXPECT_EQ(model_->durations().PredictEviction(be_).duration_ns, eviction.duration_ns);
}

TEST_F(PairTest, UpToTwiceAnEvictionIsLearnedWhole) {
  for (int i = 0; i < 4; ++i) model_->ObserveDelay(Delayed(77'000));
  EXPECT_EQ(model_->durations().PredictBlocking(be_).duration_ns, 77'000);
}

// Errors of predictions are as often below as above.
TEST_F(PairTest, ADelayBelowZeroCounts) {
  for (int i = 0; i < 4; ++i) model_->ObserveDelay(Delayed(12'000));
  for (int i = 0; i < 4; ++i) model_->ObserveDelay(Delayed(-4'000));
  EXPECT_EQ(model_->durations().PredictBlocking(be_).duration_ns, 4'000);
  for (int i = 0; i < 20; ++i) model_->ObserveDelay(Delayed(-4'000));
  EXPECT_EQ(model_->durations().PredictBlocking(be_).duration_ns, 0);
  const std::unique_ptr<CostModel> later = MakeOnlineModel(DeviceProfile());
  EXPECT_TRUE(later->Load(model_->Save()).ok());
}

TEST_F(PairTest, ADelayIsNotLearnedAgainstAGuess) {
  KernelDesc unknown = Worker(3, "unknown", 0);
  unknown.simulation = {};
  model_->AddKernel(unknown);
  DelayedQuery query = Delayed(11'000);
  query.kernel = &unknown;
  for (int i = 0; i < 8; ++i) model_->ObserveDelay(query);
  EXPECT_EQ(model_->durations().PredictBlocking(be_).duration_ns,
            model_->durations().PredictEviction(be_).duration_ns);
  query.kernel_trained = true;
  for (int i = 0; i < 8; ++i) model_->ObserveDelay(query);
  EXPECT_EQ(model_->durations().PredictBlocking(be_).duration_ns, 11'000);
}

// Evictions that were measured to be longer than the record says move the cut.
TEST_F(PairTest, TheCutFollowsTheEvictionsThatWereMeasured) {
  Observation evicted = Solo(be_, 1000, 200'000);
  evicted.evicted = true;
  for (int i = 0; i < 8; ++i) model_->Observe(evicted);
  ASSERT_EQ(model_->durations().PredictEviction(be_).duration_ns, 200'000);
  ASSERT_EQ(model_->durations().PredictEviction(be_).error_ns, 0);
  for (int i = 0; i < 4; ++i) model_->ObserveDelay(Delayed(10'000'000));
  EXPECT_EQ(model_->durations().PredictBlocking(be_).duration_ns, 400'000);
}

// Elastic BE: each query evicts the part on its own side, so no sample is without an eviction.
TEST_F(PairTest, WhatNoEvictionExplainsIsLearnedOfThePartThatStays) {
  const CoResident stays_beside{&be_, 56, true};
  const double eviction_ns = 31'000 + 2 * 3'900;
  // Alone on 76 SMs it takes 625 us; 20 us are an eviction.
  for (int i = 0; i < 8; ++i) model_->Observe(Beside(lc_, 76, 645'000, stays_beside));
  EXPECT_EQ(model_->neighbours().SpeedBeside(lc_, 76, be_, 56), 1);
  const uint64_t version = model_->version();
  for (int i = 0; i < 8; ++i) model_->Observe(Beside(lc_, 76, 1'000'000, stays_beside));
  EXPECT_NEAR(model_->neighbours().SpeedBeside(lc_, 76, be_, 56),
              625'000 / (1'000'000 - eviction_ns), 1e-3);
  EXPECT_GT(model_->version(), version);
  EXPECT_LE(model_->durations().PredictBlocking(be_).duration_ns, 2 * eviction_ns);
  // And that it keeps more of its speed than was learned.
  for (int i = 0; i < 200; ++i) model_->Observe(Beside(lc_, 76, 645'000, stays_beside));
  EXPECT_GT(model_->neighbours().SpeedBeside(lc_, 76, be_, 56), 0.95);
}

// One query in twenty met something else.
TEST_F(PairTest, OutliersAmongEvictedQueriesAreNoPair) {
  const CoResident stays_beside{&be_, 56, true};
  for (int i = 0; i < 200; ++i) {
    model_->Observe(Beside(lc_, 76, i % 20 == 0 ? 1'500'000 : 645'000, stays_beside));
  }
  EXPECT_EQ(model_->neighbours().SpeedBeside(lc_, 76, be_, 56), 1);
}

TEST_F(OnlineModelTest, WorkersUnderAQuotaTrainNoSoloModel) {
  const KernelDesc kernel = Worker(1, "k", 20000);
  model_->AddKernel(kernel);
  Observation observation = Solo(kernel, 100000, 9000000);
  observation.form = core::Form::kWorkers;
  observation.workers = 100;
  model_->Observe(observation);
  model_->Observe(observation);
  model_->Observe(observation);
  EXPECT_FALSE(model_->durations().PredictSolo(Features(kernel, 100000)).trained);
}

TEST_F(OnlineModelTest, ASampleOnAPartitionIsScaledToTheWholeDevice) {
  KernelDesc kernel = Worker(1, "decode", 500000);
  kernel.simulation.speed = {{48, 0.4}, {84, 0.96}, {124, 0.8}};
  model_->AddKernel(kernel);
  for (int i = 0; i < 5; ++i) {
    Observation observation = Solo(kernel, 1, 546000 / 0.96);
    observation.sms = 84;
    model_->Observe(observation);
  }
  EXPECT_LT(RelativeError(*model_, Features(kernel, 1), 546000), 0.01);
}

TEST_F(OnlineModelTest, MeanRelativeErrorComparesWhatWasPredicted) {
  const KernelDesc kernel = Worker(1, "k", 20000);
  model_->AddKernel(kernel);
  Observation observation = Solo(kernel, 1000, 20000);
  observation.predicted_ns = 22000;
  model_->Observe(observation);
  observation.predicted_ns = 19400;
  model_->Observe(observation);
  int64_t samples = 0;
  EXPECT_NEAR(model_->MeanRelativeError(&samples), (0.10 + 0.03) / 2, 1e-9);
  EXPECT_EQ(samples, 2);
}

// hardware.md, "Copies".
TEST_F(OnlineModelTest, CopiesStartFromTheLinkRates) {
  TaskFeatures copy;
  copy.kind = TaskKind::kMemcpy;
  copy.direction = core::CopyDirection::kHostToDevice;
  copy.bytes = 16 << 20;
  EXPECT_NEAR(static_cast<double>(model_->durations().PredictSolo(copy).duration_ns), 310000,
              10000);
  copy.bytes = 64 << 10;
  EXPECT_NEAR(static_cast<double>(model_->durations().PredictSolo(copy).duration_ns), 8400, 100);
  copy.pinned = false;
  copy.bytes = 10000000;
  EXPECT_NEAR(static_cast<double>(model_->durations().PredictSolo(copy).duration_ns), 1007200,
              1000);
  copy.direction = core::CopyDirection::kDeviceToHost;
  EXPECT_NEAR(static_cast<double>(model_->durations().PredictSolo(copy).duration_ns), 533500, 1000);
}

TEST_F(OnlineModelTest, CopiesAreLearnedByDirectionAndPinnedness) {
  Observation observation;
  observation.features.kind = TaskKind::kMemcpy;
  observation.features.direction = core::CopyDirection::kHostToDevice;
  for (int64_t bytes = 1 << 16; bytes <= 1 << 24; bytes *= 2) {
    observation.features.bytes = bytes;
    observation.measured_ns = 10000 + bytes / 25;
    model_->Observe(observation);
  }
  TaskFeatures copy = observation.features;
  copy.bytes = 12 << 20;
  EXPECT_LT(RelativeError(*model_, copy, 10000.0 + (12 << 20) / 25.0), 0.02);
  copy.direction = core::CopyDirection::kDeviceToHost;
  EXPECT_FALSE(model_->durations().PredictSolo(copy).trained);
}

TEST_F(OnlineModelTest, OpaqueWorkIsChargedItsDeclarationThenWhatItWasWorth) {
  TaskFeatures work = {.kind = TaskKind::kOpaque, .app = 3, .declared_ns = 1000000};
  EXPECT_EQ(model_->durations().PredictSolo(work).duration_ns, 1000000);
  Observation observation;
  observation.features = work;
  observation.measured_ns = 400000;
  for (int i = 0; i < 5; ++i) model_->Observe(observation);
  EXPECT_LT(RelativeError(*model_, work, 400000), 0.01);
  work.declared_ns = 2000000;
  EXPECT_LT(RelativeError(*model_, work, 800000), 0.01);
  work.app = 4;  // another app's declarations are its own
  EXPECT_EQ(model_->durations().PredictSolo(work).duration_ns, 2000000);
}

// hardware.md, "Eviction with other block-task lengths": mean near p50, mean + 2 x error near p99.
TEST_F(OnlineModelTest, EvictionPriorsFollowTheMeasuredRows) {
  struct Row {
    int64_t block_task_ns;
    double p50_ns;
    double p99_ns;
  };
  for (const Row& row : {Row{27000, 27000, 40000}, Row{59000, 46000, 58000},
                         Row{267000, 233000, 262000}, Row{2700000, 2450000, 2560000}}) {
    const KernelDesc kernel =
        Worker(static_cast<uint32_t>(row.block_task_ns), "k", row.block_task_ns);
    model_->AddKernel(kernel);
    const Prediction eviction = model_->durations().PredictEviction(kernel);
    EXPECT_NEAR(static_cast<double>(eviction.duration_ns) / row.p50_ns, 1, 0.25);
    EXPECT_NEAR(static_cast<double>(eviction.duration_ns + 2 * eviction.error_ns) / row.p99_ns, 1,
                0.20);
  }
}

TEST_F(OnlineModelTest, AYieldIntervalShortensTheEviction) {
  KernelDesc kernel = Worker(1, "k", 2700000);
  kernel.yield_interval_ns = 150000;
  model_->AddKernel(kernel);
  EXPECT_NEAR(static_cast<double>(model_->durations().PredictEviction(kernel).duration_ns),
              4000 + 135000, 10);
  kernel.evictable = false;
  EXPECT_EQ(model_->durations().PredictEviction(kernel).duration_ns, core::kNever);
}

TEST_F(OnlineModelTest, EvictionLatencyIsLearnedWithItsTail) {
  const KernelDesc kernel = Worker(1, "k", 27000);
  model_->AddKernel(kernel);
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> latency(100000, 200000);
  Observation observation;
  observation.features = Features(kernel, 1);
  observation.evicted = true;
  const uint64_t version = model_->version();
  for (int i = 0; i < 500; ++i) {
    observation.measured_ns = static_cast<int64_t>(latency(random));
    model_->Observe(observation);
  }
  const Prediction eviction = model_->durations().PredictEviction(kernel);
  EXPECT_TRUE(eviction.trained);
  EXPECT_NEAR(static_cast<double>(eviction.duration_ns), 150000, 10000);
  const double tail = static_cast<double>(eviction.duration_ns + 2 * eviction.error_ns);
  EXPECT_GT(tail, 195000);
  EXPECT_LT(tail, 215000);
  EXPECT_GT(model_->version(), version);
  // An eviction latency is no duration.
  EXPECT_FALSE(model_->durations().PredictSolo(Features(kernel, 1)).trained);
}

TEST_F(OnlineModelTest, SpeedIsInterpolatedAndNotAssumedMonotone) {
  KernelDesc kernel = Worker(1, "decode", 1000);
  EXPECT_DOUBLE_EQ(model_->durations().SpeedOn(kernel, 66), 0.5);
  EXPECT_DOUBLE_EQ(model_->durations().SpeedOn(kernel, 132), 1);
  kernel.simulation.speed = {{68, 0.74}, {84, 0.96}, {100, 0.72}, {124, 0.80}};
  EXPECT_DOUBLE_EQ(model_->durations().SpeedOn(kernel, 84), 0.96);
  EXPECT_DOUBLE_EQ(model_->durations().SpeedOn(kernel, 92), 0.84);
  EXPECT_DOUBLE_EQ(model_->durations().SpeedOn(kernel, 34), 0.37);
  EXPECT_DOUBLE_EQ(model_->durations().SpeedOn(kernel, 128), 0.90);
  EXPECT_DOUBLE_EQ(model_->durations().SpeedOn(kernel, 132), 1);
  EXPECT_DOUBLE_EQ(model_->durations().SpeedOn(kernel, 0), 0);
}

// hardware.md, "Spatial overlap": decode on 84 SMs keeps 0.96 beside compute and falls to 0.47
// beside streaming on the other 48.
TEST_F(OnlineModelTest, OnlyNeighboursThatFightForBandwidthSlowAPartition) {
  KernelDesc decode = Worker(1, "decode", 1000);
  decode.simulation.speed = {{84, 0.96}};
  decode.simulation.demand.dram = 0.9;
  decode.simulation.memory_parallelism = 0.42;
  KernelDesc streaming = Worker(2, "streaming", 1000);
  streaming.simulation.speed = {{48, 0.75}};
  streaming.simulation.demand.dram = 0.95;
  streaming.simulation.memory_parallelism = 1;
  KernelDesc sincos = Worker(3, "sincos", 1000);
  sincos.simulation.demand.special = 1;
  sincos.simulation.demand.issue = 0.9;
  EXPECT_EQ(model_->neighbours().SpeedBeside(decode, 84, sincos, 48), 1);
  EXPECT_EQ(model_->neighbours().SpeedBeside(sincos, 48, decode, 84), 1);
  const double lc = 0.96 * model_->neighbours().SpeedBeside(decode, 84, streaming, 48);
  const double be = 0.75 * model_->neighbours().SpeedBeside(streaming, 48, decode, 84);
  EXPECT_NEAR(lc, 0.47, 0.03);
  EXPECT_NEAR(be, 0.60, 0.03);
  // What the neighbour leaves is used: a light one costs only the excess.
  streaming.simulation.demand.dram = 0.3;
  EXPECT_NEAR(model_->neighbours().SpeedBeside(decode, 84, streaming, 48), (1 - 0.225) / 0.864,
              1e-9);
}

TEST_F(OnlineModelTest, SavedPredictionsAreLoadedWhateverTheOrder) {
  const KernelDesc kernel = Worker(1, "k", 20000);
  KernelDesc same = Worker(9, "k", 20000);  // another id in the next run
  model_->AddKernel(kernel);
  for (int i = 1; i <= 50; ++i) model_->Observe(Solo(kernel, 100 * i, 1000 + 3000 * i));
  Observation eviction;
  eviction.features = Features(kernel, 1);
  eviction.evicted = true;
  eviction.measured_ns = 55000;
  for (int i = 0; i < 20; ++i) model_->Observe(eviction);
  Observation copy;
  copy.features.kind = TaskKind::kMemcpy;
  copy.features.bytes = 1 << 20;
  copy.measured_ns = 99000;
  for (int i = 0; i < 5; ++i) model_->Observe(copy);
  const std::string text = model_->Save();

  for (bool add_first : {true, false}) {
    std::unique_ptr<CostModel> next = MakeOnlineModel(DeviceProfile());
    if (add_first) next->AddKernel(same);
    ASSERT_TRUE(next->Load(text).ok()) << next->Load(text);
    if (!add_first) next->AddKernel(same);
    const Prediction expected = model_->durations().PredictSolo(Features(kernel, 3333));
    const Prediction loaded = next->durations().PredictSolo(Features(same, 3333));
    EXPECT_EQ(loaded.duration_ns, expected.duration_ns);
    EXPECT_EQ(loaded.error_ns, expected.error_ns);
    EXPECT_TRUE(loaded.trained);
    EXPECT_EQ(next->durations().PredictEviction(same).duration_ns,
              model_->durations().PredictEviction(kernel).duration_ns);
    EXPECT_EQ(next->durations().PredictSolo(copy.features).duration_ns,
              model_->durations().PredictSolo(copy.features).duration_ns);
    EXPECT_EQ(next->Save(), text);
  }
}

// The latency of a graph is that of its segments.
TEST_F(OnlineModelTest, ALearnedLatencyOfAGraphDoesNotSurviveAnotherCut) {
  KernelDesc graph;
  graph.id = KernelId{1};
  graph.name = "step";
  graph.code = GraphCode();
  graph.evictable = true;
  graph.graph()->cut.segments = 90;
  model_->AddKernel(graph);
  Observation sample;
  sample.features.kind = TaskKind::kGraph;
  sample.features.kernel = &graph;
  sample.form = core::Form::kSegments;
  sample.evicted = true;
  sample.measured_ns = 260000;
  for (int i = 0; i < 20; ++i) model_->Observe(sample);
  const std::string text = model_->Save();

  KernelDesc shorter = graph;
  shorter.graph()->segment_ns = 25000;
  shorter.graph()->cut.segments = 360;
  const int64_t prior_ns =
      MakeOnlineModel(DeviceProfile())->durations().PredictEviction(shorter).duration_ns;
  for (bool add_first : {true, false}) {
    std::unique_ptr<CostModel> next = MakeOnlineModel(DeviceProfile());
    if (add_first) next->AddKernel(shorter);
    ASSERT_TRUE(next->Load(text).ok());
    if (!add_first) next->AddKernel(shorter);
    EXPECT_EQ(next->durations().PredictEviction(shorter).duration_ns, prior_ns);
    EXPECT_FALSE(next->durations().PredictEviction(shorter).trained);
    next->AddKernel(graph);
    EXPECT_EQ(next->durations().PredictEviction(graph).duration_ns,
              model_->durations().PredictEviction(graph).duration_ns);
  }
}

TEST_F(OnlineModelTest, WhatARunDidNotUseIsKeptForTheNext) {
  const KernelDesc kernel = Worker(1, "k", 20000);
  model_->AddKernel(kernel);
  for (int i = 0; i < 5; ++i) model_->Observe(Solo(kernel, 1000, 30000));
  std::unique_ptr<CostModel> other = MakeOnlineModel(DeviceProfile());
  ASSERT_TRUE(other->Load(model_->Save()).ok());
  EXPECT_EQ(other->Save(), model_->Save());
}

TEST_F(OnlineModelTest, ACorruptTextIsRefusedWhole) {
  const KernelDesc a = Worker(1, "a", 20000);
  const KernelDesc b = Worker(2, "b", 20000);
  model_->AddKernel(a);
  model_->AddKernel(b);
  for (int i = 0; i < 5; ++i) {
    model_->Observe(Solo(a, 1000, 30000));
    model_->Observe(Solo(b, 1000, 30000));
  }
  const std::string text = model_->Save();
  // The last kernel is wrong: the first must not be taken either.
  const size_t at = text.rfind("\"mean_y_ns\":");
  ASSERT_NE(at, std::string::npos);
  std::string corrupt = text;
  corrupt.insert(at + 12, "-");
  std::unique_ptr<CostModel> next = MakeOnlineModel(DeviceProfile());
  next->AddKernel(a);
  const uint64_t version = next->version();
  for (const std::string& bad :
       {corrupt, text.substr(0, text.size() / 2), std::string(), std::string("{}"),
        std::string("[1]"), std::string(5 << 20, ' '),
        absl::StrReplaceAll(text, {{"\"refits\"", "\"refit\""}}),
        absl::StrReplaceAll(text, {{"\"schema_version\":1", "\"schema_version\":2"}})}) {
    const absl::Status status = next->Load(bad);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), ::testing::EndsWith("."));
  }
  EXPECT_FALSE(next->durations().PredictSolo(Features(a, 1000)).trained);
  EXPECT_EQ(next->version(), version);
}

// Every value at the edge of its range: no prediction may leave [0, kMaxDurationNs].
TEST_F(OnlineModelTest, ExtremeButValidStatesGiveBoundedPredictions) {
  const KernelDesc kernel = Worker(1, "k", 20000);
  model_->AddKernel(kernel);
  const std::string text =
      "{\"schema_version\":1,\"kernels\":[{\"name\":\"k\",\"solo\":{\"samples\":9,\"weight\":0,"
      "\"mean_x\":1e12,\"mean_y_ns\":3.6e12,\"mean_base_ns\":5e-324,\"covariance_xx\":5e-324,"
      "\"covariance_xy\":1e20}}]}";
  ASSERT_TRUE(model_->Load(text).ok()) << model_->Load(text);
  for (int64_t tasks : {int64_t{0}, int64_t{1}, core::kMaxBlockTasks}) {
    const Prediction prediction = model_->durations().PredictSolo(Features(kernel, tasks));
    EXPECT_GE(prediction.duration_ns, 0);
    EXPECT_LE(prediction.duration_ns, core::kMaxDurationNs);
  }
}

TEST_F(OnlineModelTest, AbsurdMeasurementsAreLeftOut) {
  const KernelDesc kernel = Worker(1, "k", 20000);
  model_->AddKernel(kernel);
  for (int64_t measured : {int64_t{-1}, int64_t{0}, core::kMaxDurationNs + 1, core::kNever}) {
    Observation observation = Solo(kernel, 1000, 0);
    observation.measured_ns = measured;
    for (int i = 0; i < 4; ++i) model_->Observe(observation);
  }
  EXPECT_FALSE(model_->durations().PredictSolo(Features(kernel, 1000)).trained);
}

TEST_F(OnlineModelTest, PredictingAndObservingAllocateNothing) {
  std::vector<KernelDesc> kernels;
  for (uint32_t id = 1; id <= 100; ++id) kernels.push_back(Worker(id, "k" + std::to_string(id), 9));
  for (const KernelDesc& kernel : kernels) model_->AddKernel(kernel);
  TaskFeatures opaque;
  opaque.kind = TaskKind::kOpaque;
  const int64_t before = allocations;
  int64_t sum = 0;
  const auto start = std::chrono::steady_clock::now();
  constexpr int kRounds = 2000;
  for (int round = 0; round < kRounds; ++round) {
    for (const KernelDesc& kernel : kernels) {
      sum += model_->durations().PredictSolo(Features(kernel, round)).duration_ns;
    }
  }
  const double ns =
      std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
  for (const KernelDesc& kernel : kernels) {
    model_->Observe(Solo(kernel, 10, 90));
    sum += model_->durations().PredictEviction(kernel).duration_ns;
  }
  sum += model_->durations().PredictSolo(opaque).duration_ns;
  EXPECT_EQ(allocations, before);
  EXPECT_GT(sum, 0);
  // Told, not asserted: a loaded machine would fail it. Goal: below 200.
  RecordProperty("predict_ns", static_cast<int>(ns / (kRounds * 100.0)));
}

}  // namespace
}  // namespace gpushare::models
