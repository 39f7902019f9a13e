// Durations of opaque work; see opaque_model.h.

#include "src/models/durations/opaque_model.h"

#include "src/models/durations/prior.h"

namespace gpushare::models {

core::Prediction OpaqueModel::Predict(const core::TaskFeatures& features) const {
  static const LinearModel kUntrained;
  const App& app = apps_[features.app % core::kMaxApps];
  const bool known = app.app == features.app;
  if (features.declared_ns <= 0) {
    return (known ? app.undeclared : kUntrained).Predict(1, kUnknownDurationNs);
  }
  const auto declared = static_cast<double>(features.declared_ns);
  const core::Prediction prediction =
      (known ? app.declared : kUntrained).Predict(declared, declared);
  // An untrained bound has no error bar: it is a bound, not a mean.
  return prediction.trained ? prediction : core::Prediction{features.declared_ns, 0, false};
}

bool OpaqueModel::Observe(const core::TaskFeatures& features, double measured_ns) {
  App& app = apps_[features.app % core::kMaxApps];
  if (app.app != features.app) app = App{features.app, {}, {}};
  if (features.declared_ns <= 0) return app.undeclared.Observe(1, measured_ns, kUnknownDurationNs);
  const auto declared = static_cast<double>(features.declared_ns);
  return app.declared.Observe(declared, measured_ns, declared);
}

}  // namespace gpushare::models
