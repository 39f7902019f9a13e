// Success or a sentence: the error style of kernels/ and of the catalogue, without Abseil, so that
// files beside device code can use it.

#ifndef GPUSHARE_KERNELS_STATUS_H_
#define GPUSHARE_KERNELS_STATUS_H_

#include <string>

namespace gpushare::kernels {

// Success, or a CUDA error code (or -1: the caller's arguments are wrong) and a full sentence.
struct Status {
  int code = 0;
  std::string message;
  bool ok() const { return code == 0; }
};

Status InvalidOption(const std::string& message);

// Success when CUDA accepted the call, else a sentence with the step's name.
Status CudaStatus(int code, const char* step);

}  // namespace gpushare::kernels

#endif  // GPUSHARE_KERNELS_STATUS_H_
