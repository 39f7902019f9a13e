// One pair of apps as the runtime's cost model predicts it. Threads: any; the model is read between
// two passes of the flow.

#include <gpushare/gpushare.h>

#include <optional>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
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
using models::placement::kPredictedLoadMax;
using models::placement::kRatioMax;
using models::placement::Launches;
using models::placement::LcKind;
using models::placement::PairPrediction;

constexpr size_t kLaunchesMax = 64;
constexpr int32_t kCountMax = 1'000'000;
constexpr double kDefaultBound = 1.05;
// One kind of each class is predicted at a time.
constexpr char kLc[] = "lc";
constexpr char kBe[] = "be";

absl::Status OutOf(absl::string_view field, const absl::AlphaNum& value, absl::string_view range) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is ", value, ", and it must be ", range, "."));
}

// The block tasks of the launch as the flow counts them: a BE graph has its segments.
absl::StatusOr<int64_t> BlockTasksOf(absl::string_view name, const gpushare_pair_launch& launch,
                                     const core::KernelDesc& kernel, bool is_be) {
  if (kernel.kind() == core::TaskKind::kKernel) {
    if (launch.block_tasks >= 1 && launch.block_tasks <= core::kMaxBlockTasks) {
      return launch.block_tasks;
    }
    return OutOf(absl::StrCat(name, ".block_tasks"), launch.block_tasks,
                 "from 1 to 2^40 for a kernel");
  }
  if (launch.block_tasks != 0) {
    return OutOf(absl::StrCat(name, ".block_tasks"), launch.block_tasks,
                 "0 for a graph or a library call");
  }
  return is_be ? kernel.segments() : 1;
}

absl::StatusOr<Launches> LaunchesOf(const RuntimeObject& runtime, absl::string_view name,
                                    const gpushare_pair_launch& launch, bool is_be) {
  GPUSHARE_FIND(kernel, launch.kernel);
  if (kernel->runtime.get() != &runtime) {
    return absl::InvalidArgumentError(
        absl::StrCat(name, ".kernel is registered in another runtime."));
  }
  const int32_t count_max = is_be ? 1 : kCountMax;
  if (launch.count < 0 || launch.count > count_max) {
    return OutOf(absl::StrCat(name, ".count"), launch.count, absl::StrCat("from 0 to ", count_max));
  }
  Launches out = {.kernel = runtime.scheduler->FindKernel(kernel->id),
                  .count = launch.count == 0 ? 1 : launch.count};
  GPUSHARE_ASSIGN_OR_RETURN(out.block_tasks, BlockTasksOf(name, launch, *out.kernel, is_be));
  return out;
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
    GPUSHARE_ASSIGN_OR_RETURN(Launches launches,
                              LaunchesOf(runtime, reader.NameOf(i), launch, false));
    out.query.push_back(launches);
  }
  return out;
}

absl::StatusOr<BeKind> BeOf(const RuntimeObject& runtime, const gpushare_pair_launch* given) {
  gpushare_pair_launch launch;
  GPUSHARE_RETURN_IF_ERROR(ReadOptions("be", given, &launch));
  GPUSHARE_ASSIGN_OR_RETURN(const Launches launches, LaunchesOf(runtime, "be", launch, true));
  return BeKind{kBe, launches.kernel, launches.block_tasks};
}

// The splits that a device with partitions can make.
models::placement::SmCounts SmsOf(const core::DeviceCapabilities& device) {
  models::placement::SmCounts out = {.device = device.profile.sm_count, .of_lc = {}};
  if (!device.partitions) return out;
  out.of_lc.reserve(static_cast<size_t>(device.profile.Groups()));
  for (int32_t groups = 1; groups < device.profile.Groups(); ++groups) {
    out.of_lc.push_back(groups * device.profile.sm_granularity);
  }
  return out;
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
  GPUSHARE_ASSIGN_OR_RETURN(LcKind lc, QueryOf(runtime, query));
  GPUSHARE_ASSIGN_OR_RETURN(BeKind kind, BeOf(runtime, be));
  std::vector<LcKind> lc_kinds;
  lc_kinds.push_back(std::move(lc));
  std::vector<BeKind> be_kinds;
  be_kinds.push_back(std::move(kind));
  models::placement::SmCounts sms = SmsOf(runtime.scheduler->capabilities());
  std::optional<PairPrediction> found;
  // All memory is there before: the flow waits, and nothing in it may fail.
  runtime.scheduler->ReadModel([&](const core::CostModel& model) {
    const CostModelPairs pairs(model.durations(), model.neighbours(), std::move(sms),
                               std::move(lc_kinds), std::move(be_kinds));
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
