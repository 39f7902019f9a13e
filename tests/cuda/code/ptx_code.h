// The code of a kernel for tests at the device seam: a text, and the module with its twins.

#ifndef GPUSHARE_TESTS_CUDA_CODE_PTX_CODE_H_
#define GPUSHARE_TESTS_CUDA_CODE_PTX_CODE_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "src/core/seams/kernel.h"
#include "src/ptx/twin.h"

namespace gpushare::cuda {

// An empty entry: the only one of the text.
inline core::PtxCode PtxCodeOf(const std::string& text, const std::string& entry) {
  core::PtxCode code;
  const ptx::Twin twin = ptx::Transform(text, entry, {.workers = true, .slice = true});
  code.text = text;
  code.module = twin.text;
  code.entry = twin.facts.entry;
  code.worker.entry = twin.worker_entry;
  code.slice.entry = twin.slice_entry;
  for (size_t i = 0; i < code.block.size(); ++i) {
    code.block[i] = static_cast<int32_t>(twin.facts.block_required[i]);
  }
  code.worker.refusal = twin.refusal.message;
  return code;
}

}  // namespace gpushare::cuda

#endif  // GPUSHARE_TESTS_CUDA_CODE_PTX_CODE_H_
