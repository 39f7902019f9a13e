// The GPU of the benchmark of fused twins: streams of the whole device and of two halves, code of a
// text by the library's own assemblers and cache, and what a launch with headers needs.
//
// Threads: one; CodeOf any.

#ifndef GPUSHARE_BENCHMARKS_GPU_PTX_TWIN_GPU_H_
#define GPUSHARE_BENCHMARKS_GPU_PTX_TWIN_GPU_H_

#include <gpushare/device/launch.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"
#include "src/cuda/code/assemble.h"
#include "src/cuda/code/kernel_library.h"
#include "src/cuda/driver/context.h"
#include "src/cuda/driver/places.h"

namespace gpushare::benchmarks {

double NowUs();  // of the host's steady clock

// A loaded text.
struct Code {
  std::shared_ptr<cuda::KernelLibrary> library;
  std::string entry;
  CUfunction function = nullptr;  // of the entry
};

class TwinGpu {
 public:
  TwinGpu();  // fails with kNoGpu where there is none
  TwinGpu(const TwinGpu&) = delete;
  TwinGpu& operator=(const TwinGpu&) = delete;

  const cuda::Context& context() const { return *context_; }
  const cuda::DriverApi& api() const { return context_->api(); }
  int sms() const { return sms_; }
  // Two streams of the whole device; of two halves of its SMs.
  const std::array<CUstream, 2>& whole() const { return whole_; }
  const std::array<CUstream, 2>& halves() const { return halves_; }
  bool has_halves() const { return halves_[0] != nullptr; }
  const std::array<int, 2>& halves_sms() const { return halves_sms_; }

  // Makes code of the text, from the cache where it is there, and loads it. `form` names the forms
  // for the cache. Each caller needs an assembly of its own.
  std::unique_ptr<cuda::Assembly> MakeAssembly() const;
  absl::StatusOr<Code> CodeOf(const cuda::Assembly& assembly, const std::string& text,
                              const std::string& form, const std::string& entry);
  absl::StatusOr<CUfunction> FunctionOf(const Code& code, const std::string& entry) const;
  int AttributeOf(CUfunction function, CUfunction_attribute attribute) const;
  // Lets a block have its dynamic shared memory. 0: no block fits.
  int BlocksPerSm(CUfunction function, int threads, int dynamic_shared_bytes) const;

  // Waits for everything on the stream without sleeping. A stream that does not end within 5 s ends
  // the process, because neither its memory nor its context can be given back.
  void Await(CUstream stream) const;

 private:
  void MakeHalves();

  std::unique_ptr<cuda::Context> context_;
  std::unique_ptr<cuda::ScopedContext> current_;
  std::unique_ptr<cuda::Places> places_;
  int sms_ = 0;
  std::array<CUstream, 2> whole_ = {};
  std::array<CUstream, 2> halves_ = {};
  std::array<int, 2> halves_sms_ = {};
  std::mutex loading_;
};

// What one part of a fused launch needs beside its arguments: eviction word, scratch, completion
// record, and claim counters, one for each launch of a batch.
class PartWords {
 public:
  static constexpr size_t kCounters = 256;

  explicit PartWords(const TwinGpu& gpu);

  // Zeroes the counters, in the stream's order.
  void ZeroCounters(CUstream stream) const;
  // Of a launch of `blocks` block tasks of the grid. It has an epoch of its own, and block 0 of the
  // launch relays the eviction word (a leader).
  gpushare_worker_launch Header(const std::array<int32_t, 3>& grid, int64_t blocks, size_t counter,
                                uint32_t claim_batch);
  // Evicts the launch of the last header.
  void Evict();
  // Of the last launch that has ended.
  gpushare_worker_completion Record() const;
  uint64_t sequence() const { return sequence_; }  // of the last header

 private:
  const TwinGpu& gpu_;
  cuda::DeviceMemory device_;  // the word, the scratch, then the counters
  cuda::MappedMemory mapped_;  // the completion record, then the word of the host
  uint64_t sequence_ = 0;
  uint32_t epoch_ = 0;
};

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_PTX_TWIN_GPU_H_
