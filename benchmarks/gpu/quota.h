// What the parts of quota_benchmark share: its arguments, how it fails, its medians, and the parts.
//
// Every failure ends the program with 1 and a sentence: a benchmark with a wrong answer has no
// result. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_QUOTA_H_
#define GPUSHARE_BENCHMARKS_GPU_QUOTA_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "benchmarks/kernels/catalogue.h"

namespace gpushare::quota {

// No launch here lasts longer: one that does is hung.
inline constexpr int64_t kHungNs = 5'000'000'000;

struct Arguments {
  std::vector<std::string> parts = {"be", "lc", "taking"};
  uint32_t seed = 1;
  std::string only;  // a BE kernel of `be` and `lc`; empty: all of them
  // be
  int repeats = 7;  // `taking` makes three times as many
  double solo_ms = 5;
  std::vector<int> quotas = {8, 16, 32, 48, 64, 84, 100, 124};
  // lc
  std::vector<int> lc_quotas = {8, 32, 64, 96, 124};
  int lc_launches = 200;   // counted for each figure, at least
  double lc_us = 60;       // of one LC launch alone on the whole GPU, about
  double be_ms = 15;       // of one BE launch under its quota, about
  double lc_seconds = 25;  // no row begins later
};

class Gpu;

// The BE side: BE time under a quota made in each way, and the SMs that each way uses.
void RunBeSide(Gpu& gpu, const Arguments& arguments);
// The LC side: LC time beside a BE kernel under a quota.
void RunLcSide(Gpu& gpu, const Arguments& arguments);
// Block tasks taken dynamically or bound to workers.
void RunTaking(int sms, const Arguments& arguments);

[[noreturn]] void Fail(const std::string& why);
void Require(const absl::Status& status);
void Require(const kernels::Status& status);
// A cudaError_t.
void Cuda(int code, const char* step);

// The nearest-rank quantile; 0 of no values.
double Quantile(std::vector<double> values, double quantile);
double Median(std::vector<double> values);
// 0 where there is nothing to compare with.
double Ratio(double value, double reference);

}  // namespace gpushare::quota

#endif  // GPUSHARE_BENCHMARKS_GPU_QUOTA_H_
