// Two kernels whose workers share every SM: the pairs that a calibration measured. For others the
// model that the profile has of them from counters (co_resident/), and without one the Markov model
// (Kernelet 4.4), with pipes where all counters are there. Runs correct all of them
// (co_run_speeds.h), and their error bars shrink.
//
// Invariants: a prediction allocates nothing; one by the Markov model is solved once and then comes
// from a cache. Threads: the scheduler's only.

#ifndef GPUSHARE_SRC_MODELS_ONLINE_CO_SCHEDULES_H_
#define GPUSHARE_SRC_MODELS_ONLINE_CO_SCHEDULES_H_

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "src/core/seams/cost_model.h"
#include "src/core/seams/device_profile.h"
#include "src/models/co_resident/model.h"
#include "src/models/markov/chain.h"
#include "src/models/markov/pair_cache.h"
#include "src/models/markov/pipes/pre_run.h"
#include "src/models/pairs/co_run_speeds.h"
#include "src/models/profile/calibration_record.h"

namespace gpushare::models {

struct CoScheduleSpeeds {
  std::array<double, 2> speed = {};  // relative to alone with all workers; 0: unknown
  double error = 1;                  // one standard deviation of the relative error of a speed
};

// Speed of the side's workers without a neighbour.
double ShareOf(const core::CoResidentSide& side);

// When each of two kernels ends that start at once. `share`: the speed of their workers without the
// neighbour, with which the one that is left runs on.
std::array<core::Prediction, 2> FinishTimes(const std::array<core::Prediction, 2>& alone,
                                            const std::array<double, 2>& share,
                                            const CoScheduleSpeeds& speeds);

class CoSchedules {
 public:
  CoSchedules(const core::DeviceProfile& device, std::vector<CoResidentRecord> measured);

  // A model with a view of each kernel that was added. Allocates; Restore does not.
  struct Prepared {
    std::unique_ptr<const co_resident::Model> model;
    std::map<uint32_t, co_resident::View> views;
  };
  Prepared Prepare(co_resident::State state) const;
  void Restore(Prepared prepared);
  // Null: nothing is known.
  const co_resident::State* learned() const;

  void Add(const core::KernelDesc& kernel);
  CoScheduleSpeeds Predict(const core::CoResidentSide& first,
                           const core::CoResidentSide& second) const;

  // The kernel of `own` had this speed, relative to alone with all its workers, beside the
  // neighbour. Returns whether predictions have changed enough to plan anew. Allocates nothing.
  bool Observe(const core::CoResidentSide& own, const core::CoResidentSide& neighbour,
               double speed);
  CoRunSpeeds& runs() { return runs_; }
  const CoRunSpeeds& runs() const { return runs_; }

 private:
  // Points of two kernels, in the order of the key.
  using Pairs = std::map<std::pair<uint32_t, uint32_t>, std::vector<CoResidentPoint>>;

  // Before any run corrects it.
  CoScheduleSpeeds Predicted(const core::CoResidentSide& first,
                             const core::CoResidentSide& second) const;
  // The speed of `own` by the runs too.
  UncertainSpeed Corrected(const core::CoResidentSide& own, const core::CoResidentSide& neighbour,
                           const UncertainSpeed& predicted) const;
  CoScheduleSpeeds Measured(const core::CoResidentSide& first,
                            const core::CoResidentSide& second) const;
  CoScheduleSpeeds FromCounters(const core::CoResidentSide& first,
                                const core::CoResidentSide& second) const;
  CoScheduleSpeeds Solved(const core::CoResidentSide& first,
                          const core::CoResidentSide& second) const;

  // Whether both kernels have what the chain with pipes needs.
  bool HavePipes(const core::CoResidentSide& first, const core::CoResidentSide& second) const;
  double ChainError(const core::CoResidentSide& first, const core::CoResidentSide& second) const;
  markov::PairPrediction SolvePair(const core::CoResidentSide& first,
                                   const core::CoResidentSide& second) const;

  core::DeviceProfile device_;
  std::vector<CoResidentRecord> records_;
  std::map<std::string, uint32_t> ids_;
  Pairs measured_;
  std::map<uint32_t, co_resident::Kernel> counted_;  // by id
  Prepared prepared_;
  CoRunSpeeds runs_;
  // From the first kernel with counters on: a solved pair is kept for what it costs.
  std::unique_ptr<markov::ChainWorkspace> workspace_;
  std::unique_ptr<markov::PairCache> cache_;
  std::map<uint32_t, markov::CalibratedKernel> calibrated_;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_ONLINE_CO_SCHEDULES_H_
