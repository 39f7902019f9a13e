// One LC app and one BE app on the GPU through the public C API, for reservations_test.cc and
// reservations_fused_test.cc. The LC app's queries are three kernels each; the BE app's tasks keep
// two queues filled. All blocks record their SM and their time. On the simulated device the same
// work runs in virtual time, and nothing records.
//
// Threads: the test's own; on a GPU the library has its scheduler thread. Every wait has a
// deadline.

#ifndef GPUSHARE_TESTS_CUDA_RESERVATIONS_RIG_H_
#define GPUSHARE_TESTS_CUDA_RESERVATIONS_RIG_H_

#include <gpushare/gpushare.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "tests/cuda/reservations_kernels.h"

namespace gpushare::cuda {

// What the BE app submits.
enum class Work : uint8_t {
  kWorkers,       // evictable, declared with one worker an SM: a worker holds one CapSM
  kDenseWorkers,  // evictable, eight workers an SM
  kSegments,      // a graph
  kFixed,         // an ordinary grid that nothing confines
  kFused,         // as kWorkers, and a fused kernel with the LC app's
  kDenseFused,    // three workers an SM, and a fused kernel that has as many
};
const char* NameOf(Work work);
// With such work the device is not split, and the LC app has a target in place of a bound.
bool IsFusedWork(Work work);

inline constexpr uint32_t kBeTag = 0;  // of BE blocks; queries have 1, 2, ...
inline constexpr int kDenseWorkersPerSm = 8;
inline constexpr int kDenseFusedWorkersPerSm = 3;
inline constexpr int kKernelsPerQuery = 3;
inline constexpr int64_t kQueryNs = 1'500'000;       // what the kernels of a query spin
inline constexpr int64_t kFusedQueryNs = 3'000'000;  // the same with fused work
inline constexpr int64_t kFusedTargetNs = 20'000'000;

class Rig {
 public:
  // `device`: "cuda" or "sim". ok() is false, with the reason, where there is no GPU or something
  // fails.
  Rig(const char* policy, Work work, const char* device = "cuda");
  ~Rig();
  Rig(const Rig&) = delete;
  Rig& operator=(const Rig&) = delete;

  bool ok() const { return status_ == GPUSHARE_OK; }
  bool has_no_gpu() const { return runtime_ == nullptr && status_ == GPUSHARE_UNAVAILABLE; }
  const std::string& reason() const { return reason_; }
  int sms() const { return sms_; }
  // Of queries while there was no BE work.
  const std::vector<int64_t>& alone_ns() const { return alone_ns_; }

  gpushare_status Reserve(int32_t capsms, bool packed) { return Ask(lc_app_, capsms, packed); }
  gpushare_status Quota(int32_t capsms, bool packed) { return Ask(be_app_, capsms, packed); }
  gpushare_status SubmitBe(size_t queue, gpushare_ticket* ticket) const;

  // The last kernel of a query while a burst of others arrived, by the library's clock.
  struct Burst {
    uint32_t tag = 0;       // of the kernel's blocks
    bool fused = false;     // it shared its launch
    int64_t start_ns = 0;   // of the kernel
    int64_t before_ns = 0;  // the burst was about to be submitted
    int64_t after_ns = 0;   // all of it was submitted
  };
  struct Run {
    std::vector<BlockRecord> records;   // none on the simulated device
    std::vector<int64_t> latencies_ns;  // one a query
    int64_t fused_kernels = 0;          // LC kernels that shared their launch
    int64_t be_tasks = 0;               // complete before the last wait
    int64_t be_block_tasks = 0;         // of all BE tasks
    int64_t lc_block_tasks = 0;         // of all queries
    std::vector<Burst> bursts;
  };
  // All keep BE work submitted and then wait until it is complete; afterwards ok() is false if a
  // task or a query failed. RunQueries ends after `queries` queries. RunAlone sends none and ends
  // after `duration_ns`. RunBursts sends `bursts` queries, and kBurstQueries more at once while the
  // last kernel of each one runs: they cannot all meet the target.
  Run RunQueries(int queries);
  Run RunAlone(int64_t duration_ns);
  Run RunBursts(int bursts);
  static constexpr int kBurstQueries = 12;

 private:
  bool Check(gpushare_status status);
  void Fail(gpushare_status status, const std::string& reason);
  void MakeApps();
  void MakeKernels();
  void RegisterLc(const gpushare_kernel_variants& made);
  void RegisterBe(const gpushare_kernel_variants& made);
  void RegisterPair();
  int64_t NowNs();
  // Lets time pass.
  void Pass(int64_t us);
  gpushare_status Ask(gpushare_app* app, int32_t capsms, bool packed) const;
  int64_t query_ns() const { return IsFusedWork(work_) ? kFusedQueryNs : kQueryNs; }
  int64_t BeBlockTasks() const;
  bool IsComplete(gpushare_ticket ticket);
  // Its completion record. Releases the ticket.
  gpushare_completion_record Take(gpushare_ticket ticket);
  gpushare_completion_record TakeLc(gpushare_ticket ticket);
  // The tickets of its kernels; each kernel's blocks have their own tag, from first_tag on.
  std::array<gpushare_ticket, kKernelsPerQuery> SubmitQuery(uint32_t first_tag);
  // A query from submit to completion; 0: it failed.
  int64_t RunQuery(uint32_t first_tag, bool with_be);
  Burst RunBurst(uint32_t first_tag);
  // False, after Fail, if it does not complete in time.
  bool WaitFor(gpushare_ticket ticket, bool with_be);
  // Collects the BE tasks that are complete, and submits others in their place.
  void Feed();
  void IdleFor(int64_t duration_ns, bool with_be);
  void IdleUntilBeTaskEnds();
  Run Finish();

  const Work work_;
  const bool simulated_;
  gpushare_status status_ = GPUSHARE_OK;
  std::string reason_;
  int sms_ = 0;
  BlockLog log_ = {};
  void* graph_ = nullptr;
  gpushare_runtime* runtime_ = nullptr;
  gpushare_app* lc_app_ = nullptr;
  gpushare_app* be_app_ = nullptr;
  gpushare_queue* lc_queue_ = nullptr;
  std::array<gpushare_queue*, 2> be_queues_ = {};
  gpushare_kernel* lc_kernel_ = nullptr;
  gpushare_kernel* be_kernel_ = nullptr;
  gpushare_fused_kernel* pair_ = nullptr;
  std::array<gpushare_ticket, 4> be_tickets_ = {};
  RecordParams be_params_ = {};
  int lc_blocks_ = 0;
  Run run_;  // under way
  std::vector<int64_t> alone_ns_;
  std::mt19937 random_{1};
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_TESTS_CUDA_RESERVATIONS_RIG_H_
