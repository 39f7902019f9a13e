// Judges Kernelet's Markov model by measured pairs and by the counted IPC of single kernels: its
// line of memory latency is fitted to the training pairs of ten kernels, and every held-out pair is
// judged. States of warps and of blocks, and each way to count uncoalesced accesses, are judged
// apart.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/models/evaluation/counted_kernels.h"
#include "src/models/evaluation/judged.h"
#include "src/models/evaluation/shared_sm_report.h"
#include "src/models/markov/chain.h"
#include "src/models/markov/counters.h"
#include "src/models/samples/row_times.h"

namespace gpushare::models {
namespace {

constexpr int32_t kSchedulers = 4;
constexpr int32_t kThreadsOfWarp = 32;
constexpr double kSectorsOfRequest = 4;  // 128 bytes
// Requests of an access whose 32 threads each read a sector of their own.
constexpr double kScattered = 8;
// Kernels whose training pairs fit the line: those with the most of them.
constexpr size_t kFittedKernels = 10;

// The line of memory latency.
struct Line {
  double latency_cycles = 600;  // L0
  double slope = 1;             // a0
  double offset = 0;            // b0
};

// Kernelet's limits of registers and shared memory are left out: the workers were resident.
markov::GpuShape ShapeOf(const std::map<std::string, CountedKernel>& kernels, int32_t sm_count) {
  std::vector<double> clocks;
  std::vector<double> bandwidths;
  for (const auto& [name, kernel] : kernels) {
    clocks.push_back(kernel.cycles_per_ns);
    // Of a kernel that hardly uses DRAM, the share is rounding.
    if (kernel.counters.dram > 0.5) {
      bandwidths.push_back(kernel.dram_bytes_per_ns / kernel.counters.dram);
    }
  }
  markov::GpuShape gpu;
  gpu.sms = sm_count;
  gpu.schedulers_per_sm = kSchedulers;
  gpu.clock_hz = Median(clocks) * 1e9;
  gpu.bandwidth_bytes_per_s = Median(bandwidths) * 1e9;
  return gpu;
}

// What sectors a request say of the accesses (Kernelet 4.4).
enum class Accesses : uint8_t {
  kAlike,      // all of a kernel's make as many requests as their mean
  kTwoKinds,   // coalesced and fully uncoalesced ones, mixed so that the mean is right
  kCoalesced,  // none is uncoalesced: Kernelet's figure 10
};

markov::KernelCounters CountersOf(const CountedKernel& kernel, Accesses accesses) {
  markov::KernelCounters counters;
  counters.instructions_per_block = kernel.counters.instructions;
  counters.memory_share =
      std::min(1.0, kernel.counters.memory_instructions / kernel.counters.instructions);
  const double requests = kernel.counters.sectors_per_request / kSectorsOfRequest;
  switch (accesses) {
    case Accesses::kAlike:
      counters.uncoalesced_share = requests > 1 ? 1 : 0;
      counters.uncoalesced_requests = std::clamp(requests, 1.0, 32.0);
      break;
    case Accesses::kTwoKinds:
      counters.uncoalesced_share = std::clamp((requests - 1) / (kScattered - 1), 0.0, 1.0);
      counters.uncoalesced_requests = kScattered;
      break;
    case Accesses::kCoalesced:
      counters.uncoalesced_share = 0;
      break;
  }
  counters.warps_per_block = std::max(1, kernel.threads_per_block / kThreadsOfWarp);
  return counters;
}

struct Variant {
  const char* model = "";
  markov::Unit unit = markov::Unit::kWarp;
  Accesses accesses = Accesses::kAlike;
};

// The first one fits the line. The scheduler asks by blocks.
constexpr std::array<Variant, 5> kVariants = {
    {{"Markov", markov::Unit::kWarp, Accesses::kAlike},
     {"Markov, blocks", markov::Unit::kBlock, Accesses::kAlike},
     {"Markov, two kinds of access", markov::Unit::kWarp, Accesses::kTwoKinds},
     {"Markov, two kinds of access, blocks", markov::Unit::kBlock, Accesses::kTwoKinds},
     {"Markov, all coalesced", markov::Unit::kWarp, Accesses::kCoalesced}}};

class Predictor {
 public:
  Predictor(const markov::GpuShape& gpu, const Line& line, const Variant& variant)
      : gpu_(gpu), variant_(variant) {
    gpu_.latency_cycles = line.latency_cycles;
    gpu_.contention_slope = line.slope;
    gpu_.contention_offset = line.offset;
  }

  // Null where the chain has no answer.
  std::optional<JudgedSharedSm> Judge(const SharedSm& shared) {
    const markov::ResidentKernel own = Resident(*shared.kernel, shared.row->workers_per_sm);
    const std::array<markov::ResidentKernel, 2> both = {
        own, Resident(*shared.neighbour, shared.row->neighbour_workers_per_sm)};
    const double together = Ipc(both);
    const double alone = IpcAlone(*shared.kernel);
    if (!(together > 0 && alone > 0)) return std::nullopt;
    return JudgedSharedSm{shared, together / alone, together / kSchedulers};
  }

