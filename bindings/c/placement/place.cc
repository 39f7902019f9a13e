// The placement of a cluster over the ABI: arrays in, a GPU for each replica and instance out. It
// knows no runtime. Threads: the caller's.

#include <gpushare/gpushare.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "bindings/c/errors.h"
#include "bindings/c/options.h"
#include "bindings/c/placement/cluster_arrays.h"
#include "bindings/c/placement/slots.h"
#include "src/core/base/status.h"
#include "src/models/placement/pair_table.h"
#include "src/models/placement/placer.h"

namespace gpushare::abi {
namespace {

absl::Status CheckSlots(const models::placement::Cluster& cluster, const int32_t* out_gpu,
                        size_t out_count) {
  const int64_t slots = SlotsOf(cluster);
  if (out_count != static_cast<size_t>(slots)) {
    return absl::InvalidArgumentError(
        absl::StrCat("out_count is ", out_count, ", and it must be ", slots,
                     ", an entry for each replica and each instance of the apps."));
  }
  return slots == 0 ? absl::OkStatus() : CheckNotNull("out_gpu", out_gpu);
}

gpushare_place_result ResultOf(const models::placement::Placement& placement) {
  gpushare_place_result out = {};
  out.lc_placed = placement.lc_placed;
  out.be_placed = placement.be_placed;
  out.free_gpus = placement.free_gpus;
  out.moved = placement.moved;
  out.bounds_broken = placement.bounds_broken;
  out.be_rate = placement.be_rate;
  out.value = placement.value;
  out.upper_bound = placement.upper_bound;
  return out;
}

// Writes what a call gives, all at its end: after an error nothing is written.
absl::Status Place(const gpushare_place_options* given, const PlaceArrays& arrays,
                   const int32_t* running, int32_t* out_gpu, size_t out_count,
                   gpushare_place_result* out_result) {
  gpushare_place_options known;
  GPUSHARE_RETURN_IF_ERROR(ReadOptions("place_options", given, &known));
  GPUSHARE_RETURN_IF_ERROR(CheckNotNull("out_result", out_result));
  GPUSHARE_RETURN_IF_ERROR(CheckResult("place_result", out_result));
  GPUSHARE_ASSIGN_OR_RETURN(const models::placement::PlaceOptions options, PlaceOptionsOf(known));
  GPUSHARE_ASSIGN_OR_RETURN(models::placement::Cluster cluster, ClusterOf(known, arrays));
  GPUSHARE_RETURN_IF_ERROR(CheckSlots(cluster, out_gpu, out_count));
  const auto runs =
      running == nullptr ? absl::Span<const int32_t>() : absl::MakeConstSpan(running, out_count);
  GPUSHARE_RETURN_IF_ERROR(AddRunning(runs, cluster));
  const models::placement::PairTable pairs(cluster.pairs);
  GPUSHARE_ASSIGN_OR_RETURN(const models::placement::Placement placement,
                            models::placement::PlaceChecked(cluster, pairs, options));
  const std::vector<int32_t> gpus = GpusOfSlots(cluster, placement, runs);
  GPUSHARE_RETURN_IF_ERROR(WriteResult("place_result", ResultOf(placement), out_result));
  std::copy(gpus.begin(), gpus.end(), out_gpu);
  return absl::OkStatus();
}

}  // namespace
}  // namespace gpushare::abi

gpushare_status gpushare_place(const gpushare_place_options* options,
                               const gpushare_place_gpu* gpus, size_t gpu_count,
                               const gpushare_place_lc* lc, size_t lc_count,
                               const gpushare_place_be* be, size_t be_count,
                               const gpushare_place_pair* pairs, size_t pair_count,
                               const int32_t* running, int32_t* out_gpu, size_t out_count,
                               gpushare_place_result* out_result) noexcept {
  return gpushare::abi::Enter([&]() -> absl::Status {
    const gpushare::abi::PlaceArrays arrays = {
        {gpus, gpu_count}, {lc, lc_count}, {be, be_count}, {pairs, pair_count}};
    return gpushare::abi::Place(options, arrays, running, out_gpu, out_count, out_result);
  });
}
