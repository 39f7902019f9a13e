// Streams that the library does not know, each with a running and a queued kernel: what other parts
// of a process do to the hardware queues.

#ifndef GPUSHARE_BENCHMARKS_GPU_FOREIGN_STREAMS_H_
#define GPUSHARE_BENCHMARKS_GPU_FOREIGN_STREAMS_H_

#include <atomic>
#include <cstdint>
#include <thread>

namespace gpushare::benchmarks {

// What a foreign kernel does for its time: it leaves the SM to its neighbours there, or takes issue
// slots from them.
enum class Foreign : uint8_t { kSleeps, kSpins };

// Kernels of one block and 2 ms each, renewed by a thread of its own until the object dies.
// Ends the program when CUDA refuses something.
class ForeignStreams {
 public:
  ForeignStreams(int count, Foreign kind);
  ~ForeignStreams();
  ForeignStreams(const ForeignStreams&) = delete;
  ForeignStreams& operator=(const ForeignStreams&) = delete;

 private:
  void Run(int count) noexcept;

  const uint32_t sleep_ns_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> started_{false};
  std::thread thread_;
};

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_FOREIGN_STREAMS_H_
