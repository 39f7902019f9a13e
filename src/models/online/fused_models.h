// The models of all fused kernels, by the id that their registration gave them.
//
// OnlineModel asks with the predicted durations of both parts alone. Invariants: a prediction and
// an observation allocate nothing; points that a profile holds for kernels that never came are kept
// for the next profile. Threads: the scheduler's only.

#ifndef GPUSHARE_SRC_MODELS_ONLINE_FUSED_MODELS_H_
#define GPUSHARE_SRC_MODELS_ONLINE_FUSED_MODELS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/core/seams/cost_model.h"
#include "src/models/fused/fused_model.h"
#include "src/models/learned/learned.h"

namespace gpushare::models {

class FusedModels {
 public:
  // A kernel that is added again starts anew.
  void Add(const core::FusedKernelDesc& kernel);

  // Of an unknown kernel: both parts one after the other, untrained.
  core::Prediction Predict(const core::FusedKernelDesc& kernel, const core::Prediction& tensor,
                           const core::Prediction& cuda) const;

  // Returns whether the kernel's curve is another now.
  bool Observe(const core::FusedKernelDesc& kernel, const core::Prediction& tensor,
               const core::Prediction& cuda, int64_t measured_ns);

  core::FusedCurveView CurveOf(const core::FusedKernelDesc& kernel) const;

  using ByName = std::map<std::string, LearnedFused>;
  std::vector<LearnedFused> Save() const;
  // Allocates nothing.
  void Restore(ByName learned);

 private:
  struct Entry {
    std::string name;
    FusedModel model;
    bool learned = false;  // from runs: a profile keeps it
  };

  std::map<uint32_t, Entry> by_id_;
  ByName pending_;  // loaded
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_ONLINE_FUSED_MODELS_H_
