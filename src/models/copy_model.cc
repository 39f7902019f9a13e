// Durations of copies; see copy_model.h.

#include "src/models/copy_model.h"

#include "src/models/prior.h"

namespace gpushare::models {

core::Prediction CopyModel::Predict(const core::DeviceProfile& device,
                                    const core::TaskFeatures& features) const {
  const auto bytes = static_cast<double>(features.bytes);
  const double prior_ns = CopyPriorNs(device, features.direction, features.pinned, bytes);
  return lines_[IndexOf(features.direction, features.pinned)].Predict(bytes, prior_ns);
}

bool CopyModel::Observe(const core::DeviceProfile& device, const core::TaskFeatures& features,
                        double measured_ns) {
  const auto bytes = static_cast<double>(features.bytes);
  const double prior_ns = CopyPriorNs(device, features.direction, features.pinned, bytes);
  return lines_[IndexOf(features.direction, features.pinned)].Observe(bytes, measured_ns, prior_ns);
}

std::vector<LearnedCopies> CopyModel::Save() const {
  std::vector<LearnedCopies> learned;
  for (size_t i = 0; i < lines_.size(); ++i) {
    const LinearState& line = lines_[i].state();
    if (line.samples > 0) learned.push_back({static_cast<int32_t>(i / 2), i % 2 == 1, line});
  }
  return learned;
}

void CopyModel::Restore(const std::vector<LearnedCopies>& learned) {
  for (const LearnedCopies& one : learned) {
    lines_[IndexOf(static_cast<core::CopyDirection>(one.direction), one.pinned)].Restore(one.line);
  }
}

}  // namespace gpushare::models
