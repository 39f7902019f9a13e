// A scenario: which LC and BE apps share a GPU, in which cases, under which policies.
//
// The schema, with the unit of each field, is docs/scenario-schema.md. A parsed scenario is checked
// in itself (names resolve, numbers are in range); whether the profile knows its kernels and the
// device can hold its quotas is checked by preflight.h.

#ifndef GPUSHARE_TOOLS_GPUSHARE_SCENARIO_SCENARIO_H_
#define GPUSHARE_TOOLS_GPUSHARE_SCENARIO_SCENARIO_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpushare::tool {

enum class ArrivalKind : uint8_t {
  kPeriodic,
  kSporadic,
  kPoisson,
  kGamma,
  kPhases,
  kBatches,
  kClosedLoop,
  kSteps,
  kAfterBe,
  kExplicit,
  kTrace,
};

// A stretch of time in which the rate of a Poisson stream goes from `rate` to `end_rate` in a
// straight line. Rates are relative: the mean over all phases is the app's load.
struct ArrivalPhase {
  int64_t duration_ns = 0;  // mean, where the lengths are random
  double rate = 0;
  double end_rate = 0;
};

// An engine: one client whose steps follow each other after gaps, in busy periods. The case's load
// is the share of time of these, their gaps included; silences between them are exponential.
struct StepsSpec {
  int64_t gap_ns_min = 0;
  int64_t gap_ns_max = 0;
  int64_t busy_ns_min = 0;
  int64_t busy_ns_max = 0;
  bool stated = false;  // each step states what follows it
};

struct ArrivalSpec {
  ArrivalKind kind = ArrivalKind::kPoisson;
  int64_t period_ns = 0;             // sporadic: the app's, least gap of two jobs
  double jitter = 0;                 // sporadic: of a period, the most by which a gap is longer
  double cv = 1;                     // gamma: coefficient of variation of the gaps
  std::vector<ArrivalPhase> phases;  // phases (and on_off, which is two of them), round and round
  bool random_phases = false;        // phases: exponential lengths, and the next one is any other
  double batch_size = 1;             // batches: mean number of queries in one
  int clients = 1;                   // closed_loop
  int64_t think_ns = 0;              // closed_loop: mean time from an answer to the next request
  bool random_think = false;         // closed_loop: exponential instead of fixed
  StepsSpec steps;
  int64_t after_ns = 0;           // after_be: from the begin of a round's BE tasks to the query
  int64_t pause_ns = 0;           // after_be: between two rounds
  std::vector<int64_t> times_ns;  // explicit, ascending
  bool scaled = true;             // explicit and trace: stretched to the load
  std::string path;               // trace: as written; variables and the folder resolve at load
  std::string time_column;  // trace: header of the column or key of a JSON line; empty: the first
  int64_t time_unit_ns = 1'000'000'000;  // trace: of a time that is a number
};

enum class CopyDirection : uint8_t { kNone = 0, kHostToDevice = 1, kDeviceToHost = 2 };

// One task of a query or of a BE app's loop: a registered kernel or graph, or a copy.
struct WorkItem {
  std::string kernel;       // empty for a copy
  int64_t block_tasks = 0;  // kernels; 0 for graphs
  CopyDirection direction = CopyDirection::kNone;
  int64_t bytes = 0;
  bool pinned = true;

  bool is_copy() const { return direction != CopyDirection::kNone; }
  // What one task counts as work: block tasks, bytes, or 1 for a graph.
  double work() const {
    if (is_copy()) return static_cast<double>(bytes);
    return block_tasks > 0 ? static_cast<double>(block_tasks) : 1.0;
  }
};

inline constexpr int64_t kNoYieldLimit = -1;

// A heavier model for a while: each of `queries` counted queries from first_query on runs the app's
// tasks `passes` times in a row.
struct ModelSwap {
  int64_t first_query = 0;
  int64_t queries = 0;  // 0: none
  int passes = 1;

  int PassesOf(int64_t query) const {
    return query >= first_query && query - first_query < queries ? passes : 1;
  }
};

struct JobWorstCase {
  int sms = 0;
  int64_t ns = 0;
};

// What a periodic app states of its jobs, each of which is a query (docs/partition-planner.md).
struct RealTimeSpec {
  int64_t period_ns = 0;  // 0: the app is not periodic
  int64_t deadline_ns = 0;
  std::vector<JobWorstCase> worst_cases;  // in ascending SMs
  int64_t job_eviction_ns = 0;            // 0: a job runs to its end
  double neighbour_factor = 1;

  bool IsPeriodic() const { return period_ns > 0; }
};

