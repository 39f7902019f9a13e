// The errors of the C interface: a status code for the caller, and one sentence for its thread.
//
// Threads: each has its own sentence.

#ifndef GPUSHARE_KERNELS_INTERFACE_ERRORS_H_
#define GPUSHARE_KERNELS_INTERFACE_ERRORS_H_

#include <gpushare/kernels.h>

#include <exception>
#include <new>
#include <string>

#include "kernels/status.h"

namespace gpushare::kernels {

// Keeps the sentence for the calling thread, and returns the code.
gpushare_kernels_status Fail(gpushare_kernels_status code, const char* sentence) noexcept;
inline gpushare_kernels_status Fail(gpushare_kernels_status code, const std::string& sentence) {
  return Fail(code, sentence.c_str());
}

// Wrong arguments are INVALID_ARGUMENT, errors of CUDA UNAVAILABLE.
gpushare_kernels_status FromStatus(const Status& status) noexcept;

// Runs the body of an entry of the interface: no exception leaves it.
template <class Function>
gpushare_kernels_status Guard(const Function& function) noexcept {
  try {
    return function();
  } catch (const std::bad_alloc&) {
    return Fail(GPUSHARE_KERNELS_INTERNAL, "There is no host memory left.");
  } catch (const std::exception& exception) {
    return Fail(GPUSHARE_KERNELS_INTERNAL, exception.what());
  } catch (...) {
    return Fail(GPUSHARE_KERNELS_INTERNAL, "An unknown exception was thrown.");
  }
}

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_INTERFACE_ERRORS_H_
