// Durations of copies over bytes, for each direction and kind of host memory: what latency and
// rate of the device give, times the measured ratio at the nearest sizes. Before the eighth sample
// a line predicts. A profile keeps both.
//
// Threads: the scheduler's only; nothing allocates.

#ifndef GPUSHARE_SRC_MODELS_ONLINE_COPY_MODEL_H_
#define GPUSHARE_SRC_MODELS_ONLINE_COPY_MODEL_H_

#include <array>
#include <cstddef>
#include <vector>

#include "src/core/seams/cost_model.h"
#include "src/core/seams/device_profile.h"
#include "src/models/durations/linear_model.h"
#include "src/models/durations/size_table.h"
#include "src/models/learned/learned.h"

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

  static constexpr size_t kWindow = 8;

  struct Kind {
    LinearModel line;
    SizeTable table;
    int64_t samples = 0;
    double error = 0;  // of the table, smoothed: relative, before a sample was learned
    std::array<double, kWindow> factors = {};  // measured over predicted, the newest: a ring
    size_t seen = 0;                           // in the ring since the table was shifted

    bool has_table() const;
    void ShiftPastDrift(double factor);
  };
  std::array<Kind, kDirections * 2> kinds_;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_ONLINE_COPY_MODEL_H_
