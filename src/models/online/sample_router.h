// Which model a measurement trains, and how its error counts.
//
// OnlineModel::Observe calls it. A solo sample trains the duration of its work; an eviction, an LC
// launch beside one neighbour or beside copies, a fused launch, and workers beside others on the
// same SMs each have a model of their own. Invariants: only samples without co-residents train solo
// models, except the first ones of a BE kernel of which nothing is known; nothing allocates.
// Threads: the scheduler's only.

#ifndef GPUSHARE_SRC_MODELS_ONLINE_SAMPLE_ROUTER_H_
#define GPUSHARE_SRC_MODELS_ONLINE_SAMPLE_ROUTER_H_

#include <cstdint>

#include "src/core/seams/cost_model.h"
#include "src/models/online/model_set.h"
#include "src/models/pairs/pair_model.h"

namespace gpushare::models {

class SampleRouter {
 public:
  // `durations` predicts from `models`, which the samples train. Both outlive the router.
  SampleRouter(ModelSet& models, const core::Durations& durations)
      : models_(models), durations_(durations) {}

  void Route(const core::Observation& observation);
  void Train(const core::DelayedQuery& query);

  // Of the solo predictions so far; see core::CostModel.
  double MeanRelativeError(int64_t* samples) const;

 private:
  struct BesideSample {
    PairKey key;
    double alone_ns = 0;  // on the launch's SMs
    double measured_ns = 0;
  };

  void TrainEviction(const core::Observation& observation);
  void TrainFused(const core::Observation& observation);
  void TrainCoRun(const core::CoRun& run, int64_t measured_ns);
  bool TrainBesideCopies(const core::Observation& observation);
  bool TrainBeside(const core::Observation& observation, const core::CoResident& beside);
  bool TrainPair(const BesideSample& sample);
  bool TrainEvicting(const BesideSample& sample, const core::CoResident& beside);
  double MostAddedBy(const core::KernelDesc& evicted) const;
  bool TrainSolo(const core::TaskFeatures& features, double measured_ns);

  bool IsKnownAlone(const core::KernelDesc& kernel, const core::Prediction& solo) const;
  bool IsFirstOfBe(const core::Observation& observation) const;
  double WholeDeviceNs(const core::Observation& observation) const;
  void CountError(const core::Observation& observation, double measured_ns);
  KernelModel* Find(const core::KernelDesc* kernel);

  ModelSet& models_;
  const core::Durations& durations_;
  double error_sum_ = 0;
  int64_t error_samples_ = 0;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_ONLINE_SAMPLE_ROUTER_H_
