// The models that the online cost model is made of, and what a profile holds for kernels to come.
//
// OnlineModel (online_model.h) predicts from them, SampleRouter (sample_router.h) trains them, and
// learned_exchange.h saves and restores them. Invariants: a kernel's model keeps its address; Find
// allocates nothing. Threads: the scheduler's only.

#ifndef GPUSHARE_SRC_MODELS_ONLINE_MODEL_SET_H_
#define GPUSHARE_SRC_MODELS_ONLINE_MODEL_SET_H_

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "src/core/seams/cost_model.h"
#include "src/core/seams/device_profile.h"
#include "src/models/durations/eviction_model.h"
#include "src/models/durations/kernel_durations.h"
#include "src/models/durations/opaque_model.h"
#include "src/models/durations/prior.h"
#include "src/models/durations/query_models.h"
#include "src/models/learned/learned.h"
#include "src/models/library/library_model.h"
#include "src/models/online/co_schedules.h"
#include "src/models/online/copy_model.h"
#include "src/models/online/fused_models.h"
#include "src/models/pairs/neighbour_model.h"
#include "src/models/pairs/pair_model.h"
#include "src/models/profile/calibration_record.h"

namespace gpushare::models {

// Error bar of a measured speed beside copies: launches scatter by 1 to 3 %, and the mean is of
// four or more. A smaller change changes no plan.
inline constexpr double kCopySpeedError = 0.005;

struct KernelModel {
  std::string name;
  KernelPrior prior;
  KernelDurations solo;
  int64_t segments = 0;  // of a graph that is cut
  EvictionModel eviction;
  FollowedMean blocking;  // what its evictions added to LC launches, ns
  NeighbourModel neighbours;
  core::LibraryCall call = {};
  core::ResourceDemand demand = {};  // of a graph, the mean of its nodes
  CopySpeeds beside_copies = {};

  core::Prediction Predict(int64_t block_tasks) const;
};

// At most kMaxKernels models, by the id that the registration gave.
class KernelModels {
 public:
  KernelModels();

  // Replaces the model of a kernel that is registered again. Beyond kMaxKernels nothing is kept.
  void Put(core::KernelId id, KernelModel model);

  // Null: an unknown kernel.
  const KernelModel* Find(core::KernelId id) const;
  KernelModel* FindMutable(core::KernelId id);
  // 0: no kernel of this name is registered.
  uint32_t IdOf(const std::string& name) const;

  const std::deque<KernelModel>& all() const { return models_; }
  std::deque<KernelModel>& all() { return models_; }

 private:
  std::deque<KernelModel> models_;  // stable addresses
  std::unordered_map<uint32_t, KernelModel*> by_id_;
};

struct ModelSet {
  ModelSet(const core::DeviceProfile& profile, std::vector<CoResidentRecord> measured);

  core::DeviceProfile device;
  KernelModels kernels;
  std::map<std::string, LearnedKernel> pending_kernels;  // loaded, by kernel name
  std::vector<LearnedPair> pending_pairs;                // loaded
  std::vector<LearnedCoRun> pending_co_runs;             // likewise
  PairModel pairs;
  core::PairChanges pair_changes;
  CopyModel copies;
  OpaqueModel opaque;
  FusedModels fused;
  LibraryModel library;
  QueryModels queries;
  CoSchedules co_schedules;
  uint64_t version = 1;
  uint64_t fused_version = 1;
  // What the scheduler's table of co-schedules has not read yet, and a number for each such state.
  core::PairChanges co_schedule_changes;
  uint64_t co_schedule_version = 0;
};

// The duration of an unknown kernel is 0, untrained.
core::Prediction SoloOf(const ModelSet& models, core::KernelId kernel, int64_t block_tasks);
std::array<core::Prediction, 2> PartsOf(const ModelSet& models,
                                        const core::FusedFeatures& features);

LibraryDevice LibraryDeviceOf(const core::DeviceProfile& device);
// Reserves what a prediction of the model's library call needs. Allocates.
void PrepareCall(LibraryModel& library, const KernelModel& model);
// Predicts the call once for each registration or load: a prediction takes microseconds.
void SetCallPrior(const LibraryModel& library, KernelModel& model);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_ONLINE_MODEL_SET_H_
