// Times what two streams do from one moment on, whatever their contexts: events do not cross green
// contexts, so kernels of one thread stamp the time.
//
// Both streams wait at a gate while the host enqueues everything; then the gate opens. So no time
// of the host is in a result. Every wait is bounded. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_OVERLAP_CO_RUN_H_
#define GPUSHARE_BENCHMARKS_GPU_OVERLAP_CO_RUN_H_

#include <array>
#include <cstdint>
#include <functional>

#include "benchmarks/harness/gpu_device.h"

namespace gpushare::benchmarks {

class CoRun {
 public:
  using Enqueue = std::function<void()>;
  // Stamps of a run: the ends of the streams, and one that the caller may set within the first.
  enum Stamp : uint8_t { kEndA = 0, kEndB = 1, kInA = 2, kStamps = 3 };

  CoRun();

  struct Work {
    CUstream_st* a = nullptr;
    Enqueue on_a;
    CUstream_st* b = nullptr;  // null: `a` alone
    Enqueue on_b;
    // b begins so much later, so that a's blocks are placed first.
    uint64_t b_delay_ns = 0;
    // The gate is open at once, for the first run of anything: code that is loaded at its first
    // launch would wait for the gates, and they for it.
    bool warm_up = false;
    // Called again and again while anything runs; may be empty.
    Enqueue meanwhile;
  };
  // Blocks until both streams are done, also where something fails. Fails after 20 s.
  void Run(const Work& work);

  // To be called by on_a and on_b.
  void SetStamp(Stamp stamp, CUstream_st* stream);

  // Milliseconds of the last run since the gate opened; 0: not (yet) set.
  double Ms(Stamp stamp) const;
  bool IsSet(Stamp stamp) const { return Ms(stamp) > 0; }
  double TotalMs() const;

 private:
  struct Record {
    std::array<uint64_t, kStamps> stamps;
    std::array<uint64_t, 2> opened_ns;  // of a's and b's gate
    uint32_t flag;
    uint32_t unused;
  };

  void EnqueueAll(const Work& work);
  Record& record() const { return *memory_.as<Record>(); }

  MappedMemory memory_;
  uint32_t opened_ = 0;
};

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_OVERLAP_CO_RUN_H_
