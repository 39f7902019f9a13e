// One LC app and one BE app on the GPU through the public C API, for reservations_test.cc. The LC
// app's queries are three kernels each; the BE app's tasks keep two queues filled. All blocks
// record their SM and their time.
//
// Threads: the test's own; the library has its scheduler thread. Every wait has a deadline.

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
};
const char* NameOf(Work work);

inline constexpr uint32_t kBeTag = 0;  // of BE blocks; queries have 1, 2, ...
inline constexpr int kDenseWorkersPerSm = 8;
inline constexpr int64_t kQueryNs = 1'500'000;  // what the kernels of a query spin

class Rig {
 public:
  // ok() is false, with the reason, where there is no GPU or something fails.
  Rig(const char* policy, Work work);
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

  struct Run {
    std::vector<BlockRecord> records;
    std::vector<int64_t> latencies_ns;  // one a query
    int64_t be_tasks = 0;               // complete before the last wait
  };
  // Both keep BE work submitted and then wait until it is complete; afterwards ok() is false if a
  // task or a query failed. RunQueries ends after `queries` queries. RunAlone sends none and ends
  // after `duration_ns`.
  Run RunQueries(int queries);
  Run RunAlone(int64_t duration_ns);

 private:
  bool Check(gpushare_status status);
  void Fail(gpushare_status status, const std::string& reason);
  void MakeApps();
  void MakeKernels();
  int64_t NowNs();
  gpushare_status Ask(gpushare_app* app, int32_t capsms, bool packed) const;
  // A query from submit to completion; 0: it failed.
  int64_t RunQuery(uint32_t tag, bool with_be);
  // Collects the BE tasks that are complete, and submits others in their place.
  void Feed();
  void IdleFor(int64_t duration_ns, bool with_be);
  Run Finish(std::vector<int64_t> latencies_ns);

  const Work work_;
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
  std::array<gpushare_ticket, 4> be_tickets_ = {};
  RecordParams be_params_ = {};
  int64_t be_tasks_ = 0;
  std::vector<int64_t> alone_ns_;
  std::mt19937 random_{1};
};

}  // namespace gpushare::cuda

#endif  // GPUSHARE_TESTS_CUDA_RESERVATIONS_RIG_H_
