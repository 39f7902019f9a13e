#include "benchmarks/gpu/ptx/fused_plan.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace gpushare::benchmarks {
namespace {

// DRAM of an H200: 4.8 TB/s. A kernel that moves its buffers at this share of it is bound by
// memory; what is read twice counts once, so that the share is low.
constexpr double kMemoryBytesPerUs = 0.35 * 4.8e6;
constexpr int kRepeatsMin = 4;
constexpr int kRepeatsMax = 128;

using Indices = std::vector<size_t>;

Indices OfKind(const std::vector<Candidate>& candidates, PartKind kind,
               const CandidateLimits& limits) {
  Indices found;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (candidates[i].kind == kind && IsLongEnough(candidates[i], limits)) found.push_back(i);
  }
  return found;
}

// One of each in turn, then what is left of the longer list.
Indices Interleaved(const Indices& a, const Indices& b) {
  Indices all;
  for (size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    if (i < a.size()) all.push_back(a[i]);
    if (i < b.size()) all.push_back(b[i]);
  }
  return all;
}

double TimeInNetwork(const Candidate& candidate) { return candidate.alone_us * candidate.calls; }

}  // namespace

const char* NameOf(PartKind kind) {
  switch (kind) {
    case PartKind::kGemm:
      return "gemm";
    case PartKind::kAttention:
      return "attention";
    case PartKind::kMemory:
      return "memory";
    case PartKind::kCompute:
      return "compute";
  }
  return "";
}

bool UsesTensorCores(std::string_view ptx) {
  return ptx.find("wgmma.mma_async") != std::string_view::npos ||
         ptx.find("mma.sync") != std::string_view::npos;
}

PartKind TensorKindOf(std::string_view source) {
  return source.find("attention") == std::string_view::npos ? PartKind::kGemm
                                                            : PartKind::kAttention;
}

PartKind OtherKindOf(double bytes, double alone_us) {
  return bytes >= kMemoryBytesPerUs * alone_us ? PartKind::kMemory : PartKind::kCompute;
}

bool IsLongEnough(const Candidate& candidate, const CandidateLimits& limits) {
  return candidate.alone_us >= limits.alone_us_min && candidate.blocks >= limits.blocks_min;
}

bool IsEvictable(double alone_us, int64_t block_tasks, int64_t workers) {
  return alone_us >= kEvictableUs && block_tasks > workers;
}

std::vector<PairChoice> ChoosePairs(const std::vector<Candidate>& candidates, size_t count,
                                    const CandidateLimits& limits) {
  const Indices tensor = Interleaved(OfKind(candidates, PartKind::kGemm, limits),
                                     OfKind(candidates, PartKind::kAttention, limits));
  const Indices cuda = Interleaved(OfKind(candidates, PartKind::kMemory, limits),
                                   OfKind(candidates, PartKind::kCompute, limits));
  std::vector<PairChoice> pairs;
  // Each turn shifts the second list by one: all pairs come, and none twice.
  for (size_t turn = 0; turn < cuda.size(); ++turn) {
    for (size_t i = 0; i < tensor.size() && pairs.size() < count; ++i) {
      pairs.push_back({tensor[i], cuda[(i + turn) % cuda.size()]});
    }
  }
  return pairs;
}

std::vector<PairChoice> ChooseNetworkPairs(const std::vector<Candidate>& candidates,
                                           size_t neighbours, const CandidateLimits& limits) {
  Indices cuda = OfKind(candidates, PartKind::kMemory, limits);
  std::stable_sort(cuda.begin(), cuda.end(), [&](size_t a, size_t b) {
    return TimeInNetwork(candidates[a]) > TimeInNetwork(candidates[b]);
  });
  cuda.resize(std::min(cuda.size(), neighbours));
  std::vector<PairChoice> pairs;
  for (const size_t tensor : OfKind(candidates, PartKind::kGemm, limits)) {
    for (const size_t other : cuda) pairs.push_back({tensor, other});
  }
  return pairs;
}

Amounts AmountsAt(double load_ratio, const Candidate& tensor, const Candidate& cuda) {
  Amounts amounts = {tensor.blocks, cuda.blocks};
  if (!(tensor.alone_us > 0) || !(cuda.alone_us > 0) || !(load_ratio > 0)) return amounts;
  const double whole = cuda.alone_us / tensor.alone_us;
  const auto part = [](int64_t blocks, double share) {
    return std::clamp<int64_t>(std::llround(static_cast<double>(blocks) * share), 1, blocks);
  };
  if (load_ratio <= whole) {
    amounts.cuda = part(cuda.blocks, load_ratio / whole);
  } else {
    amounts.tensor = part(tensor.blocks, whole / load_ratio);
  }
  return amounts;
}

const char* NameOf(Way way) {
  switch (way) {
    case Way::kSerial:
      return "serial";
    case Way::kCoResident:
      return "co_resident";
    case Way::kPartition:
      return "partition";
    case Way::kFused:
      return "fused";
  }
  return "";
}

std::array<Way, kWays> OrderOfRound(int round) {
  std::array<Way, kWays> order = {Way::kSerial, Way::kCoResident, Way::kPartition, Way::kFused};
  if (round % 2 != 0) std::reverse(order.begin(), order.end());
  return order;
}

double Gain(double fused_us, double other_us) {
  return fused_us > 0 && other_us > 0 ? 1 - fused_us / other_us : 0;
}

size_t IndexOfBest(const std::vector<double>& times) {
  size_t best = times.size();
  for (size_t i = 0; i < times.size(); ++i) {
    if (times[i] > 0 && (best == times.size() || times[i] < times[best])) best = i;
  }
  return best;
}

int RepeatsFor(double serial_us, double batch_us) {
  if (!(serial_us > 0)) return kRepeatsMin;
  const double repeats = std::min<double>(batch_us / serial_us, kRepeatsMax);
  return std::max(kRepeatsMin, static_cast<int>(repeats));
}

NetworkShare ShareThatGains(const std::vector<Candidate>& candidates,
                            const std::vector<NodeGain>& gains) {
  std::set<size_t> gaining;
  for (const NodeGain& node : gains) {
    if (node.gain >= kGainMin) gaining.insert(node.tensor);
  }
  NetworkShare share;
  for (size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& candidate = candidates[i];
    if (candidate.kind != PartKind::kGemm) continue;
    share.nodes += candidate.calls;
    share.us += TimeInNetwork(candidate);
    if (gaining.count(i) == 0) continue;
    share.nodes_that_gain += candidate.calls;
    share.us_that_gains += TimeInNetwork(candidate);
  }
  return share;
}

}  // namespace gpushare::benchmarks
