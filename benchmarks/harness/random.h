// The random numbers of all benchmarks: one seed gives one sequence. Threads: one at a time for
// each generator.

#ifndef GPUSHARE_BENCHMARKS_HARNESS_RANDOM_H_
#define GPUSHARE_BENCHMARKS_HARNESS_RANDOM_H_

#include <cstdint>
#include <random>

namespace gpushare::benchmarks {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  uint64_t Bits() { return engine_(); }
  // 0 to limit - 1.
  int64_t Below(int64_t limit) {
    return std::uniform_int_distribution<int64_t>(0, limit - 1)(engine_);
  }
  bool Chance(double p) { return std::uniform_real_distribution<double>(0, 1)(engine_) < p; }
  double Between(double a, double b) {
    return std::uniform_real_distribution<double>(a, b)(engine_);
  }
  int64_t Exponential(double mean) {
    return static_cast<int64_t>(std::exponential_distribution<double>(1 / mean)(engine_));
  }
  double LogNormal(double mean_of_log, double deviation_of_log) {
    return std::lognormal_distribution<double>(mean_of_log, deviation_of_log)(engine_);
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_HARNESS_RANDOM_H_
