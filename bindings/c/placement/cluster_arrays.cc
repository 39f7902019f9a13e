// The arrays of gpushare_place; see cluster_arrays.h.

#include "bindings/c/placement/cluster_arrays.h"

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "bindings/c/options.h"
#include "bindings/c/placement/struct_array.h"
#include "src/core/base/status.h"

namespace gpushare::abi {
namespace {

using models::placement::Algorithm;
using models::placement::Cluster;
using models::placement::kAppsMax;
using models::placement::kGpusMax;
using models::placement::kPairRowsMax;
using models::placement::PlaceOptions;
using models::placement::Together;

// A caller writes -1 for the value 0, because 0 is the default.
constexpr double kNothing = -1;

// In the order of gpushare_place_algorithm.
constexpr Algorithm kAlgorithms[] = {Algorithm::kAssignment, Algorithm::kGreedy,
                                     Algorithm::kFirstFit, Algorithm::kRandom};

// A number of the options. Place checks its range.
double NumberOf(double value, double default_value) {
  if (value == 0) return default_value;
  return value == kNothing ? 0 : value;
}

absl::Status ReadGpus(StructReader<gpushare_place_gpu> array, Cluster& out) {
  GPUSHARE_RETURN_IF_ERROR(array.Check(size_t{kGpusMax}));
  out.gpus.reserve(array.count());
  for (size_t i = 0; i < array.count(); ++i) {
    gpushare_place_gpu group;
    GPUSHARE_RETURN_IF_ERROR(array.Read(i, &group));
    GPUSHARE_RETURN_IF_ERROR(CheckName(absl::StrCat(array.NameOf(i), ".name"), group.name));
    out.gpus.push_back(
        {.name = group.name, .memory_bytes = group.memory_bytes, .count = group.count});
  }
  return absl::OkStatus();
}

absl::Status ReadLc(StructReader<gpushare_place_lc> array, Cluster& out) {
  GPUSHARE_RETURN_IF_ERROR(array.Check(kAppsMax));
  out.lc.reserve(array.count());
  for (size_t i = 0; i < array.count(); ++i) {
    gpushare_place_lc app;
    GPUSHARE_RETURN_IF_ERROR(array.Read(i, &app));
    GPUSHARE_RETURN_IF_ERROR(CheckName(absl::StrCat(array.NameOf(i), ".name"), app.name));
    GPUSHARE_RETURN_IF_ERROR(CheckName(absl::StrCat(array.NameOf(i), ".kind"), app.kind));
    out.lc.push_back({.name = app.name,
                      .kind = app.kind,
                      .load = app.load,
                      .memory_bytes = app.memory_bytes,
                      .p99_bound = app.p99_bound,
                      .target_ns = app.target_ns,
                      .p99_alone_ns = app.p99_alone_ns,
                      .replicas = app.replicas});
  }
  return absl::OkStatus();
}

absl::Status ReadBe(StructReader<gpushare_place_be> array, Cluster& out) {
  GPUSHARE_RETURN_IF_ERROR(array.Check(kAppsMax));
  out.be.reserve(array.count());
  for (size_t i = 0; i < array.count(); ++i) {
    gpushare_place_be app;
    GPUSHARE_RETURN_IF_ERROR(array.Read(i, &app));
    GPUSHARE_RETURN_IF_ERROR(CheckName(absl::StrCat(array.NameOf(i), ".name"), app.name));
    GPUSHARE_RETURN_IF_ERROR(CheckName(absl::StrCat(array.NameOf(i), ".kind"), app.kind));
    out.be.push_back({.name = app.name,
                      .kind = app.kind,
                      .memory_bytes = app.memory_bytes,
                      .weight = app.weight == 0 ? 1 : app.weight,
                      .instances = app.instances});
  }
  return absl::OkStatus();
}

absl::Status ReadPairs(StructReader<gpushare_place_pair> array, Cluster& out) {
  GPUSHARE_RETURN_IF_ERROR(array.Check(kPairRowsMax));
  out.pairs.reserve(array.count());
  for (size_t i = 0; i < array.count(); ++i) {
    gpushare_place_pair row;
    GPUSHARE_RETURN_IF_ERROR(array.Read(i, &row));
    GPUSHARE_RETURN_IF_ERROR(CheckReserved(array.NameOf(i), row.reserved));
    GPUSHARE_RETURN_IF_ERROR(CheckName(absl::StrCat(array.NameOf(i), ".lc"), row.lc));
    GPUSHARE_RETURN_IF_ERROR(CheckName(absl::StrCat(array.NameOf(i), ".be"), row.be));
    if (row.p99_ratio == 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("The pair '", row.lc, "' beside '", row.be,
                       "' has the p99_ratio 0, and it must be given; 1 is the p99 alone."));
    }
    out.pairs.push_back({.lc = row.lc,
                         .be = row.be,
                         .load = row.load,
                         .p99_ratio = row.p99_ratio,
                         .p99_error = row.p99_error,
                         .be_rate = row.be_rate,
                         .be_error = row.be_error});
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PlaceOptions> PlaceOptionsOf(const gpushare_place_options& options) {
  if (options.algorithm < GPUSHARE_PLACE_ASSIGNMENT || options.algorithm > GPUSHARE_PLACE_RANDOM) {
    return absl::InvalidArgumentError(
        absl::StrCat("place_options.algorithm is ", options.algorithm,
                     ", and it must be from 0 (assignment) to 3 (random)."));
  }
  GPUSHARE_RETURN_IF_ERROR(CheckBool("place_options.ignore_bounds", options.ignore_bounds));
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("place_options", options.reserved));
  PlaceOptions out;
  out.algorithm = kAlgorithms[options.algorithm];
  out.explain = false;  // the result has no reasons
  out.moves_max = options.moves_max;
  if (options.seed != 0) out.seed = options.seed;
  models::placement::Valuation& valuation = out.valuation;
  valuation.error_bars = NumberOf(options.error_bars, valuation.error_bars);
  valuation.risk = NumberOf(options.risk, valuation.risk);
  valuation.free_gpu = NumberOf(options.free_gpu, valuation.free_gpu);
  valuation.keep_bounds = options.ignore_bounds == 0;
  return out;
}

absl::StatusOr<Cluster> ClusterOf(const gpushare_place_options& options,
                                  const PlaceArrays& arrays) {
  Cluster out;
  if (options.together != GPUSHARE_PLACE_IN_TURNS && options.together != GPUSHARE_PLACE_AT_ONCE) {
    return absl::InvalidArgumentError(absl::StrCat("place_options.together is ", options.together,
                                                   ", and it is 0 (in turns) or 1 (at once)."));
  }
  out.together =
      options.together == GPUSHARE_PLACE_AT_ONCE ? Together::kAtOnce : Together::kInTurns;
  if (options.be_per_gpu != 0) out.be_per_gpu = options.be_per_gpu;
  GPUSHARE_RETURN_IF_ERROR(ReadGpus({"gpus", arrays.gpus}, out));
  GPUSHARE_RETURN_IF_ERROR(ReadLc({"lc", arrays.lc}, out));
  GPUSHARE_RETURN_IF_ERROR(ReadBe({"be", arrays.be}, out));
  GPUSHARE_RETURN_IF_ERROR(ReadPairs({"pairs", arrays.pairs}, out));
  GPUSHARE_RETURN_IF_ERROR(models::placement::Check(out));
  return out;
}

}  // namespace gpushare::abi
