// A cluster from a JSON text (docs/placement.md has the fields).
//
// Threads: any.

#ifndef GPUSHARE_SRC_MODELS_PLACEMENT_CLUSTER_FILE_H_
#define GPUSHARE_SRC_MODELS_PLACEMENT_CLUSTER_FILE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "src/models/placement/cluster.h"

namespace gpushare::models::placement {

// 100,000 apps with their names, kinds and memory take 16 MB.
inline constexpr int64_t kClusterBytesMax = int64_t{32} << 20;

// INVALID_ARGUMENT: not the JSON of a cluster, with the place and the value, or Check. Reading
// takes time in proportion to the text.
absl::StatusOr<Cluster> ParseCluster(absl::string_view text);

}  // namespace gpushare::models::placement

#endif  // GPUSHARE_SRC_MODELS_PLACEMENT_CLUSTER_FILE_H_
