// What the benchmark of fused twins decides on the host: which recorded launches make a pair, how
// many block tasks give a load ratio, and what a measured time is worth. Numbers alone, without a
// GPU. Threads: any; pure functions.

#ifndef GPUSHARE_BENCHMARKS_GPU_PTX_FUSED_PLAN_H_
#define GPUSHARE_BENCHMARKS_GPU_PTX_FUSED_PLAN_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpushare::benchmarks {

// What bounds a recorded kernel; the first two use Tensor cores.
enum class PartKind : uint8_t { kGemm, kAttention, kMemory, kCompute };
const char* NameOf(PartKind kind);
inline bool IsTensor(PartKind kind) {
  return kind == PartKind::kGemm || kind == PartKind::kAttention;
}

// From the text and the function that it was compiled from.
bool UsesTensorCores(std::string_view ptx);
PartKind TensorKindOf(std::string_view source);
// Of a kernel that uses no Tensor cores: `bytes` are those of all its buffers.
PartKind OtherKindOf(double bytes, double alone_us);

// A recorded launch as the choice of pairs sees it.
struct Candidate {
  std::string name;
  PartKind kind = PartKind::kMemory;
  int64_t blocks = 0;
  double alone_us = 0;  // the original, alone
  double calls = 1;     // in one run of its network
};

// Indices of candidates.
struct PairChoice {
  size_t tensor = 0;
  size_t cuda = 0;
};

// Shorter launches and smaller grids do not fill the GPU: two of them side by side show nothing of
// how they share an SM.
struct CandidateLimits {
  double alone_us_min = 15;
  int64_t blocks_min = 132;
};
bool IsLongEnough(const Candidate& candidate, const CandidateLimits& limits);

// Whether evictions at random times must meet a part in the middle. A shorter one may end before
// the host's word reaches it, and where workers claim all block tasks at once none is left.
inline constexpr double kEvictableUs = 20;
bool IsEvictable(double alone_us, int64_t block_tasks, int64_t workers);

// Up to `count` pairs. Each kernel comes about as often as any other of its side, Tensor parts take
// turns between GEMMs and attention, the others between memory- and compute-bound; no pair twice.
std::vector<PairChoice> ChoosePairs(const std::vector<Candidate>& candidates, size_t count,
                                    const CandidateLimits& limits = {});

// Every GEMM with each of the network's `neighbours` memory-bound kernels that take the most of its
// time.
std::vector<PairChoice> ChooseNetworkPairs(const std::vector<Candidate>& candidates,
                                           size_t neighbours, const CandidateLimits& limits = {});

// Block tasks of both parts of which the second one's time alone over the first one's is about
// `load_ratio`; one of them is a whole grid.
struct Amounts {
  int64_t tensor = 1;
  int64_t cuda = 1;
};
Amounts AmountsAt(double load_ratio, const Candidate& tensor, const Candidate& cuda);

// How both parts are run, in the order of a round. Every other round goes backwards, so that what
// drifts meets all ways alike.
enum class Way : uint8_t { kSerial, kCoResident, kPartition, kFused };
inline constexpr size_t kWays = 4;
const char* NameOf(Way way);
std::array<Way, kWays> OrderOfRound(int round);

// The time saved, as a part of the other way's. Negative: lost. 0 where either was not measured.
double Gain(double fused_us, double other_us);

// Of times of twins, 0 where one was not measured: the index of the least; `times.size()`: none.
size_t IndexOfBest(const std::vector<double>& times);

// How often a batch repeats both parts, so that it takes about `batch_us`.
int RepeatsFor(double serial_us, double batch_us);

// Which part of a network's GEMM nodes gains.
struct NodeGain {
  size_t tensor = 0;  // of candidates
  double gain = 0;    // the best of its pairs
};
struct NetworkShare {
  double nodes = 0;
  double nodes_that_gain = 0;
  double us = 0;  // of all nodes alone
  double us_that_gains = 0;
};
inline constexpr double kGainMin = 0.02;  // two runs of one program differ by less
NetworkShare ShareThatGains(const std::vector<Candidate>& candidates,
                            const std::vector<NodeGain>& gains);

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_GPU_PTX_FUSED_PLAN_H_
