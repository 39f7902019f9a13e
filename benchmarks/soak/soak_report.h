// What a soak is asked for, and what it reports.

#ifndef GPUSHARE_BENCHMARKS_SOAK_SOAK_REPORT_H_
#define GPUSHARE_BENCHMARKS_SOAK_SOAK_REPORT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "benchmarks/soak/soak_memory.h"

namespace gpushare::soak {

// What to break on purpose, so that a check can be seen failing.
enum class Break : uint8_t {
  kNothing = 0,
  kAnswer,    // one answer in a hundred is spoilt before its check
  kCallback,  // one callback in a hundred is not counted
  kTwice,     // one callback in a hundred is counted twice
  kMemory,    // each job leaves 256 KB behind
  kStatus,    // a call that the library refuses
};

struct Options {
  double seconds = 60;  // on the device's clock
  uint64_t seed = 1;
  std::string device = "cuda";  // "cuda" or "sim"
  std::vector<std::string> policies = {"adaptive", "smguard", "smguard:packed", "adaptive:elastic",
                                       "adaptive:evict"};
  std::string sim_faults;
  Break broken = Break::kNothing;
  bool progress = false;  // a line on stderr every ten seconds
};

struct Report {
  std::string device;
  double seconds = 0;  // of the device's clock
  // Names of the ledger's counters and their values, in the order in which they are printed.
  std::vector<std::pair<const char*, int64_t>> counters;
  Growth resident;
  Growth device_memory;  // used bytes
  int64_t failure_count = 0;
  std::vector<std::string> failures;  // the first ones, as sentences
};

}  // namespace gpushare::soak

#endif  // GPUSHARE_BENCHMARKS_SOAK_SOAK_REPORT_H_
