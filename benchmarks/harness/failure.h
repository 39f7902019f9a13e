// How a benchmark fails: it throws a Failure with a full sentence. A program that compares many
// kernels may catch it, report the kernel and go on; what nobody catches ends the program (Main in
// arguments.h).

#ifndef GPUSHARE_BENCHMARKS_HARNESS_FAILURE_H_
#define GPUSHARE_BENCHMARKS_HARNESS_FAILURE_H_

#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>

namespace gpushare::benchmarks {

inline constexpr int kFailed = 1;
inline constexpr int kBadUse = 2;
inline constexpr int kNoGpu = 77;  // as ctest's SKIP_RETURN_CODE

class Failure : public std::runtime_error {
 public:
  explicit Failure(const std::string& why, int exit_code = kFailed)
      : std::runtime_error(why), exit_code_(exit_code) {}
  int exit_code() const { return exit_code_; }

 private:
  int exit_code_;
};

[[noreturn]] inline void Fail(const std::string& why) { throw Failure(why); }

// The sentence of an absl::Status, or of any other status that keeps it in `message`.
template <class Status>
std::string MessageOf(const Status& status) {
  if constexpr (requires { std::string(status.message()); }) {
    return std::string(status.message());
  } else {
    return std::string(status.message);
  }
}

template <class Status>
void Require(const Status& status, int exit_code = kFailed) {
  if (!status.ok()) throw Failure(MessageOf(status), exit_code);
}

// The value of an absl::StatusOr.
template <class StatusOr>
auto Take(StatusOr value, int exit_code = kFailed) {
  Require(value.status(), exit_code);
  return *std::move(value);
}

// Runs one of several measurements. False, with its name and the sentence on stderr, where it
// fails: the program goes on with the next.
template <class Step>
bool Attempt(const std::string& name, const Step& step) {
  try {
    step();
    return true;
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s: %s\n", name.c_str(), failure.what());
    return false;
  }
}

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_HARNESS_FAILURE_H_
