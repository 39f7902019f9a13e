// The arrays of gpushare_place as a cluster.
//
// Where in the flow: place.cc reads a call's arrays with this, places the cluster, and writes the
// GPUs with slots.h. Invariants: an array is read only up to a limit of cluster.h, with the stride
// that its first struct states; what is returned holds no pointer of the caller. Threads: any;
// pure.

#ifndef GPUSHARE_BINDINGS_C_PLACEMENT_CLUSTER_ARRAYS_H_
#define GPUSHARE_BINDINGS_C_PLACEMENT_CLUSTER_ARRAYS_H_

#include <gpushare/gpushare.h>

#include "absl/status/statusor.h"
#include "bindings/c/placement/struct_array.h"
#include "src/models/placement/cluster.h"
#include "src/models/placement/placer.h"

namespace gpushare::abi {

struct PlaceArrays {
  StructArray<gpushare_place_gpu> gpus;
  StructArray<gpushare_place_lc> lc;
  StructArray<gpushare_place_be> be;
  StructArray<gpushare_place_pair> pairs;
};

// INVALID_ARGUMENT or UNIMPLEMENTED: an option that no placement knows. PlaceChecked checks the
// ranges of numbers.
absl::StatusOr<models::placement::PlaceOptions> PlaceOptionsOf(
    const gpushare_place_options& options);

// Checked, without what runs. INVALID_ARGUMENT or UNIMPLEMENTED: a struct or a value of one.
absl::StatusOr<models::placement::Cluster> ClusterOf(const gpushare_place_options& options,
                                                     const PlaceArrays& arrays);

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_PLACEMENT_CLUSTER_ARRAYS_H_
