// Judges the chain with pipes (src/models/markov/pipes) by held-out pairs, one addition after the
// other: inputs from a pre-run, pipes, older kernels first.

#include <array>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "src/models/evaluation/counted_kernels.h"
#include "src/models/evaluation/judged.h"
#include "src/models/evaluation/shared_sm_report.h"
#include "src/models/markov/chain.h"
#include "src/models/markov/pipes/pipe_chain.h"
#include "src/models/markov/pipes/pre_run.h"

namespace gpushare::models {
namespace {

constexpr int32_t kSchedulers = 4;
constexpr double kThreadsOfWarp = 32;

struct Addition {
  const char* model = "";
  bool pipes = true;
  markov::Arbitration arbitration;
};

constexpr std::array<Addition, 3> kAdditions = {{{"Markov, pre-run", false, {1, 1}},
                                                 {"Markov, pipes", true, {1, 1}},
                                                 {"Markov, older first", true, {}}}};

class PipePredictor {
 public:
  explicit PipePredictor(const Addition& addition) : addition_(addition) {}

  // Null where the chain has no answer. The timed kernel of a row came last.
  std::optional<JudgedSharedSm> Judge(const SharedSm& shared) {
    const std::array<markov::PipeResident, 2> oldest_first = {
        Resident(*shared.neighbour, shared.row->neighbour_workers_per_sm),
        Resident(*shared.kernel, shared.row->workers_per_sm)};
    const markov::ChainIpc ipc =
        markov::SolvePipeChain(1, oldest_first, addition_.arbitration, *workspace_);
    const double alone = Calibrated(*shared.kernel).ipc_alone;
    if (!ipc.known || !(ipc.ipc[1] > 0 && alone > 0)) return std::nullopt;
    return JudgedSharedSm{shared, ipc.ipc[1] / alone, ipc.ipc[1]};
  }

 private:
  static double WarpsPerUnit(const CountedKernel& kernel) {
    return kernel.threads_per_block / kThreadsOfWarp / kSchedulers;
  }
  markov::PipeResident Resident(const CountedKernel& kernel, int32_t workers) {
    return {Calibrated(kernel).kernel, workers, WarpsPerUnit(kernel)};
  }
  const markov::CalibratedKernel& Calibrated(const CountedKernel& kernel) {
    const auto [found, is_new] = kernels_.try_emplace(&kernel);
    if (is_new) {
      markov::PreRun pre_run = markov::MakePreRun(kernel.counters, kernel.saturating_occupancy,
                                                  kernel.workers_per_sm_max,
                                                  WarpsPerUnit(kernel) * kSchedulers, kSchedulers);
      if (!addition_.pipes) pre_run.use = {};
      found->second = markov::Calibrate(pre_run, *workspace_);
    }
    return found->second;
  }

  Addition addition_;
  std::unique_ptr<markov::ChainWorkspace> workspace_ = std::make_unique<markov::ChainWorkspace>();
  std::map<const CountedKernel*, markov::CalibratedKernel> kernels_;
};

}  // namespace

void JudgeMarkovPipes(const Samples& samples, std::vector<Judged>& out) {
  const std::map<std::string, CountedKernel> kernels = CountedKernels(samples);
  const std::vector<SharedSm> rows = SharedSms(samples, kernels);
  for (const Addition& addition : kAdditions) {
    PipePredictor predictor(addition);
    std::vector<JudgedSharedSm> judged;
    for (const SharedSm& shared : rows) {
      if (!shared.held_out) continue;
      if (const auto one = predictor.Judge(shared)) judged.push_back(*one);
    }
    ReportSpeeds(addition.model, judged, out);
    ReportIpc(addition.model, judged, samples.head.sm_count, out);
    ReportThroughput(addition.model, judged, out);
  }
}

}  // namespace gpushare::models
