// The last error of libgpushare_catalogue on each thread.

#ifndef GPUSHARE_EXAMPLES_PYTORCH_ERRORS_H_
#define GPUSHARE_EXAMPLES_PYTORCH_ERRORS_H_

#include <cstdint>
#include <exception>
#include <string>

namespace gpushare::example {

void SetError(const std::string& sentence);

// Runs `body`. Returns 0, or, if it throws, -1 after storing the message.
template <class Body>
int32_t Guard(Body body) noexcept {
  try {
    body();
    return 0;
  } catch (const std::exception& failure) {
    SetError(failure.what());
  } catch (...) {
    SetError("The call fails, and the reason is not known.");
  }
  return -1;
}

}  // namespace gpushare::example

#endif  // GPUSHARE_EXAMPLES_PYTORCH_ERRORS_H_
