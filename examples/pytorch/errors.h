// The thread's last error of libgpushare_catalogue. Threads: each has its own.

#ifndef GPUSHARE_EXAMPLES_PYTORCH_ERRORS_H_
#define GPUSHARE_EXAMPLES_PYTORCH_ERRORS_H_

#include <cstdint>
#include <exception>
#include <string>

namespace gpushare::example {

void SetError(const std::string& sentence);

// Runs `body`, which throws on failure: 0 or -1 with the sentence kept.
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
