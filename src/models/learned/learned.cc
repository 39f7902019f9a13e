// The text of what was learned; see learned.h.

#include "src/models/learned/learned.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "src/core/base/limits.h"
#include "src/core/base/status.h"
#include "src/models/fused/fused_model.h"
#include "src/models/json/json_fields.h"
#include "src/models/learned/json_co_resident.h"
#include "src/models/learned/json_library.h"
#include "src/models/profile/profile_limits.h"

namespace gpushare::models {
namespace {

constexpr int64_t kSchemaVersion = 1;
constexpr double kMaxCount = 9e15;
constexpr double kMaxX = static_cast<double>(core::kMaxCopyBytes);
// Weights are 1 / y^2 with y of at least 1 ns and forgetting over 64 samples.
constexpr double kMaxWeight = 1e3;
constexpr double kMaxCovariance = kMaxWeight * kMaxX * kMaxX;

const Field<LinearState> kLinearFields[] = {
    {"samples", &LinearState::samples, 0, kMaxCount},
    {"weight", &LinearState::weight, 0, kMaxWeight},
    {"mean_x", &LinearState::mean_x, 0, kMaxX},
    {"mean_y_ns", &LinearState::mean_y_ns, 0, kDurationMaxNs},
    {"mean_base_ns", &LinearState::mean_base_ns, 0, kDurationMaxNs},
    {"covariance_xx", &LinearState::covariance_xx, 0, kMaxCovariance},
    {"covariance_xy", &LinearState::covariance_xy, -kMaxCovariance, kMaxCovariance},
    {"has_line", &LinearState::has_line},
    {"line_intercept_ns", &LinearState::line_intercept_ns, -kDurationMaxNs, kDurationMaxNs},
    {"line_slope_ns", &LinearState::line_slope_ns, 0, kDurationMaxNs},
    {"squared_error", &LinearState::squared_error, 0, 1},
    {"refits", &LinearState::refits, 0, kMaxCount},
};

const Field<EvictionState> kEvictionFields[] = {
    {"mean_ns", &EvictionState::mean_ns, 0, kDurationMaxNs},
    {"error_ns", &EvictionState::error_ns, 0, kDurationMaxNs},
    {"trained", &EvictionState::trained},
};

constexpr double kMaxFactor = 10;

const Field<FollowedMean> kFactorFields[] = {
    {"samples", &FollowedMean::samples, 0, kMaxCount},
    {"mean", &FollowedMean::mean, 0, kMaxFactor},
};

// Below 0: queries ended earlier than predicted.
const Field<FollowedMean> kDelayFields[] = {
    {"samples", &FollowedMean::samples, 0, kMaxCount},
    {"mean", &FollowedMean::mean, -kDurationMaxNs, kDurationMaxNs},
};

const Field<LearnedPair> kPairFields[] = {
    {"kernel", &LearnedPair::kernel, 1, core::kMaxNameBytes},
    {"neighbour", &LearnedPair::neighbour, 1, core::kMaxNameBytes},
    {"sms", &LearnedPair::sms, 1, kSmsMax},
    {"speed", ObjectField<LearnedPair, FollowedMean, &LearnedPair::speed, kFactorFields>()},
};

constexpr int64_t kCoRunsMax =
    static_cast<int64_t>(CoRunSpeeds::kPairsMax * CoRunSpeeds::kPointsMax);

const Field<CoRunMean> kCoRunMeanFields[] = {
    {"samples", &CoRunMean::samples, 1, kMaxCount},
    {"speed", &CoRunMean::speed, 1e-3, 1},
    {"squared_error", &CoRunMean::squared_error, 0, kMaxCount},
};

const Field<CoRunPoint> kCoRunPointFields[] = {
    {"workers", &CoRunPoint::workers, 1, kWorkersOfSmMax},
    {"neighbour_workers", &CoRunPoint::neighbour_workers, 1, kWorkersOfSmMax},
    {"mean", ObjectField<CoRunPoint, CoRunMean, &CoRunPoint::mean, kCoRunMeanFields>()},
};

const Field<LearnedCoRun> kCoRunFields[] = {
    {"kernel", &LearnedCoRun::kernel, 1, core::kMaxNameBytes},
    {"neighbour", &LearnedCoRun::neighbour, 1, core::kMaxNameBytes},
    {"point", ObjectField<LearnedCoRun, CoRunPoint, &LearnedCoRun::point, kCoRunPointFields>()},
};

const Field<Learned>::Custom kCoRunsField = {
    ListField<Learned, LearnedCoRun, &Learned::co_runs, kCoRunFields, kCoRunsMax>().parse,
    ListField<Learned, LearnedCoRun, &Learned::co_runs, kCoRunFields, kCoRunsMax>().format,
    [](const Learned& in) { return in.co_runs.empty(); },
};

constexpr Field<LearnedKernel>::Custom kSegmentsField = {
    [](const JsonValue& value, const JsonPath& path, LearnedKernel& out) {
      return ReadInteger(value, path, 0, core::kMaxSegments, out.segments);
    },
    [](const LearnedKernel& in, JsonWriter& json) { json.Write(in.segments); },
    [](const LearnedKernel& in) { return in.segments == 0; },
};

// Weights multiply shares between 0 and 1.
constexpr double kMaxNeighbourWeight = 1e6;
// Sizes of the lists of other features, in older profiles.
constexpr std::array<size_t, 2> kFormerWeights = {9, 13};
constexpr size_t kMostWeights = 13;

absl::Status ReadWeights(const JsonValue& value, const JsonPath& path, NeighbourState& out) {
  std::array<double, kMostWeights> weights = {};
  size_t count = 0;
  GPUSHARE_RETURN_IF_ERROR(ReadArray(value, path, static_cast<int64_t>(weights.size()),
                                     [&](const JsonValue& element, const JsonPath& at) {
                                       return ReadDouble(element, at, -kMaxNeighbourWeight,
                                                         kMaxNeighbourWeight, weights[count++]);
                                     }));
  out.known = count == out.weights.size();
  if (out.known) {
    std::copy_n(weights.begin(), out.weights.size(), out.weights.begin());
    return absl::OkStatus();
  }
  // Weights of former features say nothing until the profile is trained again.
  const bool former =
      std::find(kFormerWeights.begin(), kFormerWeights.end(), count) != kFormerWeights.end();
  if (former) return absl::OkStatus();
  return KeyError(path, absl::StrCat("has ", count, " numbers, and a neighbour model has ",
                                     out.weights.size(), "."));
}

void WriteWeights(const NeighbourState& in, JsonWriter& json) {
  json.BeginArray();
  for (const double weight : in.weights) json.Write(weight);
  json.EndArray();
}

const Field<NeighbourState> kNeighbourFields[] = {
    {"weights", Field<NeighbourState>::Custom{ReadWeights, WriteWeights}},
    {"error", &NeighbourState::error, 0, 1},
    {"small_error", &NeighbourState::small_error, 0, 1},
};

constexpr Field<LearnedKernel>::Custom kNeighboursField = {
    [](const JsonValue& value, const JsonPath& path, LearnedKernel& out) {
      return ReadObject<NeighbourState>(kNeighbourFields, value, path, out.neighbours);
    },
    [](const LearnedKernel& in, JsonWriter& json) {
      WriteObject<NeighbourState>(kNeighbourFields, in.neighbours, json);
    },
    [](const LearnedKernel& in) { return !in.neighbours.known; },
};

// Of the time of the TC part.
constexpr double kMaxLoadRatio = 1000;

const Field<FusedPoint> kFusedPointFields[] = {
    {"load_ratio", &FusedPoint::load_ratio, 0, kMaxLoadRatio},
    {"duration_ratio", &FusedPoint::duration_ratio, 0, kMaxLoadRatio},
};

const Field<LearnedFused> kFusedFields[] = {
    {"name", &LearnedFused::name, 1, core::kMaxNameBytes},
    {"error", &LearnedFused::error, 0, 1},
    {"points", ListField<LearnedFused, FusedPoint, &LearnedFused::points, kFusedPointFields,
                         FusedModel::kPoints>()},
};

const Field<Learned>::Custom kFusedListField = {
    ListField<Learned, LearnedFused, &Learned::fused, kFusedFields, core::kMaxKernels>().parse,
    ListField<Learned, LearnedFused, &Learned::fused, kFusedFields, core::kMaxKernels>().format,
    [](const Learned& in) { return in.fused.empty(); },
};

constexpr Field<Learned>::Custom kCoResidentField = {
    [](const JsonValue& value, const JsonPath& path, Learned& out) {
      return ReadCoResident(value, path, out.co_resident);
    },
    [](const Learned& in, JsonWriter& json) { WriteCoResident(in.co_resident, json); },
    [](const Learned& in) { return !in.co_resident.known(); },
};

const Field<Learned>::Custom kLibraryField = {
    [](const JsonValue& value, const JsonPath& path, Learned& out) {
      return ReadLibrary(value, path, out.library);
    },
    [](const Learned& in, JsonWriter& json) { WriteLibrary(in.library, json); },
    [](const Learned& in) { return in.library.classes.empty(); },
};

const Field<SizeTable::Point> kSizeFields[] = {
    {"samples", &SizeTable::Point::samples, 0, kMaxCount},
    // Means of logarithms: twice the largest value, because they round.
    {"size", &SizeTable::Point::size, 0, 2 * kMaxX},
    {"ratio", &SizeTable::Point::ratio, 0, 2 * kDurationMaxNs},
};

const Field<QueryModelState> kQueryModelFields[] = {
    {"samples", &QueryModelState::samples, 0, kMaxCount},
    {"line_error", &QueryModelState::line_error, 0, 1},
    {"table_error", &QueryModelState::table_error, 0, 1},
    {"line", ObjectField<QueryModelState, LinearState, &QueryModelState::line, kLinearFields>()},
    {"table", ListField<QueryModelState, SizeTable::Point, &QueryModelState::table, kSizeFields,
                        SizeTable::kPointsMax>()},
};

const Field<LearnedQueries> kQueriesFields[] = {
    {"app", &LearnedQueries::app, 1, core::kMaxNameBytes},
    {"model",
     ObjectField<LearnedQueries, QueryModelState, &LearnedQueries::model, kQueryModelFields>()},
};

const Field<Learned>::Custom kQueriesField = {
    ListField<Learned, LearnedQueries, &Learned::queries, kQueriesFields, core::kMaxKernels>()
        .parse,
    ListField<Learned, LearnedQueries, &Learned::queries, kQueriesFields, core::kMaxKernels>()
        .format,
    [](const Learned& in) { return in.queries.empty(); },
};

const Field<SizeRatio> kSizeRatioFields[] = {
    {"block_tasks", &SizeRatio::block_tasks, 0, kMaxX},
    {"ratio", &SizeRatio::ratio, 0, DurationShape::kRatioMax},
};

const Field<DurationShape> kShapeFields[] = {
    {"round", &DurationShape::round, 0, kSmsMax},
    {"ratios", ListField<DurationShape, SizeRatio, &DurationShape::ratios, kSizeRatioFields,
                         DurationShape::kRatiosMax>()},
};

const Field<LearnedKernel>::Custom kShapeField = {
    ObjectField<LearnedKernel, DurationShape, &LearnedKernel::shape, kShapeFields>().parse,
    ObjectField<LearnedKernel, DurationShape, &LearnedKernel::shape, kShapeFields>().format,
    [](const LearnedKernel& in) { return in.shape.IsLine(); },
};

struct CopySpeed {
  int32_t copies = 0;
  FollowedMean speed;
};
const Field<CopySpeed> kCopySpeedFields[] = {
    {"copies", &CopySpeed::copies, 1, core::kLinkUses - 1},
    {"speed", ObjectField<CopySpeed, FollowedMean, &CopySpeed::speed, kFactorFields>()},
};

bool IsNone(const FollowedMean& speed) { return speed.samples == 0; }

// Those that were measured.
constexpr Field<LearnedKernel>::Custom kBesideCopiesField = {
    [](const JsonValue& value, const JsonPath& path, LearnedKernel& out) {
      return ReadArray(
          value, path, core::kLinkUses,
          [&out](const JsonValue& element, const JsonPath& at) -> absl::Status {
            CopySpeed one;
            GPUSHARE_RETURN_IF_ERROR(ReadObject<CopySpeed>(kCopySpeedFields, element, at, one));
            out.beside_copies[static_cast<size_t>(one.copies)] = one.speed;
            return absl::OkStatus();
          });
    },
    [](const LearnedKernel& in, JsonWriter& json) {
      json.BeginArray();
      for (size_t copies = 0; copies < core::kLinkUses; ++copies) {
        if (IsNone(in.beside_copies[copies])) continue;
        const CopySpeed one{static_cast<int32_t>(copies), in.beside_copies[copies]};
        WriteObject<CopySpeed>(kCopySpeedFields, one, json);
      }
      json.EndArray();
    },
    [](const LearnedKernel& in) {
      return std::all_of(in.beside_copies.begin(), in.beside_copies.end(), IsNone);
    },
};

const Field<LearnedKernel> kKernelFields[] = {
    {"name", &LearnedKernel::name, 1, core::kMaxNameBytes},
    {"segments", kSegmentsField},
    {"blocking",
     ObjectField<LearnedKernel, FollowedMean, &LearnedKernel::blocking, kDelayFields>()},
    {"solo", ObjectField<LearnedKernel, LinearState, &LearnedKernel::solo, kLinearFields>()},
    {"shape", kShapeField},
    {"eviction",
     ObjectField<LearnedKernel, EvictionState, &LearnedKernel::eviction, kEvictionFields>()},
    {"neighbours", kNeighboursField},
    {"beside_copies", kBesideCopiesField},
};

const Field<CopyTable> kCopyTableFields[] = {
    {"samples", &CopyTable::samples, 0, kMaxCount},
    {"error", &CopyTable::error, 0, 1},
    {"points", ListField<CopyTable, SizeTable::Point, &CopyTable::points, kSizeFields,
                         SizeTable::kPointsMax>()},
};

const Field<LearnedCopies>::Custom kCopyTableField = {
    ObjectField<LearnedCopies, CopyTable, &LearnedCopies::table, kCopyTableFields>().parse,
    ObjectField<LearnedCopies, CopyTable, &LearnedCopies::table, kCopyTableFields>().format,
    [](const LearnedCopies& in) { return in.table.points.empty(); },
};

const Field<LearnedCopies> kCopiesFields[] = {
    {"direction", &LearnedCopies::direction, 0, 3},
    {"pinned", &LearnedCopies::pinned},
    {"line", ObjectField<LearnedCopies, LinearState, &LearnedCopies::line, kLinearFields>()},
    {"table", kCopyTableField},
};

const Field<Learned> kLearnedFields[] = {
    {"schema_version", VersionField<Learned, kSchemaVersion>()},
    {"kernels",
     ListField<Learned, LearnedKernel, &Learned::kernels, kKernelFields, core::kMaxKernels>()},
    {"copies",
     ListField<Learned, LearnedCopies, &Learned::copies, kCopiesFields, core::kMaxKernels>()},
    {"pairs", ListField<Learned, LearnedPair, &Learned::pairs, kPairFields, kMaxPairs>()},
    {"fused", kFusedListField},
    {"co_resident", kCoResidentField},
    {"co_runs", kCoRunsField},
    {"library", kLibraryField},
    {"queries", kQueriesField},
};

}  // namespace

absl::StatusOr<Learned> ParseLearned(const std::string& text) {
  GPUSHARE_ASSIGN_OR_RETURN(const JsonDocument json,
                            ParseStrictJson(text, "The learned model", kLearnedBytesMax));
  return ReadLearned(json);
}

absl::StatusOr<Learned> ReadLearned(const JsonDocument& json) {
  Learned learned;
  GPUSHARE_RETURN_IF_ERROR(ReadObject<Learned>(kLearnedFields, json.root(), "", learned));
  if (!json.root().Has("schema_version")) {
    return KeyError("schema_version", "is missing, and a learned model must have it.");
  }
  for (size_t i = 0; i < learned.kernels.size(); ++i) {
    if (learned.kernels[i].name.empty()) {
      return KeyError(absl::StrCat("kernels[", i, "]"), "needs a 'name'.");
    }
  }
  return learned;
}

std::string FormatLearned(const Learned& learned) {
  std::string text;
  JsonWriter json(text, -1);
  WriteObject<Learned>(kLearnedFields, learned, json);
  return text;
}

}  // namespace gpushare::models
