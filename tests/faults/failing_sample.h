// Which allocation of a call fails in each try: the first ones, then about each tripled number.
// With GPUSHARE_EVERY_ALLOCATION=1 every one.

#ifndef GPUSHARE_TESTS_FAULTS_FAILING_SAMPLE_H_
#define GPUSHARE_TESTS_FAULTS_FAILING_SAMPLE_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

namespace gpushare_test {

class FailingSample {
 public:
  FailingSample() {
    const char* const every = std::getenv("GPUSHARE_EVERY_ALLOCATION");
    all_ = every != nullptr && std::strcmp(every, "1") == 0;
  }
  bool more() const { return number_ < kNumberMax; }
  int64_t number() const { return number_; }
  void Next() { number_ = all_ || number_ < kFirst ? number_ + 1 : number_ * 3 - 2; }

 private:
  static constexpr int64_t kFirst = 8;  // the first so many are all tried
  static constexpr int64_t kNumberMax = 100'000;

  bool all_ = false;
  int64_t number_ = 1;
};

// While it lives, an abort says which allocation of which call had failed.
class ContextOfAbort {
 public:
  ContextOfAbort(const char* call, int64_t number) {
    call_ = call;
    number_ = number;
    std::set_terminate([] {
      std::fprintf(stderr, "terminated: allocation %lld of %s had failed\n",
                   static_cast<long long>(number_), call_);
      std::abort();
    });
  }
  ~ContextOfAbort() { std::set_terminate(nullptr); }
  ContextOfAbort(const ContextOfAbort&) = delete;
  ContextOfAbort& operator=(const ContextOfAbort&) = delete;

 private:
  static inline const char* call_ = "";
  static inline int64_t number_ = 0;
};

}  // namespace gpushare_test

#endif  // GPUSHARE_TESTS_FAULTS_FAILING_SAMPLE_H_
