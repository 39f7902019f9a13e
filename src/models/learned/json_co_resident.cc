// Kernels, workers and weighted pairs as JSON; see json_co_resident.h.

#include "src/models/learned/json_co_resident.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "src/core/base/status.h"
#include "src/models/profile/profile_limits.h"

namespace gpushare::models {
namespace {

using co_resident::KernelFeatures;
using co_resident::State;
using co_resident::WeightedPair;
using co_resident::Workers;

// Shares are below it, and so are the scaled logarithms of all doubles.
constexpr double kFeatureMax = 100;
// Weights are roots of speeds over the variance of a measurement; an H200's are below 3.
constexpr double kWeightMax = 1e6;

// Rows of `width` numbers, one after the other: thousands of objects would take three times the
// text. `read(element, path, column)` begins a row with column 0.
template <class Read>
absl::Status ReadRows(const JsonValue& value, const JsonPath& path, size_t rows_max, size_t width,
                      Read read) {
  size_t count = 0;
  GPUSHARE_RETURN_IF_ERROR(ReadArray(value, path, static_cast<int64_t>(rows_max * width),
                                     [&](const JsonValue& element, const JsonPath& at) {
                                       return read(element, at, count++ % width);
                                     }));
  if (count % width == 0) return absl::OkStatus();
  return KeyError(path, absl::StrCat("has ", count, " numbers, and its rows have ", width, "."));
}

absl::Status ReadIndex(const JsonValue& value, const JsonPath& path, double max, int32_t& out) {
  int64_t number = 0;
  GPUSHARE_RETURN_IF_ERROR(ReadInteger(value, path, 0, max, number));
  out = static_cast<int32_t>(number);
  return absl::OkStatus();
}

absl::Status ReadFeatures(const JsonValue& value, const JsonPath& path, KernelFeatures& out) {
  size_t count = 0;
  GPUSHARE_RETURN_IF_ERROR(
      ReadRows(value, path, 1, out.values.size(),
               [&](const JsonValue& element, const JsonPath& at, size_t column) {
                 ++count;
                 return ReadDouble(element, at, 0, kFeatureMax, out.values[column]);
               }));
  return count > 0 ? absl::OkStatus() : KeyError(path, "is empty, and a kernel has features.");
}

void WriteFeatures(const KernelFeatures& in, JsonWriter& json) {
  json.BeginArray();
  for (const double feature : in.values) json.Write(feature);
  json.EndArray();
}

absl::Status ReadWorkers(const JsonValue& value, const JsonPath& path, State& out) {
  out.workers.clear();
  return ReadRows(value, path, co_resident::kWorkersMax, 2,
                  [&](const JsonValue& element, const JsonPath& at, size_t column) {
                    if (column == 0) out.workers.emplace_back();
                    Workers& row = out.workers.back();
                    return ReadIndex(element, at, kWorkersOfSmMax,
                                     column == 0 ? row.kernel : row.per_sm);
                  });
}

void WriteWorkers(const State& in, JsonWriter& json) {
  json.BeginArray();
  for (const Workers& row : in.workers) {
    json.Write(row.kernel);
    json.Write(row.per_sm);
  }
  json.EndArray();
}

absl::Status ReadPairs(const JsonValue& value, const JsonPath& path, State& out) {
  out.pairs.clear();
  return ReadRows(value, path, co_resident::kPairsMax, 3,
                  [&](const JsonValue& element, const JsonPath& at, size_t column) {
                    if (column == 0) out.pairs.emplace_back();
                    WeightedPair& row = out.pairs.back();
                    if (column == 2) {
                      return ReadDouble(element, at, -kWeightMax, kWeightMax, row.weight);
                    }
                    return ReadIndex(element, at, static_cast<double>(co_resident::kWorkersMax),
                                     column == 0 ? row.timed : row.neighbour);
                  });
}

void WritePairs(const State& in, JsonWriter& json) {
  json.BeginArray();
  for (const WeightedPair& row : in.pairs) {
    json.Write(row.timed);
    json.Write(row.neighbour);
    json.Write(row.weight);
  }
  json.EndArray();
}

const Field<KernelFeatures> kKernelFields[] = {
    {"workers_per_sm_max", &KernelFeatures::workers_per_sm_max, 1, kWorkersOfSmMax},
    {"features", Field<KernelFeatures>::Custom{ReadFeatures, WriteFeatures}},
};

const Field<State> kStateFields[] = {
    {"error", &State::error, 0, 1},
    {"new_kernel_error", &State::new_kernel_error, 0, 1},
    {"kernels", ListField<State, KernelFeatures, &State::kernels, kKernelFields,
                          static_cast<int64_t>(co_resident::kKernelsMax)>()},
    {"workers", Field<State>::Custom{ReadWorkers, WriteWorkers}},
    {"pairs", Field<State>::Custom{ReadPairs, WritePairs}},
};

absl::Status Unlisted(const JsonPath& path, absl::string_view list, size_t row,
                      absl::string_view what) {
  return KeyError(absl::StrCat(path, ".", list), absl::StrCat("has in row ", row, " ", what));
}

absl::Status CheckState(const State& state, const JsonPath& path) {
  for (size_t i = 0; i < state.kernels.size(); ++i) {
    const KernelFeatures& kernel = state.kernels[i];
    if (kernel.workers_per_sm_max < 1 || !(co_resident::SpeedAlone(kernel, 1) > 0)) {
      return Unlisted(path, "kernels", i, "a kernel without workers or occupancy.");
    }
  }
  for (size_t i = 0; i < state.workers.size(); ++i) {
    const Workers& workers = state.workers[i];
    if (static_cast<size_t>(workers.kernel) >= state.kernels.size()) {
      return Unlisted(path, "workers", i, "a kernel that 'kernels' has not.");
    }
    const auto kernel = static_cast<size_t>(workers.kernel);
    if (workers.per_sm < 1 || workers.per_sm > state.kernels[kernel].workers_per_sm_max) {
      return Unlisted(path, "workers", i, "more or fewer workers than an SM holds.");
    }
  }
  for (size_t i = 0; i < state.pairs.size(); ++i) {
    const WeightedPair& pair = state.pairs[i];
    if (static_cast<size_t>(std::max(pair.timed, pair.neighbour)) >= state.workers.size()) {
      return Unlisted(path, "pairs", i, "workers that 'workers' has not.");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadCoResident(const JsonValue& value, const JsonPath& path, State& out) {
  GPUSHARE_RETURN_IF_ERROR(ReadObject<State>(kStateFields, value, path, out));
  return CheckState(out, path);
}

void WriteCoResident(const State& in, JsonWriter& json) {
  WriteObject<State>(kStateFields, in, json);
}

}  // namespace gpushare::models
