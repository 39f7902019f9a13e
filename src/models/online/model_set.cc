// The online cost model's parts; see model_set.h.

#include "src/models/online/model_set.h"

#include <cmath>
#include <new>
#include <utility>

#include "src/core/base/limits.h"

namespace gpushare::models {

using core::Prediction;

Prediction KernelModel::Predict(int64_t block_tasks) const {
  Prediction out = solo.Predict(block_tasks, prior.NsOf(block_tasks));
  if (prior.error() > 0 && solo.line().samples == 0) {
    out.error_ns = std::llround(static_cast<double>(out.duration_ns) * prior.error());
  }
  return out;
}

KernelModels::KernelModels() { by_id_.reserve(core::kMaxKernels); }

void KernelModels::Put(core::KernelId id, KernelModel model) {
  const auto known = by_id_.find(id.value);
  if (known != by_id_.end()) {
    *known->second = std::move(model);
  } else if (models_.size() < core::kMaxKernels) {
    KernelModel*& entry = by_id_[id.value];
    try {
      models_.push_back(std::move(model));
    } catch (const std::bad_alloc&) {
      by_id_.erase(id.value);
      throw;
    }
    entry = &models_.back();
  }
}

const KernelModel* KernelModels::Find(core::KernelId id) const {
  const auto found = by_id_.find(id.value);
  return found == by_id_.end() ? nullptr : found->second;
}

KernelModel* KernelModels::FindMutable(core::KernelId id) {
  const auto found = by_id_.find(id.value);
  return found == by_id_.end() ? nullptr : found->second;
}

uint32_t KernelModels::IdOf(const std::string& name) const {
  for (const auto& [id, model] : by_id_) {
    if (model->name == name) return id;
  }
  return 0;
}

ModelSet::ModelSet(const core::DeviceProfile& profile, std::vector<CoResidentRecord> measured)
    : device(profile), co_schedules(profile, std::move(measured)) {
  library.Restore(LibraryDeviceOf(device), {});
  co_schedule_changes.Clear();  // the first run would empty the table of co-schedules
}

Prediction SoloOf(const ModelSet& models, core::KernelId kernel, int64_t block_tasks) {
  const KernelModel* model = models.kernels.Find(kernel);
  return model != nullptr ? model->Predict(block_tasks) : Prediction();
}

std::array<Prediction, 2> PartsOf(const ModelSet& models, const core::FusedFeatures& features) {
  return {SoloOf(models, features.kernel->tensor_part, features.tensor_block_tasks),
          SoloOf(models, features.kernel->cuda_part, features.cuda_block_tasks)};
}

LibraryDevice LibraryDeviceOf(const core::DeviceProfile& device) {
  LibraryDevice out;
  out.sm_count = device.sm_count;
  return out;
}

void PrepareCall(LibraryModel& library, const KernelModel& model) {
  if (model.prior.IsOpenForCall()) library.Prepare(model.call);
}

void SetCallPrior(const LibraryModel& library, KernelModel& model) {
  if (model.prior.IsOpenForCall()) model.prior.SetCall(library.Predict(model.call));
}

}  // namespace gpushare::models
