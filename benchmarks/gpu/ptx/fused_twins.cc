#include "benchmarks/gpu/ptx/fused_twins.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <utility>

#include "benchmarks/gpu/ptx/on_threads.h"
#include "benchmarks/harness/failure.h"
#include "src/ptx/fused.h"

namespace gpushare::benchmarks {
namespace {

// Per cent of an SM's memory that serves as shared memory instead of L1 cache.
constexpr int kCarveOutMax = 100;

void MakeTwin(TwinGpu& gpu, const cuda::Assembly& assembly, const TwinsOfPair& pair,
              FusedTwinCode& twin) {
  const double begin_us = NowUs();
  const ptx::FusedTwin fused = FusedAt(pair.tensor->source(), pair.cuda->source(), twin.ratio);
  if (!fused.ok()) {
    twin.why_not = fused.refusal.message;
    return;
  }
  twin.layout = fused.layout;
  absl::StatusOr<Code> code = gpu.CodeOf(assembly, fused.text, "fused", fused.entry);
  if (!code.ok()) {
    twin.why_not = MessageOf(code.status());
    return;
  }
  twin.code = *std::move(code);
  twin.registers = gpu.AttributeOf(twin.code.function, CU_FUNC_ATTRIBUTE_NUM_REGS);
  if (twin.ratio.move_registers && static_cast<uint32_t>(twin.registers) != twin.layout.registers) {
    twin.why_not = "It has " + std::to_string(twin.registers) + " registers a thread and not the " +
                   std::to_string(twin.layout.registers) +
                   " of which it moves some: it would wait for ever.";
    return;
  }
  twin.spilled_bytes = gpu.AttributeOf(twin.code.function, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  twin.blocks_per_sm = gpu.BlocksPerSm(twin.code.function, static_cast<int>(twin.layout.threads),
                                       twin.dynamic_shared_bytes());
  // As compiled fused kernels do: an SM changes its split only when it is empty.
  (void)gpu.api().cuFuncSetAttribute(
      twin.code.function, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, kCarveOutMax);
  twin.made_ms = (NowUs() - begin_us) / 1e3;
  twin.why_not = twin.blocks_per_sm > 0 ? "" : "No block of it fits on an SM.";
}

}  // namespace

TwinsOfPair RatiosOf(const Launchable& tensor, const Launchable& cuda, const RatioBounds& bounds) {
  TwinsOfPair pair;
  pair.tensor = &tensor;
  pair.cuda = &cuda;
  PairRatios found = RatiosOfParts(tensor.source(), cuda.source(), bounds);
  pair.refusal = std::move(found.refusal);
  for (const ptx::FusedRatio& ratio : found.ratios) {
    FusedTwinCode twin;
    twin.ratio = ratio;
    twin.why_not = "No time was left to make it.";
    pair.twins.push_back(std::move(twin));
  }
  return pair;
}

void MakeTwins(TwinGpu& gpu, std::vector<TwinsOfPair>& pairs, int threads, double until_us) {
  struct Job {
    const TwinsOfPair* pair;
    FusedTwinCode* twin;
  };
  std::vector<Job> jobs;
  size_t ratios = 0;
  for (const TwinsOfPair& pair : pairs) ratios = std::max(ratios, pair.twins.size());
  for (size_t i = 0; i < ratios; ++i) {
    for (TwinsOfPair& pair : pairs) {
      if (i < pair.twins.size()) jobs.push_back({&pair, &pair.twins[i]});
    }
  }
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    const cuda::ScopedContext current(gpu.context());
    const std::unique_ptr<cuda::Assembly> assembly = gpu.MakeAssembly();
    while (NowUs() < until_us) {
      const size_t i = next.fetch_add(1);
      if (i >= jobs.size()) return;
      try {
        MakeTwin(gpu, *assembly, *jobs[i].pair, *jobs[i].twin);
      } catch (const std::exception& error) {
        jobs[i].twin->why_not = error.what();
      }
    }
  };
  OnThreads("making fused twins", threads, work);
}

}  // namespace gpushare::benchmarks
