#include "benchmarks/gpu/ptx/fused_runs.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "benchmarks/harness/failure.h"
#include "benchmarks/harness/quantiles.h"
#include "src/core/checks/claim_batch.h"
#include "src/cuda/driver/errors.h"

namespace gpushare::benchmarks {
namespace {

constexpr double kBatchUs = 2'000;
// From a launch to its first block, about.
constexpr double kStartUs = 5;
// A run that needs more launches to end has lost block tasks.
constexpr int kLaunchesMax = 50;

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace

FusedRuns::FusedRuns(TwinGpu& gpu, const Launchable& tensor, const Launchable& cuda, uint64_t seed)
    : gpu_(gpu),
      tensor_(tensor),
      cuda_(cuda),
      words_{PartWords(gpu), PartWords(gpu)},
      random_(seed) {}

Amounts FusedRuns::Whole() const {
  return {tensor_.recorded().block_tasks, cuda_.recorded().block_tasks};
}

int64_t FusedRuns::BlocksOf(const FusedTwinCode& twin, const Amounts& amounts) const {
  // As the scheduler's launcher does: no more fused blocks than have work, one beside for the
  // leader, and all of them resident.
  const int64_t useful = std::max(CeilDiv(amounts.tensor, twin.ratio.tensor_copies),
                                  CeilDiv(amounts.cuda, twin.ratio.cuda_copies));
  const int64_t holds = int64_t{gpu_.sms()} * twin.blocks_per_sm;
  return std::max<int64_t>(1, std::min(useful, holds - 1)) + 1;
}

void FusedRuns::EnqueueFused(const FusedTwinCode& twin, const Amounts& amounts, size_t counter) {
  const int64_t blocks = BlocksOf(twin, amounts);
  const auto header_of = [&](size_t part, const Launchable& launch, int64_t tasks,
                             uint32_t copies) {
    return words_[part].Header(
        launch.recorded().grid, tasks, counter,
        core::ClaimBatchOfLaunch(launch.claim_batch(), tasks, (blocks - 1) * copies));
  };
  std::array<gpushare_worker_launch, 2> headers = {
      header_of(0, tensor_, amounts.tensor, twin.ratio.tensor_copies),
      header_of(1, cuda_, amounts.cuda, twin.ratio.cuda_copies)};
  void* parameters[] = {&headers[0], const_cast<void*>(tensor_.arguments()), &headers[1],
                        const_cast<void*>(cuda_.arguments())};
  Require(
      GPUSHARE_CU(gpu_.api(), cuLaunchKernel(twin.code.function, static_cast<unsigned int>(blocks),
                                             1, 1, twin.layout.threads, 1, 1,
                                             static_cast<unsigned int>(twin.dynamic_shared_bytes()),
                                             gpu_.whole()[0], parameters, nullptr)));
}

void FusedRuns::Enqueue(Way way, const Amounts& amounts, const FusedTwinCode* twin, size_t number) {
  if (way == Way::kFused) return EnqueueFused(*twin, amounts, number);
  const std::array<CUstream, 2>& streams = way == Way::kPartition ? gpu_.halves() : gpu_.whole();
  tensor_.Enqueue(streams[0], amounts.tensor);
  cuda_.Enqueue(way == Way::kSerial ? streams[0] : streams[1], amounts.cuda);
}

double FusedRuns::Batch(Way way, const Amounts& amounts, const FusedTwinCode* twin, int repeats) {
  if (way == Way::kFused) {
    for (const PartWords& words : words_) words.ZeroCounters(gpu_.whole()[0]);
    gpu_.Await(gpu_.whole()[0]);
  }
  const double begin_us = NowUs();
  for (int i = 0; i < repeats; ++i) Enqueue(way, amounts, twin, static_cast<size_t>(i));
  if (way == Way::kPartition) {
    for (const CUstream stream : gpu_.halves()) gpu_.Await(stream);
  } else {
    for (const CUstream stream : gpu_.whole()) gpu_.Await(stream);
  }
  return (NowUs() - begin_us) / repeats;
}

void FusedRuns::Restore() {
  if (!tensor_.recorded().Restore() || !cuda_.recorded().Restore()) {
    Fail("The memory of a launch cannot be restored.");
  }
}

std::array<double, kWays> FusedRuns::Time(const Amounts& amounts, const FusedTwinCode* twin,
                                          int rounds) {
  static_assert(PartWords::kCounters >= 128, "a batch has at most 128 launches (RepeatsFor)");
  Restore();
  const int repeats = RepeatsFor(Batch(Way::kSerial, amounts, twin, 2), kBatchUs);
  std::array<std::vector<double>, kWays> times;
  // The first round only warms up.
  for (int round = -1; round < rounds; ++round) {
    for (const Way way : OrderOfRound(round + 1)) {
      if (way == Way::kFused && twin == nullptr) continue;
      if (way == Way::kPartition && !gpu_.has_halves()) continue;
      const double us = Batch(way, amounts, twin, round < 0 ? 1 : repeats);
      if (round >= 0) times[static_cast<size_t>(way)].push_back(us);
    }
  }
  std::array<double, kWays> medians = {};
  for (size_t i = 0; i < kWays; ++i) medians[i] = Median(std::move(times[i]));
  return medians;
}

double FusedRuns::TimeFused(const Amounts& amounts, const FusedTwinCode& twin, int rounds) {
  Restore();
  const int repeats = RepeatsFor(Batch(Way::kFused, amounts, &twin, 2), kBatchUs);
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    times.push_back(Batch(Way::kFused, amounts, &twin, repeats));
  }
  return Median(std::move(times));
}

gpushare_worker_completion FusedRuns::RecordOf(size_t part) const {
  const gpushare_worker_completion record = words_[part].Record();
  if (record.sequence != words_[part].sequence()) {
    Fail("A completion record has sequence " + std::to_string(record.sequence) +
         ", and the launch's is " + std::to_string(words_[part].sequence()) + ".");
  }
  return record;
}

void FusedRuns::CompareBits(const std::string& when) const {
  for (const Launchable* part : {&tensor_, &cuda_}) {
    const uint64_t differing = part->recorded().Differing();
    if (differing == 0) continue;
    Fail(part->recorded().kernel.name + " " + when + " differs in " + std::to_string(differing) +
         " bytes.");
  }
}

void FusedRuns::CheckBits(const FusedTwinCode& twin) { CheckEvictions(twin, 0, 0); }

EvictedRuns FusedRuns::CheckEvictions(const FusedTwinCode& twin, int evictions, double until_us) {
  const CUstream stream = gpu_.whole()[0];
  const Amounts whole = Whole();
  const std::array<int64_t, 2> all = {whole.tensor, whole.cuda};
  const bool evicts = evictions > 0;
  const double range_us = evicts ? kStartUs + TimeFused(whole, twin, 1) : 0;
  EvictedRuns result;
  const int64_t workers = BlocksOf(twin, whole);  // of one copy
  result.evictable = {
      IsEvictable(tensor_.candidate().alone_us, whole.tensor, workers * twin.ratio.tensor_copies),
      IsEvictable(cuda_.candidate().alone_us, whole.cuda, workers * twin.ratio.cuda_copies)};
  const auto wanted = [&] {
    return result.evictions < evictions || (evicts && (result.missed(0) || result.missed(1)));
  };
  do {
    Restore();
    for (const PartWords& words : words_) words.ZeroCounters(stream);
    gpu_.Await(stream);
    std::array<int64_t, 2> done = {};
    bool left = true;
    for (int launch = 0; left; ++launch) {
      if (launch == kLaunchesMax) Fail("Block tasks are never finished.");
      EnqueueFused(twin, whole, 0);
      // The first launches of a run lose one part; the last one runs to its end.
      const auto evicted = static_cast<size_t>(result.runs + launch) % 2;
      if (evicts && launch < 3) {
        const double at_us = NowUs() + range_us * static_cast<double>(random_() % 1000) / 1000;
        while (NowUs() < at_us) {
        }
        words_[evicted].Evict();
      }
      gpu_.Await(stream);
      left = false;
      for (size_t i = 0; i < words_.size(); ++i) {
        const gpushare_worker_completion record = RecordOf(i);
        done[i] += record.block_tasks_done;
        if (record.block_tasks_left == 0) continue;
        left = true;
        if (record.block_tasks_done == 0) continue;  // it had not begun
        ++result.evictions;
        ++result.of_part[i];
      }
    }
    ++result.runs;
    for (size_t i = 0; i < done.size(); ++i) {
      if (done[i] == all[i]) continue;
      Fail("A part executed " + std::to_string(done[i]) + " block tasks, and its grid has " +
           std::to_string(all[i]) + ".");
    }
    CompareBits(evicts ? "evicted in a fused twin" : "in a fused twin");
  } while (wanted() && NowUs() < until_us);
  return result;
}

}  // namespace gpushare::benchmarks
