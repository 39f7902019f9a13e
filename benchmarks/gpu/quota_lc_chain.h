// The LC launch of quota_benchmark: a chain of ordinary grids of one kernel of the catalogue, each
// over buffers of its own, between two stamps of the GPU's clock.
//
// Its time runs from the end of the first stamp, which waits until the host has issued the rest, to
// the second one: the kernels and what is between them, without the host. Invariants: one launch at
// a time; the answers alone were compared with the reference on the CPU, every other one must have
// the same bits. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_QUOTA_LC_CHAIN_H_
#define GPUSHARE_BENCHMARKS_GPU_QUOTA_LC_CHAIN_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/gpu/quota_gpu.h"
#include "benchmarks/kernels/catalogue.h"

namespace gpushare::quota {

class LcChain {
 public:
  // `solo_us`: about what the chain takes alone on the whole GPU. Runs it there for the answers.
  LcChain(Gpu& gpu, const char* name, double solo_us, uint32_t seed);
  ~LcChain();
  LcChain(const LcChain&) = delete;
  LcChain& operator=(const LcChain&) = delete;

  const std::string& name() const { return name_; }
  size_t kernels() const { return steps_.size(); }

  void Issue(CUstream_st* stream);
  // Once the chain has ended: its time on the device.
  std::optional<double> PollMs() const;
  double Ms(CUstream_st* stream);  // both; blocks

  // While nothing runs: the outputs are forgotten, or are the ones expected beside `company`.
  void ClearOutputs();
  void CheckOutputs(const std::string& company);

 private:
  struct Step {
    std::unique_ptr<kernels::Workload> workload;
    uint64_t expected = 0;
  };

  void Verify();

  Gpu& gpu_;
  std::string name_;
  gpushare_kernel_variants variants_ = {};
  std::vector<Step> steps_;
  uint64_t* stamps_ = nullptr;  // of begin and end, mapped host memory; 0: not there yet
};

}  // namespace gpushare::quota

#endif  // GPUSHARE_BENCHMARKS_GPU_QUOTA_LC_CHAIN_H_
