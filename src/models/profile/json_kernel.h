// Kernels and their simulation records in a profile file.
//
// The tables in the .cc file are the format: each field stands once, with its range. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_PROFILE_JSON_KERNEL_H_
#define GPUSHARE_SRC_MODELS_PROFILE_JSON_KERNEL_H_

#include <vector>

#include "absl/status/status.h"
#include "src/core/seams/kernel.h"
#include "src/models/json/json_fields.h"

namespace gpushare::models {

// An array of kernels; every one has a name, and no two have the same.
absl::Status ReadKernels(const JsonValue& value, const JsonPath& path,
                         std::vector<core::KernelDesc>& out);
void WriteKernels(const std::vector<core::KernelDesc>& in, JsonWriter& json);

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_PROFILE_JSON_KERNEL_H_
