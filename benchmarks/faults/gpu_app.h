// The application of a fault case: a runtime on the GPU with an LC and a BE app, healthy work whose
// answers are checked, and tasks that wait for a stated time.
//
// Every call that must succeed throws a Failure where it does not. Threads: as the C API.

#ifndef GPUSHARE_BENCHMARKS_FAULTS_GPU_APP_H_
#define GPUSHARE_BENCHMARKS_FAULTS_GPU_APP_H_

#include <atomic>
#include <cstdint>
#include <gpushare/gpushare.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/harness/failure.h"
#include "benchmarks/harness/gpu_kernels.h"
#include "benchmarks/soak/soak_work.h"

namespace gpushare::benchmarks {

constexpr int64_t kMs = 1'000'000;
constexpr int64_t kPatienceNs = 10'000 * kMs;

// Throws with `what` where the condition does not hold.
void Expect(bool condition, const std::string& what);

class GpuApp {
 public:
  struct Options {
    const char* policy = "adaptive";
    gpushare_drive drive = GPUSHARE_DRIVE_THREAD;
    int64_t hang_floor_ns = 0;
    double hang_factor = 0;
  };
  explicit GpuApp(const Options& options);
  GpuApp() : GpuApp(Options()) {}

  // A kernel of blocks that wait, as an ordinary grid; `solo_ns` is the hint given
  // to the library.
  Kernel WaitKernel(const std::string& name, int64_t solo_ns);
  // `wait` must live until the submit has returned.
  static TaskOptions WaitTask(const Kernel& kernel, const WaitParams& wait, int64_t blocks);

  // An LC query of a wait of 1 ms on every SM.
  Result<Ticket> TrySubmitQuery() const;
  Ticket SubmitQuery() const { return Take(TrySubmitQuery()); }
  // Latencies from the submit in ms, of n queries, one each period. Each must be OK.
  std::vector<double> RunQueries(int n, double period_ms);

  // BE work that can be evicted, alone about solo_ms long.
  std::unique_ptr<soak::Task> MakeBe(double solo_ms, uint32_t seed = 1);
  // Runs it once; its answer must be right.
  void RunBe(soak::Task& task);

  int64_t NowNs() const { return runtime.NowNs(); }
  CompletionRecord Finish(Ticket ticket, int64_t patience_ns = kPatienceNs);
  RuntimeStats Stats();
  // A query and a BE task are right: the device goes on.
  void ExpectHealthy();
  // Within its limit; the promise of every case. `status`: what it must answer.
  double ShutdownMs(int64_t limit_ns, gpushare_status status = GPUSHARE_OK);

  Runtime runtime;
  App lc_app;
  App be_app;
  Queue lc;
  Queue be;

 private:
  std::unique_ptr<soak::Work> work_;
  Kernel query_kernel_;
  int made_ = 0;
};

// BE tasks one after the other on a thread of its own, until it is stopped. Every answer is
// checked.
class BeLoop {
 public:
  BeLoop(GpuApp& app, double solo_ms);
  ~BeLoop();
  BeLoop(const BeLoop&) = delete;
  BeLoop& operator=(const BeLoop&) = delete;
  // The tasks that were done. Fails where one was wrong.
  int Stop();

 private:
  void Run();

  GpuApp& app_;
  std::unique_ptr<soak::Task> task_;
  std::atomic<bool> stop_{false};
  int done_ = 0;
  std::string error_;
  std::thread thread_;
};

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_FAULTS_GPU_APP_H_
