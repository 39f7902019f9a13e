// A kernel and one sample task of it, as calibration and pre-runs take them. Pure.

#ifndef GPUSHARE_BINDINGS_C_CALIBRATION_ITEM_H_
#define GPUSHARE_BINDINGS_C_CALIBRATION_ITEM_H_

#include <gpushare/gpushare.h>

#include "absl/status/statusor.h"
#include "src/calibration/base/item.h"
#include "src/models/profile/profile.h"

namespace gpushare::abi {

// `base` fills what the caller leaves zero. A null task has no arguments.
absl::StatusOr<models::CalibrationItem> ReadItem(const gpushare_kernel_options* kernel,
                                                 const gpushare_task_options* task,
                                                 const models::Profile& base);

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_CALIBRATION_ITEM_H_
