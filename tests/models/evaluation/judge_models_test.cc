// Judges on samples whose truth is known.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "src/models/evaluation/judged.h"
#include "src/models/samples/hold_out.h"

namespace gpushare::models {
namespace {

using ::testing::IsEmpty;

constexpr int32_t kSms = 132;

SampleRow Workers(int64_t block_tasks, double ns) {
  SampleRow row;
  row.kernel = "kernel";
  row.form = core::Form::kWorkers;
  row.block_tasks = block_tasks;
  row.sms = kSms;
  row.ns = {ns, ns, ns};
  return row;
}

SampleRow Copy(int64_t bytes, double ns) {
  SampleRow row;
  row.what = SampleKind::kCopy;
  row.bytes = bytes;
  row.ns = {ns, ns, ns};
  return row;
}

SampleRow Fused(int32_t load_percent, double ratio) {
  SampleRow row;
  row.what = SampleKind::kFused;
  row.kernel = "fused";
  row.tensor = "t";
  row.neighbour = "c";
  row.load_percent = load_percent;
  row.alone_ns = {1000};
  row.neighbour_ns = {10.0 * load_percent};
  row.ns = {1000 * ratio};
  return row;
}

double WorstOf(const std::vector<Judged>& judged) {
  double worst = 0;
  for (const Judged& one : judged) {
    worst = std::max(worst, std::abs(one.predicted / one.measured - 1));
  }
  return worst;
}

using Judge = void (*)(const Samples& samples, std::vector<Judged>& out);

std::vector<Judged> By(Judge judge, const Samples& samples) {
  std::vector<Judged> judged;
  judge(samples, judged);
  return judged;
}

SampleRow Counters(const std::string& kernel, const std::vector<CounterValue>& counters) {
  SampleRow row;
  row.what = SampleKind::kCounters;
  row.kernel = kernel;
  row.counters = counters;
  return row;
}

int64_t CountHeldOut(const Samples& samples) {
  return std::count_if(samples.rows.begin(), samples.rows.end(),
                       [](const SampleRow& row) { return IsHeldOut(row); });
}

Samples Kernels() {
  Samples samples;
  samples.head.sm_count = kSms;
  for (int64_t tasks = 100; tasks <= 4000; tasks += 100) {
    samples.rows.push_back(Workers(tasks, 5000 + 30.0 * static_cast<double>(tasks)));
  }
  return samples;
}

TEST(JudgeKernels, PredictsHeldOutSizesOnly) {
  const Samples samples = Kernels();
  const std::vector<Judged> judged = By(JudgeKernels, samples);
  const int64_t held = CountHeldOut(samples);
  EXPECT_GT(held, 2);
  EXPECT_EQ(static_cast<int64_t>(judged.size()), 2 * held) << "the line, and the form that is kept";
  EXPECT_LT(WorstOf(judged), 0.01);
}

TEST(JudgeKernels, PartsOfTheDeviceAndFewWorkersAreOtherConditions) {
  Samples samples = Kernels();
  const size_t count = samples.rows.size();
  for (size_t i = 0; i < count; ++i) {
    SampleRow part = samples.rows[i];
    part.sms = 64;
    part.ns = {1};
    samples.rows.push_back(part);
    part.sms = kSms;
    part.workers_per_sm = 1;
    samples.rows.push_back(part);
  }
  const std::vector<Judged> judged = By(JudgeKernels, samples);
  EXPECT_LT(WorstOf(judged), 0.01);
}

// 100 MB a ms up to 64 MB, and ever slower beyond.
TEST(JudgeCopies, ABendInTheRateIsNoLine) {
  Samples samples;
  for (int repeat = 0; repeat < 3; ++repeat) {
    for (int64_t bytes = 1 << 12; bytes <= int64_t{1} << 28; bytes += bytes / 4) {
      const auto size = static_cast<double>(bytes);
      const double slower = std::pow(std::max(1.0, size / 64e6), 0.4);
      samples.rows.push_back(Copy(bytes, size * 1e-2 * slower));
    }
  }
  const std::vector<Judged> judged = By(JudgeCopies, samples);
  ASSERT_GT(judged.size(), 3U);
  double sum = 0;
  for (const Judged& one : judged) sum += std::abs(one.predicted / one.measured - 1);
  EXPECT_LT(sum / static_cast<double>(judged.size()), 0.06);
}

TEST(JudgeFused, TheCurveIsJudgedBetweenThePointsThatTrainIt) {
  Samples samples;
  for (int32_t load = 10; load <= 190; load += 10) {
    const double r = load / 100.0;
    samples.rows.push_back(Fused(load, 1 + 0.2 * r + std::max(0.0, 0.9 * (r - 0.7))));
  }
  const std::vector<Judged> judged = By(JudgeFused, samples);
  EXPECT_EQ(judged.size(), 2U * (19 - 5));  // two models
  EXPECT_LT(WorstOf(judged), 0.05);
}

TEST(JudgeFused, OtherRatiosAreAFamilyOfTheirOwn) {
  Samples samples;
  for (int32_t load = 10; load <= 190; load += 10) {
    samples.rows.push_back(Fused(load, 1 + 0.3 * load / 100.0));
    samples.rows.back().kernel = "fused_1_2";
    samples.rows.back().cuda_blocks = 2;
  }
  const std::vector<Judged> judged = By(JudgeFused, samples);
  ASSERT_FALSE(judged.empty());
  for (const Judged& one : judged) EXPECT_EQ(one.family, "fused kernels at other ratios");
}

SampleRow Query(const std::string& query, int64_t size, double ns) {
  SampleRow row;
  row.kernel = query + "@" + std::to_string(size);
  row.form = core::Form::kGraph;
  row.sms = kSms;
  row.input_size = size;
  row.ns = {ns, ns, ns, ns, ns};
  return row;
}

// One bound by launches and one with a square term: each has a model of its own.
Samples Queries() {
  Samples samples;
  samples.head.sm_count = kSms;
  for (int64_t size = 16; size <= 4096; size += size / 4) {
    const auto tokens = static_cast<double>(size);
    samples.rows.push_back(Query("line", size, 2e5 + 1e3 * tokens));
    samples.rows.push_back(Query("square", size, 1e5 + 50 * tokens + 2 * tokens * tokens));
  }
  return samples;
}

TEST(JudgeQueries, EachQueryHasAModelOverItsSizes) {
  const Samples samples = Queries();
  const std::vector<Judged> judged = By(JudgeQueries, samples);
  const int64_t held = CountHeldOut(samples);
  EXPECT_GT(held, 5);
  EXPECT_EQ(static_cast<int64_t>(judged.size()), held);
  EXPECT_LT(WorstOf(judged), 0.1);
}

SampleRow Contended(SampleKind what, bool to_device, int64_t bytes, double kept) {
  SampleRow row;
  row.what = what;
  row.to_device = to_device;
  row.bytes = bytes;
  row.alone_ns = {1000, 1000};
  row.ns = {1000 / kept, 1000 / kept};
  return row;
}

// A kernel that uses all of DRAM delays a copy by half of its 1 us, and loses a tenth to it.
Samples ContendedCopies() {
  Samples samples;
  samples.head.sm_count = kSms;
  for (int k = 0; k < 12; ++k) {
    const double dram = k / 11.0;
    const SampleRow counters = Counters("kernel" + std::to_string(k), {{"dram", dram}});
    samples.rows.push_back(counters);
    for (const bool to_device : {true, false}) {
      for (int64_t bytes = 1 << 16; bytes <= 1 << 28; bytes *= 8) {
        samples.rows.push_back(
            Contended(SampleKind::kCopyBeside, to_device, bytes, 1000 / (1000 + 500 * dram)));
        samples.rows.back().neighbour = counters.kernel;
      }
      samples.rows.push_back(
          Contended(SampleKind::kBesideCopy, to_device, 1 << 28, 1 / (1 + 0.1 * dram)));
      samples.rows.back().kernel = counters.kernel;
    }
  }
  for (const bool to_device : {true, false}) {
    for (int64_t bytes = 1 << 16; bytes <= 1 << 27; bytes *= 2) {
      samples.rows.push_back(
          Contended(SampleKind::kCopyBeside, to_device, bytes, to_device ? 0.9 : 0.8));
      samples.rows.back().neighbour_bytes = 8 * bytes;
    }
  }
  return samples;
}

TEST(JudgeCopyContention, KeptSharesOfHeldOutPairsOfEachKind) {
  const std::vector<Judged> judged = By(JudgeCopyContention, ContendedCopies());
  for (const char* family :
       {"copies beside a copy the other way", "copies beside kernels", "kernels beside copies"}) {
    const auto one = [&](const Judged& row) { return row.family == family; };
    EXPECT_GT(std::count_if(judged.begin(), judged.end(), one), 1) << family;
  }
  EXPECT_LT(WorstOf(judged), 0.01);
}

TEST(JudgeNeighbours, APairIsHeldOutOnEverySplit) {
  Samples samples;
  samples.head.sm_count = kSms;
  for (int k = 0; k < 24; ++k) {
    const double dram = k / 24.0;
    SampleRow counters = Counters("be" + std::to_string(k), {{"instructions", 1000},
                                                             {"issue", 0.5},
                                                             {"dram", dram},
                                                             {"l2", 0.3},
                                                             {"tensor", 0},
                                                             {"dram_bytes", 1000},
                                                             {"dram_write_bytes", 300}});
    counters.block_tasks = 100;
    samples.rows.push_back(counters);
    for (const int32_t sms : {64, 96}) {
      SampleRow row;
      row.what = SampleKind::kBeside;
      row.kernel = "lc";
      row.form = core::Form::kGraph;
      row.sms = sms;
      row.neighbour = counters.kernel;
      row.neighbour_sms = kSms - sms;
      row.alone_ns = {100};
      row.ns = {100 / (1 - 0.5 * dram * (kSms - sms) / kSms)};
      samples.rows.push_back(row);
    }
  }
  const std::vector<Judged> judged = By(JudgeNeighbours, samples);
  ASSERT_GT(judged.size(), 3U);
  EXPECT_EQ(judged.size() % 2, 0U);
  EXPECT_LT(WorstOf(judged), 0.03);
}

SampleRow Product(int64_t m, int64_t n, double ns) {
  SampleRow row;
  row.kernel = "matmul " + std::to_string(m) + " " + std::to_string(n);
  row.form = core::Form::kLibrary;
  row.sms = kSms;
  row.call.operation = core::LibraryOperation::kMatmul;
  row.call.type = core::DataType::kFloat16;
  row.call.m = m;
  row.call.n = n;
  row.call.k = 4096;
  row.ns = {ns, ns, ns};
  return row;
}

Samples Products() {
  Samples samples;
  samples.head.sm_count = kSms;
  for (int64_t m = 128; m <= 8192; m += m / 4) {
    for (const int64_t n : {768, 1024, 2048, 4096}) {
      const double flops = 2.0 * 4096 * static_cast<double>(m * n);
      samples.rows.push_back(Product(m, n, 3000 + flops / 500e3));
    }
  }
  return samples;
}

TEST(JudgeLibraryCalls, HeldOutShapesByFamilyAndNoPartsOfTheDevice) {
  Samples samples = Products();
  for (size_t i = 0, count = samples.rows.size(); i < count; ++i) {
    SampleRow part = samples.rows[i];
    part.sms = 64;
    part.ns = {1};
    samples.rows.push_back(part);
  }
  const std::vector<Judged> judged = By(JudgeLibraryCalls, samples);
  ASSERT_GT(judged.size(), 5U);
  EXPECT_LT(WorstOf(judged), 0.15);
  for (const Judged& one : judged) {
    EXPECT_GE(one.measured, 10'000);
    EXPECT_EQ(one.family == "library calls above 100 us", one.measured >= 100'000) << one.subject;
  }
}

TEST(JudgeLibraryCalls, BlindShapesAreJudgedApartAndTrainNothing) {
  Samples samples = Products();
  const std::vector<Judged> before = By(JudgeLibraryCalls, samples);
  for (int64_t m = 200; m <= 8000; m += 200) {
    samples.rows.push_back(Product(m, 1536, 77e6));
    samples.rows.back().kernel = "blind." + samples.rows.back().kernel;
  }
  const std::vector<Judged> after = By(JudgeLibraryCalls, samples);
  size_t blind = 0;
  size_t others = 0;
  for (const Judged& one : after) {
    if (one.family == "blind library calls above 100 us") {
      ++blind;
      EXPECT_LT(one.predicted, 1e6) << one.subject;
      continue;
    }
    ASSERT_LT(others, before.size());
    EXPECT_EQ(one.predicted, before[others++].predicted) << one.subject;
  }
  EXPECT_EQ(blind, 40U);
  EXPECT_EQ(others, before.size());
}

// Kernels that want one pipe to different shares; a pair's speeds follow the sum of both.
Samples SharedSmSamples() {
  constexpr int kKernels = 12;
  constexpr int kWorkersMax = 4;
  Samples samples;
  samples.head.sm_count = kSms;
  const auto use = [](int kernel) { return 0.2 + 0.06 * kernel; };
  const auto name = [](int kernel) { return "kernel" + std::to_string(kernel); };
  for (int k = 0; k < kKernels; ++k) {
    SampleRow row = Counters(name(k), {{"alu", 0},
                                       {"tensor", 0},
                                       {"special", 0},
                                       {"lsu", 0},
                                       {"shared", 0},
                                       {"l1", 0},
                                       {"l2", 0},
                                       {"issue", use(k)},
                                       {"fma", use(k)},
                                       {"dram", 0.6},
                                       {"dram_bytes", 2.9e9},
                                       {"instructions", 1e7},
                                       {"global_instructions", 1e5},
                                       {"global_requests", 1e5},
                                       {"global_sectors", 4e5},
                                       {"duration_ns", 1e6},
                                       {"cycles", 2e6},
                                       {"threads", 256},
                                       {"workers_per_sm", kWorkersMax}});
    row.block_tasks = 1000;
    samples.rows.push_back(row);
  }
  for (int a = 0; a < kKernels; ++a) {
    for (int b = 0; b < kKernels; ++b) {
      for (int workers = 1; workers < kWorkersMax && a != b; ++workers) {
        const double own = workers * 1.0 / kWorkersMax;
        SampleRow row = Workers(1000, 0);
        row.what = SampleKind::kBeside;
        row.kernel = name(a);
        row.neighbour = name(b);
        row.workers_per_sm = workers;
        row.neighbour_workers_per_sm = kWorkersMax - workers;
        row.same_sms = true;
        row.alone_ns = {1e5};
        row.ns = {1e5 / own * std::max(1.0, 0.7 + use(a) * own + use(b) * (1 - own))};
        samples.rows.push_back(row);
      }
    }
  }
  return samples;
}

std::vector<Judged> OfFamily(const std::vector<Judged>& judged, const std::string& family,
                             const std::string& model) {
  std::vector<Judged> found;
  for (const Judged& one : judged) {
    if (one.family == family && one.model == model) found.push_back(one);
  }
  return found;
}

TEST(JudgeCoResident, APairIsHeldOutInBothOrdersAndAtEveryNumberOfWorkers) {
  const std::vector<Judged> judged = By(JudgeCoResident, SharedSmSamples());
  const auto speeds = OfFamily(judged, "speeds on same SMs", "Gaussian process over counters");
  const auto pairs = OfFamily(judged, "throughput of pairs", "Gaussian process over counters");
  ASSERT_GT(speeds.size(), 30U);
  EXPECT_EQ(speeds.size() % 6, 0U);
  EXPECT_EQ(pairs.size() * 2, speeds.size());
  EXPECT_LT(WorstOf(speeds), 0.1);
  for (const Judged& pair : pairs) EXPECT_NEAR(pair.measured, 0.7, 0.35);
}

TEST(JudgeCoResident, TheChosenNeighbourIsNeverBetterThanTheBest) {
  const std::vector<Judged> judged = By(JudgeCoResident, SharedSmSamples());
  const auto choices = OfFamily(judged, "choice of neighbour", "Gaussian process over counters");
  ASSERT_FALSE(choices.empty());
  for (const Judged& one : choices) EXPECT_LE(one.predicted, one.measured);
}

// 10,000 instructions a block task, 1,000 of them in 1e5 ns alone, at 2 GHz on four schedulers.
TEST(JudgeMarkov, MeasuredIpcFollowsFromCountersAndDurations) {
  const std::vector<Judged> judged = By(JudgeMarkov, SharedSmSamples());
  const auto rows = OfFamily(judged, "IPC on same SMs", "Markov");
  ASSERT_GT(rows.size(), 30U);
  const double alone = 1e4 * 1000 / (1e5 * 2) / kSms / 4;
  for (const Judged& row : rows) {
    EXPECT_GT(row.predicted, 0);
    EXPECT_LE(row.predicted, 1);
    EXPECT_LE(row.measured, alone * 0.75 + 1e-9);
    EXPECT_GE(row.measured, alone * 0.25 / 1.7);
  }
}

// Kernel k uses 0.2 + 0.06 k of the issue slots alone.
TEST(JudgeMarkovPipes, AKernelAloneHasItsCountedIpcWithEveryAddition) {
  const std::vector<Judged> judged = By(JudgeMarkovPipes, SharedSmSamples());
  std::vector<Judged> last;
  for (const char* model : {"Markov, pre-run", "Markov, pipes", "Markov, older first"}) {
    const auto ipc = OfFamily(judged, "IPC on same SMs", model);
    const auto speeds = OfFamily(judged, "speeds on same SMs", model);
    ASSERT_GT(ipc.size(), 30U);
    ASSERT_EQ(ipc.size(), speeds.size());
    int changed = 0;
    for (size_t i = 0; i < ipc.size(); ++i) {
      const std::string& subject = ipc[i].subject;
      const int kernel = std::stoi(subject.substr(subject.find("kernel") + 6));
      EXPECT_NEAR(ipc[i].predicted / speeds[i].predicted, 0.2 + 0.06 * kernel, 1e-3) << subject;
      changed += last.empty() || last[i].predicted != ipc[i].predicted ? 1 : 0;
    }
    EXPECT_GT(changed, 10) << model << " changes nothing";
    last = ipc;
  }
}

// One kernel that is flat from 0.44 of the SMs on, one in proportion, and a graph whose time beside
// the first is another line than alone.
Samples ScalingSamples() {
  Samples samples;
  samples.head.sm_count = kSms;
  for (const auto& [name, dram] : {std::pair("flat", 0.8), std::pair("steep", 0.1)}) {
    samples.rows.push_back(Counters(name, {{"instructions", 1e6}, {"issue", 0.3}, {"dram", dram}}));
    samples.rows.back().block_tasks = 1000;
  }
  for (int32_t sms = 8; sms <= kSms; sms += 4) {
    SampleRow row = Workers(1000, 1e6 / std::min(1.0, sms / (0.44 * kSms)));
    row.kernel = "flat";
    row.sms = sms;
    samples.rows.push_back(row);
    row.block_tasks = 500;  // a smaller task is another curve
    row.ns = {1};
    samples.rows.push_back(row);
    row = Workers(1000, 1e6 * kSms / sms);
    row.kernel = "steep";
    row.sms = sms;
    samples.rows.push_back(row);
    row = {};
    row.kernel = "graph";
    row.form = core::Form::kGraph;
    row.sms = sms;
    row.ns = {2e7 / sms + 3e5};
    samples.rows.push_back(row);
    row.what = SampleKind::kBeside;
    row.neighbour = "flat";
    row.neighbour_sms = kSms - sms;
    row.alone_ns = row.ns;
    row.ns = {5e7 / sms + 4e5};
    samples.rows.push_back(row);
  }
  return samples;
}

TEST(JudgeScaling, TheLineHoldsForLinesAndTheKneeForKnees) {
  const std::vector<Judged> judged = By(JudgeScaling, ScalingSamples());
  const auto knees = OfFamily(judged, "kernels on fewer SMs", "knee from counters");
  const auto proportion = OfFamily(judged, "kernels on fewer SMs", "in proportion");
  const auto lines = OfFamily(judged, "kernels on fewer SMs", "a / m + b");
  ASSERT_GT(knees.size(), 5U);
  EXPECT_EQ(knees.size(), proportion.size());
  EXPECT_EQ(knees.size(), lines.size());
  EXPECT_LT(WorstOf(knees), 1e-6);
  EXPECT_GT(WorstOf(proportion), 0.2);
  EXPECT_GT(WorstOf(lines), 0.02);
  const auto alone = OfFamily(judged, "others on fewer SMs", "a / m + b");
  const auto conflict = OfFamily(judged, "beside memory kind", "a / m + b");
  ASSERT_GT(alone.size(), 2U);
  ASSERT_GT(conflict.size(), 2U);
  EXPECT_LT(WorstOf(alone), 1e-6);
  EXPECT_LT(WorstOf(conflict), 1e-6);
  EXPECT_GT(conflict[0].predicted, 4e5);
}

struct HeldOutCase {
  Judge judge;
  Samples (*samples)();
  bool (*held_out)(const SampleRow& row);
  const char* family = nullptr;  // of what is compared; null: all
  const char* model = nullptr;
};

bool IsHeldOutPair(const SampleRow& row) {
  return row.what == SampleKind::kBeside &&
         IsHeldOut("pair " + std::min(row.kernel, row.neighbour) + " " +
                   std::max(row.kernel, row.neighbour));
}

TEST(JudgeModels, WhatIsHeldOutTrainsNothing) {
  const auto held = [](const SampleRow& row) { return IsHeldOut(row); };
  const auto contended = [](const SampleRow& row) {
    return !row.alone_ns.empty() && IsHeldOut(row);
  };
  // The whole device anchors what follows from counters.
  const auto scaled = [](const SampleRow& row) { return IsHeldOut(row) && row.sms < kSms; };
  const HeldOutCase cases[] = {{JudgeKernels, Kernels, held},
                               {JudgeQueries, Queries, held},
                               {JudgeCopyContention, ContendedCopies, contended},
                               {JudgeCoResident, SharedSmSamples, IsHeldOutPair,
                                "speeds on same SMs", "Gaussian process over counters"},
                               {JudgeScaling, ScalingSamples, scaled}};
  for (const HeldOutCase& one : cases) {
    SCOPED_TRACE(&one - cases);
    Samples samples = one.samples();
    const std::vector<Judged> before = By(one.judge, samples);
    for (SampleRow& row : samples.rows) {
      if (!one.held_out(row)) continue;
      for (double& ns : row.ns) ns *= 7;
    }
    const std::vector<Judged> after = By(one.judge, samples);
    ASSERT_FALSE(before.empty());
    ASSERT_EQ(after.size(), before.size());
    for (size_t i = 0; i < after.size(); ++i) {
      if (one.family != nullptr && after[i].family != one.family) continue;
      if (one.family != nullptr && after[i].model != one.model) continue;
      EXPECT_EQ(after[i].predicted, before[i].predicted) << after[i].subject;
      EXPECT_NE(after[i].measured, before[i].measured) << after[i].subject;
    }
  }
}

TEST(JudgeQueries, KernelsAreNoQueries) {
  Samples samples = Queries();
  const size_t queries = By(JudgeQueries, samples).size();
  samples.rows.push_back(Workers(100, 1));
  EXPECT_EQ(By(JudgeQueries, samples).size(), queries);
}

TEST(JudgeModels, NothingIsJudgedByNothing) { EXPECT_THAT(JudgeModels({}), IsEmpty()); }

}  // namespace
}  // namespace gpushare::models
