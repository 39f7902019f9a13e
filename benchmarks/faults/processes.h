// Runs a case in a child process with a time limit. Threads: one at a time. The parent uses no
// CUDA.

#ifndef GPUSHARE_BENCHMARKS_FAULTS_PROCESSES_H_
#define GPUSHARE_BENCHMARKS_FAULTS_PROCESSES_H_

#include <string>

namespace gpushare::benchmarks {

struct ChildResult {
  int exit_code = -1;  // -1: a signal ended it
  int signal = 0;
  bool cut_off = false;  // at its time limit
  double seconds = 0;
  std::string output;  // standard output
  std::string errors;  // standard error, its end
};

// Executes this program again as `program --run NAME`. Blocks for seconds_max at most.
ChildResult RunChild(const std::string& name, int seconds_max);

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_FAULTS_PROCESSES_H_