  // With all workers that an SM holds; 0 where the chain has no answer.
  double IpcAlone(const CountedKernel& kernel) {
    const auto [found, is_new] = alone_.try_emplace(&kernel, 0);
    if (is_new) {
      const markov::ResidentKernel all = Resident(kernel, kernel.workers_per_sm_max);
      found->second = Ipc(std::span(&all, 1));
    }
    return found->second;
  }

 private:
  markov::ResidentKernel Resident(const CountedKernel& kernel, int32_t workers) const {
    return markov::MakeResident(gpu_, CountersOf(kernel, variant_.accesses), workers,
                                variant_.unit);
  }
  // Of the first kernel; 0 where the chain has no answer.
  double Ipc(std::span<const markov::ResidentKernel> kernels) {
    const markov::ChainIpc ipc = markov::SolveChain(markov::MakeVirtualSm(gpu_), kernels,
                                                    markov::kPlannedStatesMax, *workspace_);
    return ipc.known ? ipc.ipc[0] : 0;
  }

  markov::GpuShape gpu_;
  Variant variant_;
  std::unique_ptr<markov::ChainWorkspace> workspace_ = std::make_unique<markov::ChainWorkspace>();
  std::map<const CountedKernel*, double> alone_;
};

// Of the IPC, as a share of the peak.
double MeanDifference(Predictor& predictor, const std::vector<SharedSm>& rows, int32_t sm_count) {
  double sum = 0;
  for (const SharedSm& shared : rows) {
    const auto judged = predictor.Judge(shared);
    sum += std::abs((judged ? judged->ipc_share : 0) - MeasuredIpcShare(shared, sm_count));
  }
  return sum / static_cast<double>(rows.size());
}

// Training rows between the kernels that have the most of them.
std::vector<SharedSm> FittedRows(const std::vector<SharedSm>& rows) {
  std::map<std::string, int> counts;
  for (const SharedSm& shared : rows) {
    if (!shared.held_out) ++counts[shared.row->kernel];
  }
  std::vector<std::pair<int, std::string>> order;
  order.reserve(counts.size());
  for (const auto& [name, count] : counts) order.emplace_back(-count, name);
  std::sort(order.begin(), order.end());
  if (order.size() > kFittedKernels) order.resize(kFittedKernels);
  std::set<std::string> chosen;
  for (const auto& [count, name] : order) chosen.insert(name);
  std::vector<SharedSm> fitted;
  for (const SharedSm& shared : rows) {
    if (!shared.held_out && chosen.contains(shared.row->kernel) &&
        chosen.contains(shared.row->neighbour)) {
      fitted.push_back(shared);
    }
  }
  return fitted;
}

// One number of the line after the other, twice, over grids that hold every plausible value.
Line FitLine(const markov::GpuShape& gpu, const std::vector<SharedSm>& rows) {
  constexpr double kLatencies[] = {5, 10, 25, 50, 100, 200, 400, 600, 900};
  constexpr double kSlopes[] = {0, 0.1, 0.2, 0.4, 0.7, 1, 1.5, 2, 3, 5};
  constexpr double kOffsets[] = {0, 0.5, 1, 2, 4, 8, 16, 32};
  constexpr int kRounds = 2;
  Line best;
  double least = std::numeric_limits<double>::max();
  const auto attempt = [&](const Line& line) {
    Predictor predictor(gpu, line, kVariants[0]);
    const double difference = MeanDifference(predictor, rows, gpu.sms);
    if (difference >= least) return;
    least = difference;
    best = line;
  };
  for (int round = 0; round < kRounds; ++round) {
    for (const double latency : kLatencies) attempt({latency, best.slope, best.offset});
    for (const double slope : kSlopes) attempt({best.latency_cycles, slope, best.offset});
    for (const double offset : kOffsets) attempt({best.latency_cycles, best.slope, offset});
  }
  return best;
}

}  // namespace

void JudgeMarkov(const Samples& samples, std::vector<Judged>& out) {
  const std::map<std::string, CountedKernel> kernels = CountedKernels(samples);
  const std::vector<SharedSm> rows = SharedSms(samples, kernels);
  const std::vector<SharedSm> fitted = FittedRows(rows);
  const markov::GpuShape gpu = ShapeOf(kernels, samples.head.sm_count);
  if (fitted.empty() || !(gpu.bandwidth_bytes_per_s > 0)) return;
  const Line line = FitLine(gpu, fitted);
  for (const Variant& variant : kVariants) {
    Predictor predictor(gpu, line, variant);
    std::vector<JudgedSharedSm> judged;
    for (const SharedSm& shared : rows) {
      if (!shared.held_out) continue;
      if (const auto one = predictor.Judge(shared)) judged.push_back(*one);
    }
    ReportSpeeds(variant.model, judged, out);
    ReportIpc(variant.model, judged, samples.head.sm_count, out);
    ReportThroughput(variant.model, judged, out);
    for (const auto& [name, kernel] : kernels) {
      if (const double ipc = predictor.IpcAlone(kernel); ipc > 0) {
        out.push_back({"IPC of single kernels", variant.model, name, ipc / kSchedulers,
                       kernel.counters.issue});
      }
    }
  }
}

}  // namespace gpushare::models
