// Fused kernels by id; see fused_models.h.

#include "src/models/online/fused_models.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/core/base/limits.h"

namespace gpushare::models {
namespace {

using core::FusedKernelDesc;
using core::Prediction;

double LoadRatio(const Prediction& tensor, const Prediction& cuda) {
  return static_cast<double>(cuda.duration_ns) /
         static_cast<double>(std::max<int64_t>(1, tensor.duration_ns));
}

double RelativeError(const Prediction& prediction) {
  return static_cast<double>(prediction.error_ns) /
         static_cast<double>(std::max<int64_t>(1, prediction.duration_ns));
}

}  // namespace

void FusedModels::Add(const FusedKernelDesc& kernel) {
  FusedModel model(kernel.opportune_load_ratio, kernel.opportune_duration_ratio);
  model.Train(kernel.points);
  if (const auto points = pending_.find(kernel.name); points != pending_.end()) {
    model.Train(points->second.points, points->second.error);
  }
  by_id_.insert_or_assign(kernel.id.value, Entry{kernel.name, model, false});
}

Prediction FusedModels::Predict(const FusedKernelDesc& kernel, const Prediction& tensor,
                                const Prediction& cuda) const {
  const int64_t serial_ns = std::min(core::kMaxDurationNs, tensor.duration_ns + cuda.duration_ns);
  const auto found = by_id_.find(kernel.id.value);
  if (found == by_id_.end()) return {serial_ns, serial_ns, false};
  const FusedModel& model = found->second.model;
  const double ratio = model.curve().At(LoadRatio(tensor, cuda));
  const double duration_ns = std::clamp(ratio * static_cast<double>(tensor.duration_ns), 0.0,
                                        static_cast<double>(core::kMaxDurationNs));
  // The error of the parts shifts both the scale and the load ratio.
  const double error = std::hypot(model.error(), RelativeError(tensor), RelativeError(cuda));
  const double error_ns = std::min(duration_ns * error, static_cast<double>(core::kMaxDurationNs));
  return {static_cast<int64_t>(duration_ns), static_cast<int64_t>(error_ns),
          model.trained() && tensor.trained && cuda.trained};
}

bool FusedModels::Observe(const FusedKernelDesc& kernel, const Prediction& tensor,
                          const Prediction& cuda, int64_t measured_ns) {
  const auto found = by_id_.find(kernel.id.value);
  // Against guesses the run would say more of the guesses than of the fused kernel.
  if (found == by_id_.end() || !tensor.trained || !cuda.trained) return false;
  const double duration_ratio = static_cast<double>(measured_ns) /
                                static_cast<double>(std::max<int64_t>(1, tensor.duration_ns));
  if (!found->second.model.Observe(LoadRatio(tensor, cuda), duration_ratio)) return false;
  found->second.learned = true;
  return true;
}

core::FusedCurveView FusedModels::CurveOf(const FusedKernelDesc& kernel) const {
  const auto found = by_id_.find(kernel.id.value);
  if (found == by_id_.end()) return {};
  const FusedModel& model = found->second.model;
  const FusedCurve& curve = model.curve();
  return {curve.intercept,  curve.slope,   curve.bend,
          curve.inflection, model.error(), model.trained()};
}

std::vector<LearnedFused> FusedModels::Save() const {
  ByName kept = pending_;
  for (const auto& [id, entry] : by_id_) {
    if (!entry.learned) continue;
    const auto points = entry.model.Points();
    kept[entry.name] = {entry.name, entry.model.error(), {points.begin(), points.end()}};
  }
  std::vector<LearnedFused> out;
  for (auto& [name, fused] : kept) {
    if (out.size() == static_cast<size_t>(core::kMaxKernels)) break;
    out.push_back(std::move(fused));
  }
  return out;
}

void FusedModels::Restore(ByName learned) {
  pending_.swap(learned);
  for (auto& [id, entry] : by_id_) {
    if (const auto found = pending_.find(entry.name); found != pending_.end()) {
      entry.model.Train(found->second.points, found->second.error);
    }
  }
}

}  // namespace gpushare::models
