// The table of faults on a GPU: what each case breaks, and what must still hold.
//
// A case runs in a process of its own, before which CUDA was not used: a broken context stays
// broken until its process ends. It throws a Failure where a promise is broken, and returns its
// figures.

#ifndef GPUSHARE_BENCHMARKS_FAULTS_CASES_H_
#define GPUSHARE_BENCHMARKS_FAULTS_CASES_H_

#include <vector>

#include "benchmarks/harness/json.h"

namespace gpushare::benchmarks {

struct FaultCase {
  const char* name;
  const char* promise;  // what the case shows, a clause
  int seconds_max;
  Json (*run)();
  // The library cannot protect a process from it: death by a signal is reported and is no failure.
  bool may_die = false;
};

std::vector<FaultCase> HangCases();
std::vector<FaultCase> ErrorCases();
std::vector<FaultCase> ResourceCases();
std::vector<FaultCase> CallCases();
std::vector<FaultCase> LatencyCases();

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_FAULTS_CASES_H_
