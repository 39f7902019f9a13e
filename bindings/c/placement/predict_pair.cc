// One pair of apps as the runtime's cost model predicts it. Threads: any; the model is read between
// two passes of the flow.

#include <gpushare/gpushare.h>

#include <algorithm>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "bindings/c/errors.h"
#include "bindings/c/handles.h"
#include "bindings/c/objects.h"
#include "bindings/c/options.h"
#include "bindings/c/placement/struct_array.h"
#include "src/core/base/status.h"
#include "src/models/placement/cost_model_pairs.h"

namespace gpushare::abi {
namespace {

using models::placement::BeKind;
using models::placement::CostModelPairs;
using models::placement::kLaunchesMax;
using models::placement::kPredictedLoadMax;
using models::placement::kRatioMax;
using models::placement::Launches;
using models::placement::LcKind;
using models::placement::PairPrediction;

constexpr int32_t kCountMax = 1'000'000;
constexpr double kDefaultBound = 1.05;
// One kind of each class is predicted at a time.
constexpr char kLc[] = "lc";
constexpr char kBe[] = "be";

absl::Status OutOf(absl::string_view field, const absl::AlphaNum& value, absl::string_view range) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, ", and it must be ", range, "."));
}

absl::Status CheckBlockTasks(absl::string_view name, const gpushare_pair_launch& launch,
                             core::TaskKind kind) {
  const bool is_kernel = kind == core::TaskKind::kKernel;
  const int64_t least = is_kernel ? 1 : 0;
  const int64_t most = is_kernel ? core::kMaxBlockTasks : 0;
  if (launch.block_tasks >= least && launch.block_tasks <= most) return absl::OkStatus();
  return OutOf(absl::StrCat(name, ".block_tasks"), launch.block_tasks,
               is_kernel ? "from 1 to 2^40 for a kernel" : "0 for a graph or a library call");
}

absl::StatusOr<Launches> LaunchesOf(const RuntimeObject& runtime, absl::string_view name,
                                    const gpushare_pair_launch& launch, int32_t count_max) {
  const auto* const kernel = Find(launch.kernel);
  if (kernel == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ".kernel: ", Bad(launch.kernel).message()));
  }
  if (kernel->runtime.get() != &runtime) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ".kernel is registered in another runtime."));
  }
  if (launch.count < 0 || launch.count > count_max) {
    return OutOf(absl::StrCat(name, ".count"), launch.count, absl::StrCat("from 0 to ", count_max));
  }
  GPUSHARE_RETURN_IF_ERROR(CheckBlockTasks(name, launch, kernel->kind));
  return Launches{.kernel = runtime.scheduler->FindKernel(kernel->id),
                  .block_tasks = launch.block_tasks,
                  .count = std::max(launch.count, 1)};
}

absl::StatusOr<LcKind> QueryOf(const RuntimeObject& runtime,
                               const StructArray<gpushare_pair_launch>& array) {
  StructReader<gpushare_pair_launch> reader("query", array);
  GPUSHARE_RETURN_IF_ERROR(reader.Check(kLaunchesMax));
  if (reader.count() == 0) return OutOf("query_count", 0, "from 1 to 64");
  LcKind out = {kLc, {}};
  out.query.reserve(reader.count());
  for (size_t i = 0; i < reader.count(); ++i) {
    gpushare_pair_launch launch;
    GPUSHARE_RETURN_IF_ERROR(reader.Read(i, &launch));
    GPUSHARE_ASSIGN_OR_RETURN(const Launches launches,
                              LaunchesOf(runtime, reader.NameOf(i), launch, kCountMax));
    out.query.push_back(launches);
  }
  return out;
}

absl::StatusOr<BeKind> BeOf(const RuntimeObject& runtime, const gpushare_pair_launch* given) {
  gpushare_pair_launch launch;
  GPUSHARE_RETURN_IF_ERROR(ReadOptions("be", given, &launch));
  GPUSHARE_ASSIGN_OR_RETURN(const Launches launches, LaunchesOf(runtime, "be", launch, 1));
  return BeKind{kBe, launches.kernel, launches.block_tasks};
}

absl::StatusOr<double> BoundOf(double given) {
  if (given == 0) return kDefaultBound;
  if (given >= 1 && given <= kRatioMax) return given;
  return OutOf("p99_bound", given, "from 1 to 1e6, or 0 for 1.05");
}

absl::Status CheckPair(const gpushare_place_pair& pair) {
  GPUSHARE_RETURN_IF_ERROR(CheckReserved("pair", pair.reserved));
  if (pair.load >= 0 && pair.load < kPredictedLoadMax) return absl::OkStatus();
  return OutOf("pair.load", pair.load,
               absl::StrCat("from 0 to below ", kPredictedLoadMax, ", where queues are stable"));
}

absl::Status PredictPair(RuntimeObject& runtime, const StructArray<gpushare_pair_launch>& query,
                         const gpushare_pair_launch* be, double p99_bound,
                         gpushare_place_pair* inout_pair) {
  gpushare_place_pair pair;
  GPUSHARE_RETURN_IF_ERROR(ReadOptions("pair", inout_pair, &pair));
  GPUSHARE_RETURN_IF_ERROR(CheckPair(pair));
  GPUSHARE_ASSIGN_OR_RETURN(const double bound, BoundOf(p99_bound));
  GPUSHARE_ASSIGN_OR_RETURN(const LcKind lc_kind, QueryOf(runtime, query));
  GPUSHARE_ASSIGN_OR_RETURN(const BeKind be_kind, BeOf(runtime, be));
  std::optional<PairPrediction> found;
  // All memory is there before: the flow waits, and nothing in it may fail.
  runtime.scheduler->ReadModel(
      [&](const core::CostModel& model, absl::Span<const core::SplitView> splits) {
        const CostModelPairs pairs(model.durations(), model.neighbours(), splits, {&lc_kind, 1},
                                   {&be_kind, 1});
        found = pairs.Beside(kLc, pair.load, kBe, bound);
      });
  if (!found) return absl::FailedPreconditionError("The query's kernels take no time.");
  pair.p99_ratio = found->p99_ratio;
  pair.p99_error = found->p99_error;
  pair.be_rate = found->be_rate;
  pair.be_error = found->be_error;
  return WriteResult("pair", pair, inout_pair);
}

}  // namespace
}  // namespace gpushare::abi

gpushare_status gpushare_predict_pair(gpushare_runtime* runtime, const gpushare_pair_launch* query,
                                      size_t query_count, const gpushare_pair_launch* be,
                                      double p99_bound, gpushare_place_pair* inout_pair) noexcept {
  return gpushare::abi::Enter([&]() -> absl::Status {
    GPUSHARE_FIND(object, runtime);
    return gpushare::abi::PredictPair(*object, {query, query_count}, be, p99_bound, inout_pair);
  });
}
