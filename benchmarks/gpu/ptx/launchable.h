// A recorded launch that can run as original, as a slice of its block tasks, and as a part of a
// fused twin. Threads: one.

#ifndef GPUSHARE_BENCHMARKS_GPU_PTX_LAUNCHABLE_H_
#define GPUSHARE_BENCHMARKS_GPU_PTX_LAUNCHABLE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/gpu/ptx/fused_plan.h"
#include "benchmarks/gpu/ptx/fused_ratios.h"
#include "benchmarks/gpu/ptx/recorded_folder.h"
#include "benchmarks/gpu/ptx/twin_gpu.h"
#include "src/cuda/code/parameter_layout.h"
#include "tests/cuda/code/recorded_launch.h"

namespace gpushare::benchmarks {

class Launchable {
 public:
  // Reads and loads it, keeps what the original leaves, and times the original alone. Fails where
  // it has no twin, or where the original does not repeat its own bits.
  Launchable(TwinGpu& gpu, const cuda::Assembly& assembly, const RecordedFile& file);

  const cuda::RecordedLaunch& recorded() const { return *recorded_; }
  const Candidate& candidate() const { return candidate_; }
  Candidate& candidate() { return candidate_; }
  double bytes() const { return bytes_; }
  int worker_registers() const { return worker_registers_; }
  // Block tasks of one claim of its workers, by the time of a block task: what the library takes
  // for a kernel of which it knows that time.
  uint32_t claim_batch() const { return claim_batch_; }

  // The first `blocks` block tasks: the original where that is the whole grid, else a slice.
  void Enqueue(CUstream stream, int64_t blocks) const;
  // Microseconds of these block tasks alone, the median of some batches. Blocks.
  double Time(int64_t blocks) const;
  PartSource source() const;  // refers to the recorded launch
  // Packed as in C, with room behind them: a parameter struct may end in padding.
  const void* arguments() const { return arguments_.data(); }

 private:
  void Load(TwinGpu& gpu, const cuda::Assembly& assembly);
  void KeepBits() const;
  void Launch(CUfunction function, const std::array<unsigned int, 3>& grid, CUstream stream,
              cuda::ParameterAddresses& addresses) const;

  TwinGpu& gpu_;
  std::unique_ptr<cuda::RecordedLaunch> recorded_;
  Candidate candidate_;
  double bytes_ = 0;
  Code code_;
  CUfunction slice_ = nullptr;
  cuda::ParameterLayout original_parameters_;
  cuda::ParameterLayout slice_parameters_;
  int worker_registers_ = 0;
  int blocks_per_sm_ = 0;  // of the original
  uint32_t claim_batch_ = 1;
  std::vector<uint8_t> arguments_;
};

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_PTX_LAUNCHABLE_H_
