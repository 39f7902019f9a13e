// What is placed: GPUs, LC apps of which each replica takes a GPU, and BE apps that go beside them
// or on GPUs of their own.
//
// A pair is an LC app's kind at a load beside a BE app's kind. What it does stands in rows, stated
// or measured (pair_table.h), or comes from the cost model (cost_model_pairs.h).
//
// Threads: any.

#ifndef GPUSHARE_SRC_MODELS_PLACEMENT_CLUSTER_H_
#define GPUSHARE_SRC_MODELS_PLACEMENT_CLUSTER_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace gpushare::models::placement {

// GPUs of one model and memory; the fifth of group 'a' is 'a:4'.
struct GpuGroup {
  std::string name;
  int64_t memory_bytes = 0;
  int32_t count = 1;
};

struct LcApp {
  std::string name;
  std::string kind;
  double load = 0;           // share of the time that its queries take alone, of one replica
  int64_t memory_bytes = 0;  // of a replica
  double p99_bound = 0;      // over its p99 alone; 0: none
  int64_t target_ns = 0;     // on the p99; 0: none
  int64_t p99_alone_ns = 0;  // needed with a target
  int32_t replicas = 1;      // on one GPU each
};

struct BeApp {
  std::string name;
  std::string kind;
  int64_t memory_bytes = 0;  // of an instance
  double weight = 1;         // share of the BE time among instances that run at once
  int32_t instances = 1;
};

// An LC kind at a load beside a BE kind, alone with it on a GPU.
struct PairRow {
  std::string lc;
  std::string be;
  double load = 0;
  double p99_ratio = 1;  // of the LC app's p99 to its p99 alone
  double p99_error = 0;  // one error bar of it
  double be_rate = 0;    // BE throughput, over alone on the whole GPU
  double be_error = 0;
};

// What runs already.
struct Running {
  std::string gpu;
  std::string app;
  int32_t instances = 1;
};

// One replica or instance that runs already, by indices: `app` counts LC apps, then BE apps.
struct RunningAt {
  int32_t gpu = 0;
  int32_t app = 0;
};

// What several BE instances on one GPU do (state.h).
enum class Together : uint8_t {
  kInTurns = 0,  // pair by pair, as in Baymax 7.6
  kAtOnce = 1,
};

struct Cluster {
  std::vector<GpuGroup> gpus;
  std::vector<LcApp> lc;
  std::vector<BeApp> be;
  std::vector<PairRow> pairs;
  std::vector<Running> running = {};
  std::vector<RunningAt> running_at = {};  // besides `running`
  int32_t be_per_gpu = 1;                  // most BE instances on a GPU
  Together together = Together::kInTurns;
};

// More are refused, so that a placement takes seconds and a few hundred megabytes.
inline constexpr int64_t kGpusMax = 100'000;
inline constexpr size_t kAppsMax = 100'000;          // LC and BE
inline constexpr int64_t kInstancesMax = 1'000'000;  // of all BE apps
inline constexpr size_t kKindsMax = 1'024;           // of LC apps, and as many of BE apps
inline constexpr size_t kPairRowsMax = 65'536;
inline constexpr int32_t kBePerGpuMax = 64;
inline constexpr int64_t kMemoryBytesMax = int64_t{1} << 50;
inline constexpr int64_t kTargetNsMax = int64_t{3600} * 1'000'000'000;
inline constexpr double kRatioMax = 1e6;

// INVALID_ARGUMENT: a value outside its range, a name twice, or an app or GPU that does not exist,
// with the value and the limit. What cannot be placed is not an error here.
absl::Status Check(const Cluster& cluster);

}  // namespace gpushare::models::placement

#endif  // GPUSHARE_SRC_MODELS_PLACEMENT_CLUSTER_H_
