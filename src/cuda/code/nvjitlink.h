// nvJitLink: the assembler of the CUDA toolkit, opened at run time where it is installed.
//
// The library stays open until the process ends. Needs no GPU and no driver. Threads: any.

#ifndef GPUSHARE_SRC_CUDA_CODE_NVJITLINK_H_
#define GPUSHARE_SRC_CUDA_CODE_NVJITLINK_H_

#include <memory>

#include "absl/status/statusor.h"
#include "src/cuda/code/assemble.h"

namespace gpushare::cuda {

// UNAVAILABLE: no library of a version from 12 on is found, or it lacks a function.
absl::StatusOr<std::unique_ptr<Assembler>> OpenNvJitLink();

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_CODE_NVJITLINK_H_
