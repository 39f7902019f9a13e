// Durations of library calls by their parameters, on calls whose truth is known.

#include "src/models/library/library_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "src/core/base/limits.h"
#include "src/models/library/library_limits.h"
#include "tests/faults/failing_allocations.h"

namespace gpushare::models {
namespace {

const LibraryDevice kDevice;

core::LibraryCall Matmul(int64_t m, int64_t n, int64_t k) {
  core::LibraryCall call;
  call.operation = core::LibraryOperation::kMatmul;
  call.type = core::DataType::kFloat16;
  call.m = m;
  call.n = n;
  call.k = k;
  return call;
}

using Truth = std::function<double(const core::LibraryCall&)>;

std::vector<core::LibraryCall> Calls() {
  std::vector<core::LibraryCall> calls;
  for (int64_t m = 256; m <= 8192; m += m / 2) {
    for (const int64_t n : {768, 1024, 2304, 4096, 6144}) {
      for (const int64_t k : {768, 2048, 4096}) calls.push_back(Matmul(m, n, k));
    }
  }
  return calls;
}

// Three of four calls train; returns the mean relative error of the others.
double HeldOutError(const Truth& truth, LibraryModel& model) {
  std::vector<LibrarySample> training;
  const std::vector<core::LibraryCall> calls = Calls();
  for (size_t i = 0; i < calls.size(); ++i) {
    if (i % 4 != 1) training.push_back({calls[i], truth(calls[i])});
  }
  model.Fit(kDevice, training);
  double sum = 0;
  size_t count = 0;
  for (size_t i = 1; i < calls.size(); i += 4, ++count) {
    const core::Prediction prediction = model.Predict(calls[i]);
    EXPECT_TRUE(prediction.trained);
    sum += std::abs(static_cast<double>(prediction.duration_ns) / truth(calls[i]) - 1);
  }
  return sum / static_cast<double>(count);
}

double Smooth(const core::LibraryCall& call) {
  return FeaturesOf(kDevice, call).least_ns * 1.3 *
         std::pow(static_cast<double>(call.m) / 1000, -0.1) *
         std::pow(static_cast<double>(call.k) / 1000, 0.05);
}

// A power of the sizes is a line in logarithms.
TEST(LibraryModel, ALineFitsPowersOfTheSizes) {
  LibraryModel model;
  EXPECT_LT(HeldOutError(Smooth, model), 0.01);
  EXPECT_NE(model.MethodOf(Matmul(512, 768, 768)), LibraryMethod::kNeighbours);
  const core::Prediction prediction = model.Predict(Matmul(1000, 1536, 1024));
  EXPECT_LT(static_cast<double>(prediction.error_ns),
            0.03 * static_cast<double>(prediction.duration_ns));
}

// As where a library changes its kernel with the size.
TEST(LibraryModel, NeighboursFitAStepThatNoLineHas) {
  const auto step = [](const core::LibraryCall& call) {
    const bool slow = call.m < 1500 && call.n > 2000;
    return FeaturesOf(kDevice, call).least_ns * (slow ? 2.0 : 1.0);
  };
  LibraryModel model;
  EXPECT_LT(HeldOutError(step, model), 0.1);
  EXPECT_NE(model.MethodOf(Matmul(512, 768, 768)), LibraryMethod::kLine);
}

TEST(LibraryModel, TheErrorBarIsAboutTheError) {
  const auto noisy = [](const core::LibraryCall& call) {
    const auto hash =
        static_cast<uint64_t>(call.m * 31 + call.n * 7 + call.k * 3) * 0x9E3779B97F4A7C15;
    return Smooth(call) * ((hash >> 40) % 2 == 0 ? 0.95 : 1.05);
  };
  LibraryModel model;
  HeldOutError(noisy, model);
  const core::Prediction prediction = model.Predict(Matmul(1000, 1536, 1024));
  const double share =
      static_cast<double>(prediction.error_ns) / static_cast<double>(prediction.duration_ns);
  EXPECT_GT(share, 0.04);
  EXPECT_LT(share, 0.12);
}

TEST(LibraryModel, ACallUnlikeAllSamplesIsNotTrained) {
  LibraryModel model;
  HeldOutError(Smooth, model);
  core::LibraryCall unlike = Matmul(512, 1024, 1024);
  unlike.batch = 4096;
  unlike.m = 4;
  const core::Prediction prediction = model.Predict(unlike);
  EXPECT_FALSE(prediction.trained);
  EXPECT_GE(prediction.error_ns, prediction.duration_ns);
  EXPECT_GT(prediction.duration_ns, 0);
  EXPECT_FALSE(model.Predict(Matmul(8, 64, 65536)).trained);  // every size lies far off
  // No sample had a transposed operand, so nothing says what it costs.
  core::LibraryCall transposed = Matmul(1000, 1024, 2048);
  EXPECT_TRUE(model.Predict(transposed).trained);
  transposed.transpose_b = true;
  EXPECT_FALSE(model.Predict(transposed).trained);
}

TEST(LibraryModel, AnotherClassIsItsLeastTimeAndNotTrained) {
  LibraryModel model;
  HeldOutError(Smooth, model);
  core::LibraryCall single = Matmul(1024, 1024, 1024);
  single.type = core::DataType::kFloat32;
  EXPECT_EQ(model.MethodOf(single), LibraryMethod::kNone);
  const core::Prediction prediction = model.Predict(single);
  EXPECT_FALSE(prediction.trained);
  EXPECT_EQ(prediction.duration_ns, std::llround(FeaturesOf(kDevice, single).least_ns));
  EXPECT_EQ(prediction.error_ns, prediction.duration_ns);
}

TEST(LibraryModel, FewSamplesTellNothing) {
  std::vector<LibrarySample> samples;
  for (const core::LibraryCall& call : Calls()) samples.push_back({call, Smooth(call)});
  LibraryModel model;
  samples.resize(kLibrarySamplesMin);
  model.Fit(kDevice, samples);
  EXPECT_NE(model.MethodOf(samples[0].call), LibraryMethod::kNone);
  samples.pop_back();
  model.Fit(kDevice, samples);
  EXPECT_EQ(model.MethodOf(samples[0].call), LibraryMethod::kNone);
  EXPECT_FALSE(model.Predict(samples[0].call).trained);
}

TEST(LibraryModel, WhatIsNoNumberIsLeftOut) {
  LibraryModel clean;
  LibraryModel model;
  std::vector<LibrarySample> samples;
  for (const core::LibraryCall& call : Calls()) samples.push_back({call, Smooth(call)});
  clean.Fit(kDevice, samples);
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const double bad : {nan, 0.0, -5.0, std::numeric_limits<double>::infinity()}) {
    samples.push_back({Matmul(700, 768, 768), bad});
  }
  samples.push_back({core::LibraryCall{}, 1000});
  model.Fit(kDevice, samples);
  const core::LibraryCall call = Matmul(700, 768, 768);
  EXPECT_EQ(model.Predict(call).duration_ns, clean.Predict(call).duration_ns);
  EXPECT_EQ(model.Predict(core::LibraryCall{}).duration_ns, 0);
}

// A line goes far beyond its samples at sizes beyond them.
TEST(LibraryModel, NoRatioLiesBeyondThoseOfTheSamples) {
  LibraryModel model;
  HeldOutError(Smooth, model);
  double most = 0;
  for (const core::LibraryCall& call : Calls()) {
    most = std::max(most, Smooth(call) / FeaturesOf(kDevice, call).least_ns);
  }
  const core::LibraryCall far = Matmul(2, 16384, 1 << 20);
  EXPECT_LE(static_cast<double>(model.Predict(far).duration_ns),
            1.01 * most * FeaturesOf(kDevice, far).least_ns);
}

// Samples that cannot be: the prediction still lies between 1 ns and an hour.
TEST(LibraryModel, PredictionsStayWithinTheirRange) {
  std::vector<LibrarySample> samples;
  for (const core::LibraryCall& call : Calls()) samples.push_back({call, 1e300});
  LibraryModel model;
  model.Fit(kDevice, samples);
  const int64_t most = std::numeric_limits<int64_t>::max();
  for (const core::LibraryCall& call : {Matmul(1, 8, 8), Matmul(most, most, most)}) {
    const core::Prediction prediction = model.Predict(call);
    EXPECT_GE(prediction.duration_ns, 1);
    EXPECT_LE(prediction.duration_ns, core::kMaxDurationNs);
    EXPECT_LE(prediction.error_ns, core::kMaxDurationNs);
  }
}

TEST(LibraryModel, TheNumberOfSamplesIsBounded) {
  std::vector<LibrarySample> samples;
  while (samples.size() < kLibrarySamplesMax) {
    for (const core::LibraryCall& call : Calls()) samples.push_back({call, Smooth(call)});
  }
  samples.resize(kLibrarySamplesMax);
  LibraryModel bounded;
  bounded.Fit(kDevice, samples);
  samples.insert(samples.end(), 500, {Matmul(512, 768, 768), 1e9});
  LibraryModel model;
  model.Fit(kDevice, samples);
  EXPECT_EQ(model.Predict(Matmul(512, 768, 768)).duration_ns,
            bounded.Predict(Matmul(512, 768, 768)).duration_ns);
}

// All methods: a line for powers of sizes, neighbours for a step, both for a step on a power.
TEST(LibraryModel, WhatAProfileKeepsPredictsAsTheFitDoes) {
  const auto step = [](const core::LibraryCall& call) {
    return Smooth(call) * (call.m < 1500 && call.n > 2000 ? 2.0 : 1.0);
  };
  for (const Truth& truth : {Truth(Smooth), Truth(step)}) {
    LibraryModel fitted;
    HeldOutError(truth, fitted);
    LibraryModel restored;
    restored.Restore(kDevice, fitted.state());
    const core::LibraryCall call = Matmul(1000, 1536, 1024);
    EXPECT_FALSE(restored.Predict(call).trained) << "not prepared yet";
    restored.Prepare(call);
    for (const core::LibraryCall& one : {call, Matmul(300, 6144, 2000), Matmul(2, 8, 1 << 20)}) {
      const core::Prediction expected = fitted.Predict(one);
      const core::Prediction predicted = restored.Predict(one);
      EXPECT_EQ(predicted.duration_ns, expected.duration_ns);
      EXPECT_EQ(predicted.error_ns, expected.error_ns);
      EXPECT_EQ(predicted.trained, expected.trained);
    }
  }
}

TEST(LibraryModel, RowsOfAnotherClassDoNotCount) {
  LibraryModel fitted;
  HeldOutError(Smooth, fitted);
  LibraryState state = fitted.state();
  for (LibraryRow& row : state.classes.at(0).rows) row.call.n += 1;  // rows that are not aligned
  LibraryModel restored;
  restored.Restore(kDevice, state);
  restored.Prepare(Matmul(1000, 1536, 1024));
  EXPECT_FALSE(restored.Predict(Matmul(1000, 1536, 1024)).trained);
}

TEST(LibraryModel, APredictionAllocatesNothing) {
  if (!gpushare_test::CanFailAllocations()) GTEST_SKIP() << "A sanitizer replaces the allocator.";
  LibraryModel model;
  HeldOutError(Smooth, model);
  const core::LibraryCall call = Matmul(1000, 1536, 1024);
  const int64_t expected = model.Predict(call).duration_ns;
  gpushare_test::FailingAllocations failures(1, gpushare_test::Failing::kOnce);
  const int64_t predicted = model.Predict(call).duration_ns;
  failures.Stop();
  EXPECT_EQ(failures.failed(), 0);
  EXPECT_EQ(predicted, expected);
}

}  // namespace
}  // namespace gpushare::models
