// Asks a stream until it answers. See await_stream.h.

#include "src/cuda/driver/await_stream.h"

#include <thread>

#include "src/cuda/driver/capture_mode.h"

namespace gpushare::cuda {

CUresult AwaitStream(const DriverApi& api, CUstream stream, Moment until) {
  constexpr std::chrono::microseconds kNap(20);
  const ScopedRelaxedCapture relaxed(api);
  for (;;) {
    const CUresult code = api.cuStreamQuery(stream);
    if (code != CUDA_ERROR_NOT_READY || std::chrono::steady_clock::now() >= until) return code;
    std::this_thread::sleep_for(kNap);
  }
}

}  // namespace gpushare::cuda