struct LcApp {
  std::string name;
  std::vector<WorkItem> tasks;  // of one query, in order
  ArrivalSpec arrivals;
  double share = 1;               // of a case's load, over the sum of the shares
  double p99_bound = 0;           // on p99 over p99 alone, 0: none
  double p50_bound = 0;           // on p50 over p50 alone, 0: none
  int64_t target_ns = 0;          // absolute, 0: none
  double target_solo_factor = 0;  // absolute target as a multiple of the query alone, 0: none
  int reserve_capsms = 0;         // for the policies in reservation_policies
  bool packed = false;
  int64_t solo_ns = 0;       // of one query alone; 0: measured before the first run
  int priority = 0;          // among the LC apps; higher goes first
  int64_t yield_ns_max = 0;  // 0: it does not yield; kNoYieldLimit: without a limit
  int queues = 1;            // which its queries take in turn
  ModelSwap swap;
  RealTimeSpec real_time;
};

struct BeApp {
  std::string name;
  std::vector<WorkItem> tasks;  // submitted in turn, over and over
  int queues = 1;
  int depth = 4;  // tasks kept pending on each queue
  int quota_capsms = 0;
  bool packed = false;
  double weight = 1;
};

struct Case {
  std::string name;
  std::vector<int> lc;  // indices into Scenario::lc
  std::vector<int> be;
  double load = 0;       // of all LC apps together; 0: every app is a closed loop or unscaled
  double p99_bound = 0;  // overrides those of the apps; 0: does not
  double p50_bound = 0;  // the same
  int64_t queries = 0;   // overrides the scenario's, 0: does not
  std::vector<std::string> policies;  // overrides the scenario's, empty: does not
};

// How the policy `partitioned` plans for the periodic apps of a case.
struct PartitionSpec {
  bool share = false;             // apps may share a partition
  int64_t slack_eviction_ns = 0;  // 0: BE work stays away from idle partitions
  int reserved_sms = 0;
};

// A fused kernel of two kernels, for the policies that fuse.
struct FusedPair {
  std::string name;
  std::string tensor;
  std::string cuda;
  int tensor_blocks = 1;  // in one fused block
  int cuda_blocks = 1;
  double load_ratio = 0;      // the opportune one; 0: the profile's, else 1
  double duration_ratio = 0;  // of the fused kernel there, over the Tensor-core part's; 0: likewise
};

struct Scenario {
  std::string name;
  std::string description;
  std::string file;     // where it was read from
  std::string profile;  // path, as found (files.h, ProfilePlaces); empty: the library's own
  std::vector<std::string> profile_places;  // where it was searched, in order
  uint64_t seed = 1;
  int64_t queries = 0;      // of each LC app; 0: 3000, or without limit when there is a duration
  int64_t duration_ns = 0;  // device time in which queries arrive; 0: until `queries`
  int64_t be_alone_ns = 1'000'000'000;  // device time over which a BE app's solo rate is taken
  std::vector<std::string> policies;
  std::vector<std::string> target_policies;       // those that are told absolute targets
  std::vector<std::string> reservation_policies;  // policies that get quotas and reservations
  std::vector<LcApp> lc;
  std::vector<BeApp> be;
  std::vector<FusedPair> fused;
  PartitionSpec partitions;
  std::vector<Case> cases;
  std::string traced_case;    // empty: the first
  std::string traced_policy;  // empty: adaptive when it runs, else the first policy
  uint64_t digest = 0;        // FNV-1a of the text
};

// Threads: any. Throws InputError with one sentence. `file` names the text in errors; relative
// paths start at its folder.
Scenario ParseScenario(std::string_view text, const std::string& file);
// As parsed, and the profile is there.
Scenario LoadScenario(const std::string& file);
// InputError with the places searched when the scenario names a profile that is nowhere.
void RequireProfile(const Scenario& scenario);

// Whether the policy gets a plan of partitions for these apps.
bool HasPartitions(const Scenario& scenario, const std::vector<int>& lc, const std::string& policy);

// Whether the times of these arrivals depend on the case's load.
bool FollowsLoad(const ArrivalSpec& spec);
// Whether answers, or BE tasks, cause them, so that they are made while running.
bool FollowsAnswers(const ArrivalSpec& spec);

uint64_t Fnv1a(std::string_view text);

// Whether an entry of `list` names `policy`: the entries "adaptive" and "adaptive:evict" both name
// "adaptive:evict".
bool ListNamesPolicy(const std::vector<std::string>& list, const std::string& policy);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_SCENARIO_SCENARIO_H_
