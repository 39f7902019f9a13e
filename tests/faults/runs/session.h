// One runtime with two LC and two BE apps, two queues each, and what they launch.
//
// Sequence: Open -> actions -> Shutdown -> checks -> Release. Threads: one.

#ifndef GPUSHARE_TESTS_FAULTS_RUNS_SESSION_H_
#define GPUSHARE_TESTS_FAULTS_RUNS_SESSION_H_

#include <gpushare/gpushare.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/faults/runs/ledger.h"
#include "tests/faults/runs/run_plan.h"

namespace gpushare::fault_runs {

struct Source {
  gpushare_queue* queue = nullptr;
  bool lc = false;
};

class Session {
 public:
  Session(Random& random, bool verbose) : random_(random), verbose_(verbose) {}

  // False: the device refused (out of memory, lost). Nothing was accepted, and Release is due.
  bool Open(const RunPlan& plan, const gpushare_runtime_options& options);
  // Random in its deadline; notes how late it ended.
  void Shutdown();
  // Every release must succeed.
  void Release();

  // The call's status is OK or one of the expected ones; anything else is a problem. Returns
  // whether it is OK.
  bool Call(const char* what, gpushare_status status,
            std::initializer_list<gpushare_status> expected);

  int64_t NowNs();
  // Once in a verbose run.
  void Say(const std::string& text);

  Random& random() { return random_; }
  Ledger& ledger() { return ledger_; }
  gpushare_runtime* runtime() const { return runtime_; }
  const std::vector<Source>& sources() const { return sources_; }
  const std::vector<gpushare_app*>& apps() const { return apps_; }
  gpushare_kernel* AnyLcKernel() { return lc_kernels_[random_.Below(std::ssize(lc_kernels_))]; }
  gpushare_kernel* AnyBeKernel() { return be_kernels_[random_.Below(std::ssize(be_kernels_))]; }
  const Source& AnySource() { return sources_[random_.Below(std::ssize(sources_))]; }
  bool stopping() const { return stopping_; }

 private:
  bool MakeKernels();
  void MakeApps();

  Random& random_;
  const bool verbose_;
  Ledger ledger_;
  gpushare_runtime* runtime_ = nullptr;
  std::vector<gpushare_app*> apps_;
  std::vector<Source> sources_;
  std::vector<gpushare_kernel*> lc_kernels_;
  std::vector<gpushare_kernel*> be_kernels_;
  bool clock_jumps_ = false;
  bool stopping_ = false;  // callbacks submit nothing more
};

}  // namespace gpushare::fault_runs

#endif  // GPUSHARE_TESTS_FAULTS_RUNS_SESSION_H_
