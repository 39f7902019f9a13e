// Reads claim counters while their launches run, to see whether a launch that seems to hang makes
// progress.
//
// The counters are in device memory, so each look is a copy of four bytes on a stream of its own.
// Read starts the copy; a later Read of the same counter returns its value.
// Threads: the thread that runs the flow; the primary context is current, in relaxed capture mode.

#ifndef GPUSHARE_SRC_CUDA_LANES_CLAIMS_READER_H_
#define GPUSHARE_SRC_CUDA_LANES_CLAIMS_READER_H_

#include <array>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "src/core/base/limits.h"
#include "src/core/base/types.h"
#include "src/cuda/driver/context.h"

namespace gpushare::cuda {

class ClaimsReader {
 public:
  explicit ClaimsReader(const Context& context) : context_(context) {}

  // `priority` is the stream's. The primary context must be current.
  absl::Status Open(int priority);

  // The value of the counter at `address`, from a copy that an earlier Read started; nothing until
  // that copy has ended. A copy from another address is ignored: the counter has another task
  // since.
  std::optional<int64_t> Read(int32_t counter, const uint32_t* address);

  // Whether no copy is under way.
  bool Idle() const;
  void Close();
  void Leak() { values_.Leak(); }

 private:
  const Context& context_;
  CUstream stream_ = nullptr;
  MappedMemory values_;  // one word a counter
  std::array<const uint32_t*, core::kMaxCounters>
      copied_{};  // the source of a copy under way, or null
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_SRC_CUDA_LANES_CLAIMS_READER_H_
