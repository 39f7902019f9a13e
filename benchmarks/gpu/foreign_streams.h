// Streams that the library does not know, each with a running and a queued kernel: what other parts
// of a process do to the hardware queues. Plain types, so that .cc files need no nvcc.

#ifndef GPUSHARE_BENCHMARKS_GPU_FOREIGN_STREAMS_H_
#define GPUSHARE_BENCHMARKS_GPU_FOREIGN_STREAMS_H_

#include <atomic>
#include <thread>

namespace gpushare::benchmarks {

// Kernels of one block and 2 ms each, renewed by a thread of its own until the object dies.
// Exits the program when CUDA refuses something.
class ForeignStreams {
 public:
  explicit ForeignStreams(int count);
  ~ForeignStreams();
  ForeignStreams(const ForeignStreams&) = delete;
  ForeignStreams& operator=(const ForeignStreams&) = delete;

 private:
  void Run(int count);

  std::atomic<bool> stop_{false};
  std::atomic<bool> started_{false};
  std::thread thread_;
};

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_FOREIGN_STREAMS_H_
