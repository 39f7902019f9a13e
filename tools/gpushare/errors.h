// How the command fails: bad input (exit code 2) or a failure while running (exit code 1).
//
// Thrown anywhere below main, caught only there. The text is one full sentence, which is what the
// user reads on stderr.

#ifndef GPUSHARE_TOOLS_GPUSHARE_ERRORS_H_
#define GPUSHARE_TOOLS_GPUSHARE_ERRORS_H_

#include <stdexcept>
#include <string>

namespace gpushare::tool {

inline constexpr int kExitOk = 0;
inline constexpr int kExitRunFailed = 1;
inline constexpr int kExitBadInput = 2;

// The user gave something that cannot be right: a file, an option, a name.
class InputError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The input was right and the run was not: the device, the library or the file system failed.
class RunError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_ERRORS_H_
