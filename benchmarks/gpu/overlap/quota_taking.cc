// The part `taking` of the experiment `quota` (SMGuard 5.2): block tasks of equal and of seeded,
// skewed lengths, taken from a counter or bound to workers at the launch, as ranges (the paper) or
// by stride: time over dynamic, and the share of worker time that is lost in the tail.
//
// All ways take turns; medians. Fails on a block task that did not run once and on a wrong result.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "benchmarks/gpu/overlap/quota.h"
#include "benchmarks/gpu/overlap/quota_kernels.h"
#include "benchmarks/harness/gpu_device.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/harness/quantiles.h"
#include "benchmarks/harness/random.h"
#include "benchmarks/kernels/device_buffer.h"

namespace gpushare::benchmarks {
namespace {

using kernels::DeviceBuffer;

constexpr double kSkewedBlockTaskUs = 30;
constexpr uint32_t kSkewedRounds = 20;
constexpr std::array<Taking, 3> kTakings = {Taking::kDynamic, Taking::kRange, Taking::kStride};

// Lengths of block tasks, of mean about 1.
std::vector<double> Lengths(const std::string& spread, uint32_t count, uint32_t seed) {
  Random random(seed);
  std::vector<double> lengths(count, 1.0);
  // Pareto of shape 1.5 and mean 1, cut at 50 times that.
  constexpr double kShape = 1.5;
  constexpr double kCut = 50;
  for (uint32_t i = 0; i < count; ++i) {
    if (spread == "linear") lengths[i] = 0.1 + 1.8 * i / (count - 1);
    if (spread == "lognormal") lengths[i] = random.LogNormal(-0.5, 1);
    // A pattern that divides the number of workers, as rows of a matrix may.
    if (spread == "periodic") lengths[i] = i % 16 == 0 ? 8.5 : 0.5;
    if (spread == "pareto") {
      const double least = (kShape - 1) / kShape;
      lengths[i] = std::min(kCut, least * std::pow(1 - random.Between(0, 1), -1 / kShape));
    }
  }
  return lengths;
}

// The LCG after `iterations` steps from `start`, by doubling.
uint32_t SkewedResult(uint32_t start, uint32_t iterations) {
  uint32_t factor = kSkewedFactor;
  uint32_t step = kSkewedStep;
  uint32_t all_factor = 1;
  uint32_t all_step = 0;
  for (; iterations > 0; iterations >>= 1) {
    if ((iterations & 1) != 0) {
      all_step = all_step * factor + step;
      all_factor *= factor;
    }
    step = step * factor + step;
    factor *= factor;
  }
  return all_factor * start + all_step;
}

struct Taken {
  double ms = 0;
  double idle = 0;  // share of worker time between a worker's end and the last one's
};

class Skewed {
 public:
  explicit Skewed(int sms)
      : workers_(static_cast<uint32_t>(sms) * kSkewedWorkersPerSm),
        block_tasks_(workers_ * kSkewedRounds) {
    const size_t words = size_t{block_tasks_} * sizeof(uint32_t);
    Require(iterations_buffer_.Allocate(words));
    Require(executions_.Allocate(words));
    Require(results_.Allocate(words * kSkewedThreads));
    Require(counter_.Allocate(sizeof(uint32_t)));
    Require(begin_.Allocate(size_t{workers_} * sizeof(uint64_t)));
    Require(end_.Allocate(size_t{workers_} * sizeof(uint64_t)));
    Cuda(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  }
  ~Skewed() { cudaStreamDestroy(stream_); }
  Skewed(const Skewed&) = delete;
  Skewed& operator=(const Skewed&) = delete;

  uint32_t block_tasks() const { return block_tasks_; }

  void SetLengths(const std::vector<double>& lengths, double iterations_of_mean) {
    iterations_.clear();
    for (const double length : lengths) {
      iterations_.push_back(
          static_cast<uint32_t>(std::max(1.0, std::round(length * iterations_of_mean))));
    }
    Cuda(cudaMemcpy(iterations_buffer_.data(), iterations_.data(), iterations_buffer_.bytes(),
                    cudaMemcpyHostToDevice),
         "cudaMemcpy");
  }

  Taken Run(Taking taking) {
    for (const DeviceBuffer* buffer : {&counter_, &executions_}) Zero(*buffer);
    const SkewedParams params = {iterations_buffer_.as<uint32_t>(),
                                 results_.as<uint32_t>(),
                                 executions_.as<uint32_t>(),
                                 counter_.as<uint32_t>(),
                                 begin_.as<uint64_t>(),
                                 end_.as<uint64_t>(),
                                 block_tasks_,
                                 taking};
    Cuda(LaunchSkewed(params, workers_, stream_), "SkewedWorkers<<<>>>");
    Synchronize(stream_);
    const std::vector<uint64_t> begin = ReadAll<uint64_t>(begin_);
    const std::vector<uint64_t> end = ReadAll<uint64_t>(end_);
    const uint64_t first = *std::min_element(begin.begin(), begin.end());
    const uint64_t last = *std::max_element(end.begin(), end.end());
    double idle_ns = 0;
    for (const uint64_t at : end) idle_ns += static_cast<double>(last - at);
    const auto span_ns = static_cast<double>(last - first);
    return {span_ns / 1e6, idle_ns / (span_ns * workers_)};
  }

  // After a run: each block task once, each result exact.
  void Check(const std::string& what) {
    const std::vector<uint32_t> executions = ReadAll<uint32_t>(executions_);
    const std::vector<uint32_t> results = ReadAll<uint32_t>(results_);
    for (uint32_t b = 0; b < block_tasks_; ++b) {
      if (executions[b] != 1) {
        Fail("block task " + std::to_string(b) + " of " + what + " ran " +
             std::to_string(executions[b]) + " times.");
      }
      for (uint32_t t = 0; t < kSkewedThreads; ++t) {
        const uint32_t start = SkewedStart(b, t);
        if (results[size_t{b} * kSkewedThreads + t] == SkewedResult(start, iterations_[b])) {
          continue;
        }
        Fail("thread " + std::to_string(t) + " of block task " + std::to_string(b) + " of " + what +
             " has a wrong result.");
      }
    }
  }
  void ClearResults() { Zero(results_); }

 private:
  uint32_t workers_;
  uint32_t block_tasks_;
  std::vector<uint32_t> iterations_;
  DeviceBuffer iterations_buffer_;
  DeviceBuffer executions_;
  DeviceBuffer results_;
  DeviceBuffer counter_;
  DeviceBuffer begin_;
  DeviceBuffer end_;
  cudaStream_t stream_ = nullptr;
};

// Iterations of a block task that takes kSkewedBlockTaskUs at full occupancy.
double IterationsOfMean(Skewed& skewed) {
  constexpr double kTrial = 2000;
  constexpr size_t kTrials = 5;
  skewed.SetLengths(std::vector<double>(skewed.block_tasks(), 1.0), kTrial);
  std::vector<double> ms;
  ms.reserve(kTrials);
  for (size_t i = 0; i < kTrials; ++i) ms.push_back(skewed.Run(Taking::kStride).ms);
  const double block_task_us = Median(ms) * 1000 / kSkewedRounds;
  return std::max(16.0, kTrial * kSkewedBlockTaskUs / block_task_us);
}

void ReportTaking(Skewed& skewed, const std::string& spread, const QuotaOptions& options) {
  std::array<std::vector<double>, 3> ms;
  std::array<std::vector<double>, 3> idle;
  for (int i = -2; i < 3 * options.repeats; ++i) {
    for (size_t t = 0; t < kTakings.size(); ++t) {
      const size_t at = (t + static_cast<size_t>(i + 3)) % kTakings.size();
      if (i == -2) skewed.ClearResults();
      const Taken taken = skewed.Run(kTakings[at]);
      if (i == -2) skewed.Check(spread);
      if (i < 0) continue;
      ms[at].push_back(taken.ms);
      idle[at].push_back(taken.idle);
    }
  }
  const double dynamic_ms = Median(ms[0]);
  PrintLine({{"experiment", "taking"},
             {"lengths", spread},
             {"block_tasks", skewed.block_tasks()},
             {"dynamic_ms", Rounded(dynamic_ms, 4)},
             {"range_ms", Rounded(Median(ms[1]), 4)},
             {"stride_ms", Rounded(Median(ms[2]), 4)},
             {"range_over_dynamic", Rounded(Median(ms[1]) / dynamic_ms, 4)},
             {"stride_over_dynamic", Rounded(Median(ms[2]) / dynamic_ms, 4)},
             {"dynamic_idle", Rounded(Median(idle[0]), 4)},
             {"range_idle", Rounded(Median(idle[1]), 4)},
             {"stride_idle", Rounded(Median(idle[2]), 4)},
             {"repeats", 3 * options.repeats},
             {"seed", options.seed},
             {"answers", "right"}});
  std::fprintf(stderr, "%-10s dynamic %8.4f ms  range %.4f x  stride %.4f x  idle %.3f %.3f %.3f\n",
               spread.c_str(), dynamic_ms, Median(ms[1]) / dynamic_ms, Median(ms[2]) / dynamic_ms,
               Median(idle[0]), Median(idle[1]), Median(idle[2]));
}

}  // namespace

void RunTaking(int sms, const QuotaOptions& options) {
  Skewed skewed(sms);
  const double iterations = IterationsOfMean(skewed);
  std::fprintf(stderr, "block tasks bound to workers over taken dynamically\n");
  for (const char* spread : {"uniform", "linear", "lognormal", "pareto", "periodic"}) {
    skewed.SetLengths(Lengths(spread, skewed.block_tasks(), options.seed), iterations);
    ReportTaking(skewed, spread, options);
  }
}

}  // namespace gpushare::benchmarks
