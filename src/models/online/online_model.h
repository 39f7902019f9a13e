// The online cost model: one linear model for each kernel, learned from what the device reports.
//
// Where in the flow: the predict stage asks it, the learn stage feeds it. Prediction starts from a
// prior (the kernel's simulation record or the application's hint) and moves to the measurements.
// Invariants: only samples without co-residents train solo models; every predicted duration is from
// 0 to kMaxDurationNs; a prediction allocates nothing. Threads: the scheduler's only.

#ifndef GPUSHARE_SRC_MODELS_ONLINE_ONLINE_MODEL_H_
#define GPUSHARE_SRC_MODELS_ONLINE_ONLINE_MODEL_H_

#include <memory>
#include <vector>

#include "src/core/seams/cost_model.h"
#include "src/core/seams/device_profile.h"
#include "src/models/learned/learned.h"
#include "src/models/profile/calibration_record.h"

namespace gpushare::models {

// `measured`: pairs of kernels that a calibration measured on the same SMs.
std::unique_ptr<core::CostModel> MakeOnlineModel(const core::DeviceProfile& device,
                                                 std::vector<CoResidentRecord> measured = {});
// As after a Load() of the text of `learned`.
std::unique_ptr<core::CostModel> MakeOnlineModel(const core::DeviceProfile& device,
                                                 std::vector<CoResidentRecord> measured,
                                                 Learned learned);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_ONLINE_ONLINE_MODEL_H_
