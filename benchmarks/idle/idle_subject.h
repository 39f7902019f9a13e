// What idle_benchmark measures: a runtime with its own scheduler thread, on the paced device
// (src/null/paced_device.h) or on a GPU through the C ABI.
//
// Threads: Submit and Wait from any; everything else from one. Errors: Failure.

#ifndef GPUSHARE_BENCHMARKS_IDLE_IDLE_SUBJECT_H_
#define GPUSHARE_BENCHMARKS_IDLE_IDLE_SUBJECT_H_

#include <cstdint>
#include <memory>
#include <string>

namespace gpushare::benchmarks {

// Durations alone on the device.
inline constexpr int64_t kQueryNs = 700'000;
inline constexpr int64_t kStepNs = 200'000;
inline constexpr int64_t kShortNs = 10'000;
inline constexpr int64_t kBeNs = 5'000'000;

enum class Job : uint8_t {
  kQuery,  // LC, kQueryNs
  kStep,   // LC, kStepNs
  kShort,  // LC, kShortNs on a GPU and no time on the paced device
  kBe,     // BE, kBeNs
};

struct SubjectOptions {
  bool spin = false;           // the latency mode of the runtime
  bool callers_sleep = false;  // a wait for LC work does not spin
};

class IdleSubject {
 public:
  virtual ~IdleSubject() = default;
  IdleSubject() = default;
  IdleSubject(const IdleSubject&) = delete;
  IdleSubject& operator=(const IdleSubject&) = delete;

  // `done(user)` runs on the scheduler's thread. `awaited`: a ticket that the task waits for, 0:
  // none. Returns the task's ticket if `with_ticket`, else 0.
  virtual uint64_t Submit(Job job, void (*done)(void*), void* user, bool with_ticket = false,
                          uint64_t awaited = 0) = 0;
  // Launches the query's kernel without the library, and returns what the call took; 0 where there
  // is nothing to launch.
  virtual int64_t LaunchBare() = 0;
  // Blocks until the ticket is complete, and releases it.
  virtual void Wait(uint64_t ticket) = 0;
  // Submits an LC task and blocks until it is complete, as a caller without a ticket does.
  virtual void RunLc(Job job) = 0;
  // A region of a third app, whose tickets complete when it ends.
  virtual uint64_t BeginRegion() = 0;
  virtual void EndRegion(uint64_t region) = 0;
  virtual void Drain() = 0;
};

std::unique_ptr<IdleSubject> MakePacedSubject(const SubjectOptions& options);
// In a build without CUDA: Failure with kNoGpu.
std::unique_ptr<IdleSubject> MakeCudaSubject(const SubjectOptions& options);
// "" in a build without CUDA.
std::string GpuModel();

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_IDLE_IDLE_SUBJECT_H_
