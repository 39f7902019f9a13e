// Durations of copies: a line over bytes for each direction and kind of host memory.
//
// Threads: the scheduler's only; nothing allocates.

#ifndef GPUSHARE_SRC_MODELS_COPY_MODEL_H_
#define GPUSHARE_SRC_MODELS_COPY_MODEL_H_

#include <array>
#include <cstddef>
#include <vector>

#include "src/core/seams/cost_model.h"
#include "src/core/seams/device_profile.h"
#include "src/models/learned.h"
#include "src/models/linear_model.h"

namespace gpushare::models {

class CopyModel {
 public:
  core::Prediction Predict(const core::DeviceProfile& device,
                           const core::TaskFeatures& features) const;
  // Returns whether predictions may have changed enough to plan anew.
  bool Observe(const core::DeviceProfile& device, const core::TaskFeatures& features,
               double measured_ns);

  std::vector<LearnedCopies> Save() const;
  void Restore(const std::vector<LearnedCopies>& learned);

 private:
  static constexpr size_t kDirections = 4;
  static size_t IndexOf(core::CopyDirection direction, bool pinned) {
    return static_cast<size_t>(direction) % kDirections * 2 + (pinned ? 1 : 0);
  }

  std::array<LinearModel, kDirections * 2> lines_;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_COPY_MODEL_H_
