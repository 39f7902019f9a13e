// What a test says to the fake CUPTI (fake_cupti.cc), and what that saw. The fake is a shared
// library with CUPTI's name; the test finds `FakeCuptiState` in it by dlsym.

#ifndef GPUSHARE_TESTS_CUDA_COUNTERS_FAKE_CUPTI_H_
#define GPUSHARE_TESTS_CUDA_COUNTERS_FAKE_CUPTI_H_

#include <map>
#include <string>
#include <vector>

namespace gpushare::cuda {

struct FakeCupti {
  // The answers of functions by name; 0 for the others.
  std::map<std::string, int> answers;
  std::map<std::string, double> values;  // of metrics; 0 for the others
  int passes = 3;
  // A metric that the chip does not have, and the answer to it. CUPTI 13.0 gives this one.
  std::string missing_metric;
  int missing_answer = 1;

  // What happened.
  std::vector<std::string> calls;  // in their order, without their prefix
  std::vector<std::string> metrics;
  int ordinal = -1;
  void* context = nullptr;
  int open_sessions = 0;  // what was made and not given back
  bool initialised = false;
  bool in_range = false;
  bool in_pass = false;
  std::string wrong_order;  // a call that the state does not permit; "" for none
  int passes_begun = 0;
  // A struct of another size than CUPTI 13 has; "" for none.
  std::string wrong_size;
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_TESTS_CUDA_COUNTERS_FAKE_CUPTI_H_
