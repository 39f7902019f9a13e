// Allocations that fail on purpose: the Nth one of a call, once or from there on.
//
// The program's malloc family is replaced, so that operator new, the C library and Abseil fail as
// on a machine without memory. Sanitizers replace it themselves: there nothing fails, and
// CanFailAllocations says so. Threads: one FailingAllocations at a time; it counts allocations of
// its own thread, or of every thread.

#ifndef GPUSHARE_TESTS_FAULTS_FAILING_ALLOCATIONS_H_
#define GPUSHARE_TESTS_FAULTS_FAILING_ALLOCATIONS_H_

#include <cstdint>
#include <ostream>

namespace gpushare_test {

enum class Failing { kOnce, kFromThereOn };
enum class Of { kThisThread, kEveryThread };

inline std::ostream& operator<<(std::ostream& out, Failing failing) {
  return out << (failing == Failing::kOnce ? "once" : "from there on");
}

bool CanFailAllocations();
// Allocations of the process that are not freed.
int64_t LiveAllocations();

class FailingAllocations {
 public:
  // Allocation number `first` fails, counted from 1.
  FailingAllocations(int64_t first, Failing failing, Of of = Of::kThisThread);
  ~FailingAllocations() { Stop(); }
  FailingAllocations(const FailingAllocations&) = delete;
  FailingAllocations& operator=(const FailingAllocations&) = delete;

  void Stop();
  // How many allocations have failed.
  int64_t failed() const;
};

}  // namespace gpushare_test

#endif  // GPUSHARE_TESTS_FAULTS_FAILING_ALLOCATIONS_H_
