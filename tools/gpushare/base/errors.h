// The failures of the command: bad input (exit code 2), a failed run or a difference (exit code 1).
// An interrupt is the fourth (interrupt.h).
//
// Any function below RunCommand may throw them; only RunCommand catches. The text is one full
// sentence, which the user reads on stderr.

#ifndef GPUSHARE_TOOLS_GPUSHARE_BASE_ERRORS_H_
#define GPUSHARE_TOOLS_GPUSHARE_BASE_ERRORS_H_

#include <stdexcept>
#include <string>

namespace gpushare::tool {

inline constexpr int kExitOk = 0;
inline constexpr int kExitRunFailed = 1;
inline constexpr int kExitBadInput = 2;
// An interrupt: this plus the number of the signal, as shells have it.
inline constexpr int kExitSignal = 128;

// The user gave an invalid file, option or name.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The input is valid, but the device, the library or the file system failed.
class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A comparison that ran to its end and found a difference: exit code 1, and its result is printed.
class Differs : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_BASE_ERRORS_H_
