// What a prediction of the Markov model costs: a pair solved, as in the paper and with pipes, a
// pair from the cache, and the inputs of one kernel from its pre-run. Goals: 50 us for a pair, 100
// ns from the cache.

#include <benchmark/benchmark.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <memory>

#include "src/models/markov/co_schedule.h"
#include "src/models/markov/pair_cache.h"
#include "src/models/markov/pipes/pipe_pair.h"
#include "src/models/markov/pipes/pre_run.h"

namespace gpushare::models::markov {
namespace {

// An SM of four schedulers and 64 warps: 16 warps a scheduler, 8 of each kernel, 81 states.
constexpr GpuShape kGpu = {.sms = 132,
                           .schedulers_per_sm = 4,
                           .warps_per_sm = 64,
                           .blocks_per_sm = 32,
                           .registers_per_sm = 65536,
                           .shared_bytes_per_sm = 233472,
                           .clock_hz = 1.98e9,
                           .bandwidth_bytes_per_s = 4.8e12,
                           .latency_cycles = 600};
constexpr KernelCounters kCompute = {
    .instructions_per_block = 4000, .memory_share = 0.002, .warps_per_block = 8};
constexpr KernelCounters kMemory = {
    .instructions_per_block = 1000, .memory_share = 0.2, .warps_per_block = 8};

void PredictAPair(benchmark::State& state, Unit unit, double uncoalesced_share) {
  const auto workspace = std::make_unique<ChainWorkspace>();
  KernelCounters memory = kMemory;
  memory.uncoalesced_share = uncoalesced_share;
  std::array<Side, 2> sides = {{{kCompute, 4, 1e4}, {memory, 4, 1e4}}};
  for (auto _ : state) {
    benchmark::DoNotOptimize(sides);
    const PairPrediction pair = PredictPair(kGpu, sides, unit, *workspace);
    if (!pair.known) std::abort();
    benchmark::DoNotOptimize(pair);
  }
}

void PairOfWarps(benchmark::State& state) { PredictAPair(state, Unit::kWarp, 0); }
void PairOfBlocks(benchmark::State& state) { PredictAPair(state, Unit::kBlock, 0); }
void PairWithBothAccesses(benchmark::State& state) { PredictAPair(state, Unit::kWarp, 0.5); }

core::KernelCounters Counted(double issue, double special, double dram) {
  core::KernelCounters counters;
  counters.instructions = 4000;
  counters.memory_instructions = 400;
  counters.issue = issue;
  counters.alu = 0.3;
  counters.special = special;
  counters.l1 = 0.2;
  counters.l2 = dram;
  counters.dram = dram;
  return counters;
}

CalibratedKernel OfPreRun(const core::KernelCounters& counters, ChainWorkspace& workspace) {
  return Calibrate(MakePreRun(counters, 0.4, 8, 8, 4), workspace);
}

void PairWithPipes(benchmark::State& state) {
  const auto workspace = std::make_unique<ChainWorkspace>();
  const std::array<CalibratedKernel, 2> kernels = {OfPreRun(Counted(0.6, 0.9, 0.1), *workspace),
                                                   OfPreRun(Counted(0.1, 0.2, 0.9), *workspace)};
  std::array<Side, 2> sides = {{{kCompute, 4, 1e4}, {kMemory, 4, 1e4}}};
  for (auto _ : state) {
    benchmark::DoNotOptimize(sides);
    const PairPrediction pair = PredictPairWithPipes(kGpu, sides, kernels, {}, *workspace);
    if (!pair.known) std::abort();
    benchmark::DoNotOptimize(pair);
  }
}

void InputsOfAPreRun(benchmark::State& state) {
  const auto workspace = std::make_unique<ChainWorkspace>();
  core::KernelCounters counters = Counted(0.6, 0.9, 0.1);
  for (auto _ : state) {
    benchmark::DoNotOptimize(counters);
    const CalibratedKernel kernel = OfPreRun(counters, *workspace);
    if (!kernel.known) std::abort();
    benchmark::DoNotOptimize(kernel);
  }
}

// Half of the cache's pairs, in turn and in both orders.
void CachedPair(benchmark::State& state) {
  constexpr uint32_t kPairs = kCacheSets * kCacheWays / 2;
  const auto cache = std::make_unique<PairCache>();
  for (uint32_t i = 0; i < kPairs; ++i) {
    cache->Insert({i, 4, 1000}, {i + 1, 4, 1000}, PairPrediction{.known = true});
  }
  uint32_t i = 0;
  uint64_t found = 0;
  for (auto _ : state) {
    const SideKey low = {i, 4, 1000};
    const SideKey high = {i + 1, 4, 1000};
    const PairPrediction* const pair = i % 2 == 0 ? cache->Find(low, high) : cache->Find(high, low);
    benchmark::DoNotOptimize(pair);
    found += pair != nullptr ? 1U : 0U;
    i = (i + 1) % kPairs;
  }
  state.counters["found"] = static_cast<double>(found) / static_cast<double>(state.iterations());
}

BENCHMARK(PairOfWarps)->Unit(benchmark::kMicrosecond);
BENCHMARK(PairOfBlocks)->Unit(benchmark::kMicrosecond);
BENCHMARK(PairWithBothAccesses)->Unit(benchmark::kMicrosecond);
BENCHMARK(PairWithPipes)->Unit(benchmark::kMicrosecond);
BENCHMARK(InputsOfAPreRun)->Unit(benchmark::kMicrosecond);
BENCHMARK(CachedPair);

}  // namespace
}  // namespace gpushare::models::markov

BENCHMARK_MAIN();
