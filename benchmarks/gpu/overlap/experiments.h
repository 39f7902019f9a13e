// The experiments of overlap_benchmark: each reads its own options, prints its results as JSON and
// a table on stderr, and returns the exit code.

#ifndef GPUSHARE_BENCHMARKS_GPU_OVERLAP_EXPERIMENTS_H_
#define GPUSHARE_BENCHMARKS_GPU_OVERLAP_EXPERIMENTS_H_

#include "benchmarks/harness/arguments.h"

namespace gpushare::benchmarks {

int RunWays(Arguments& given);      // ways.cc
int RunCurve(Arguments& given);     // fused_curve.cc
int RunEviction(Arguments& given);  // fused_eviction.cc
int RunQuota(Arguments& given);     // quota.cc

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_OVERLAP_EXPERIMENTS_H_
