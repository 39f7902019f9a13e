// Durations of opaque work: for each app a line through 0 over the bound that it declares, or a
// mean where it declares none.
//
// Threads: the scheduler's only; nothing allocates.

#ifndef GPUSHARE_SRC_MODELS_DURATIONS_OPAQUE_MODEL_H_
#define GPUSHARE_SRC_MODELS_DURATIONS_OPAQUE_MODEL_H_

#include <array>
#include <cstdint>

#include "src/core/base/limits.h"
#include "src/core/seams/cost_model.h"
#include "src/models/durations/linear_model.h"

namespace gpushare::models {

class OpaqueModel {
 public:
  // The declared bound until there are measurements; then what such a bound was worth so far.
  core::Prediction Predict(const core::TaskFeatures& features) const;
  // Returns whether predictions may have changed enough to plan anew.
  bool Observe(const core::TaskFeatures& features, double measured_ns);

 private:
  struct App {
    uint32_t app = 0;
    LinearModel declared;
    LinearModel undeclared;
  };

  // An app's slot is its number modulo the table. Another app in it means that this one is new.
  std::array<App, core::kMaxApps> apps_;
};

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_DURATIONS_OPAQUE_MODEL_H_
