#include "benchmarks/gpu/ptx/launchable.h"

#include <algorithm>
#include <array>
#include <utility>

#include "benchmarks/harness/failure.h"
#include "benchmarks/harness/quantiles.h"
#include "src/core/checks/claim_batch.h"
#include "src/cuda/driver/errors.h"

namespace gpushare::benchmarks {
namespace {

// The largest alignment of a parameter struct's end.
constexpr size_t kPadding = 128;
constexpr int kTimedRounds = 5;
constexpr double kBatchUs = 1'000;

}  // namespace

Launchable::Launchable(TwinGpu& gpu, const cuda::Assembly& assembly, const RecordedFile& file)
    : gpu_(gpu), recorded_(Take(cuda::RecordedLaunch::Read(file.path))), bytes_(file.bytes) {
  const core::PtxCode& ptx = *recorded_->kernel.ptx();
  if (!ptx.worker.made()) Fail(recorded_->kernel.name + " has no twin. " + ptx.worker.refusal);
  arguments_ = recorded_->arguments;
  arguments_.resize(arguments_.size() + kPadding);
  Load(gpu, assembly);
  KeepBits();
  candidate_.name = file.name;
  candidate_.blocks = recorded_->block_tasks;
  candidate_.alone_us = Time(candidate_.blocks);
  const double resident = std::min<double>(static_cast<double>(candidate_.blocks),
                                           double{1} * blocks_per_sm_ * gpu.sms());
  claim_batch_ = core::PredictClaimBatch(candidate_.alone_us * 1e3 * resident /
                                         static_cast<double>(candidate_.blocks));
  candidate_.kind = UsesTensorCores(ptx.text) ? TensorKindOf(recorded_->source)
                                              : OtherKindOf(bytes_, candidate_.alone_us);
}

void Launchable::Load(TwinGpu& gpu, const cuda::Assembly& assembly) {
  const core::KernelDesc& kernel = recorded_->kernel;
  const core::PtxCode& ptx = *kernel.ptx();
  // Under the name that a registration gives these forms, so that both share the cache.
  code_ = Take(gpu.CodeOf(assembly, ptx.module, "original+worker+slice", ptx.entry));
  slice_ = Take(gpu.FunctionOf(code_, ptx.slice.entry));
  const CUfunction worker = Take(gpu.FunctionOf(code_, ptx.worker.entry));
  worker_registers_ = gpu.AttributeOf(worker, CU_FUNC_ATTRIBUTE_NUM_REGS);
  const auto blocks_of = [&](CUfunction function) {
    return gpu.BlocksPerSm(function, kernel.resources.threads_per_block,
                           kernel.resources.dynamic_shared_memory_bytes);
  };
  blocks_per_sm_ = blocks_of(code_.function);
  if (blocks_per_sm_ == 0 || blocks_of(slice_) == 0) {
    Fail("No block of " + kernel.name + " or of its slices fits on an SM.");
  }
  Require(original_parameters_.Read(gpu.api(), code_.function, 0, kernel.name));
  Require(slice_parameters_.Read(gpu.api(), slice_, 1, kernel.name));
}

void Launchable::KeepBits() const {
  for (const bool first : {true, false}) {
    if (!recorded_->Restore()) Fail(recorded_->kernel.name + ": its memory cannot be restored.");
    Enqueue(gpu_.whole()[0], recorded_->block_tasks);
    gpu_.Await(gpu_.whole()[0]);
    const bool same = first ? recorded_->KeepAsExpected() : recorded_->Differing() == 0;
    if (!same) Fail("The original of " + recorded_->kernel.name + " does not repeat its bits.");
  }
}

double Launchable::Time(int64_t blocks) const {
  const CUstream stream = gpu_.whole()[0];
  std::vector<double> us;
  int repeats = 1;
  for (int round = -1; round < kTimedRounds; ++round) {
    const double begin_us = NowUs();
    for (int i = 0; i < repeats; ++i) Enqueue(stream, blocks);
    gpu_.Await(stream);
    const double each_us = (NowUs() - begin_us) / repeats;
    if (round < 0) {
      repeats = RepeatsFor(each_us, kBatchUs);
    } else {
      us.push_back(each_us);
    }
  }
  return Median(std::move(us));
}

void Launchable::Launch(CUfunction function, const std::array<unsigned int, 3>& grid,
                        CUstream stream, cuda::ParameterAddresses& addresses) const {
  const core::KernelResources& block = recorded_->kernel.resources;
  Require(GPUSHARE_CU(gpu_.api(),
                      cuLaunchKernel(function, grid[0], grid[1], grid[2],
                                     static_cast<unsigned int>(block.threads_per_block), 1, 1,
                                     static_cast<unsigned int>(block.dynamic_shared_memory_bytes),
                                     stream, addresses.data(), nullptr)));
}

void Launchable::Enqueue(CUstream stream, int64_t blocks) const {
  std::array<unsigned int, 3> grid = {};
  for (size_t i = 0; i < grid.size(); ++i) grid[i] = static_cast<unsigned int>(recorded_->grid[i]);
  cuda::ParameterAddresses addresses;
  if (blocks >= recorded_->block_tasks) {
    original_parameters_.Fill(arguments_.data(), addresses);
    return Launch(code_.function, grid, stream, addresses);
  }
  gpushare_worker_launch header = {};
  header.block_count = static_cast<uint32_t>(blocks);
  header.grid_x = grid[0];
  header.grid_y = grid[1];
  header.grid_z = grid[2];
  header.claim_batch = 1;
  addresses[0] = &header;
  slice_parameters_.Fill(arguments_.data(), addresses);
  Launch(slice_, {header.block_count, 1, 1}, stream, addresses);
}

PartSource Launchable::source() const {
  const core::PtxCode& ptx = *recorded_->kernel.ptx();
  const core::KernelResources& block = recorded_->kernel.resources;
  return {.text = ptx.text,
          .entry = ptx.entry,
          .threads = block.threads_per_block,
          .dynamic_shared_bytes = block.dynamic_shared_memory_bytes,
          .registers = worker_registers_};
}

}  // namespace gpushare::benchmarks
