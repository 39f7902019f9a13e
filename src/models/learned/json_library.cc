// Library calls in the learned text; see json_library.h.

#include "src/models/learned/json_library.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "src/core/base/status.h"
#include "src/models/library/feature_line.h"
#include "src/models/library/library_features.h"
#include "src/models/library/library_limits.h"

namespace gpushare::models {
namespace {

using core::LibraryCall;

constexpr int64_t kSizeMax = 1 << 30;  // as in a samples file
constexpr int64_t kTypeMost = 2;
constexpr int64_t kModeMost = 5;
constexpr double kValueUnit = 1000;
constexpr int64_t kValueMost = 64'000;  // 2^64 times the least time
constexpr double kWeightMax = 1e6;
constexpr double kReachMax = 1e6;
// A row has 13 numbers of at most ten digits.
constexpr size_t kRowsBytesMax = kLibraryRowsMax * size_t{13} * 11;

constexpr const char* kMethodWords[] = {"none", "line", "neighbours", "line_and_neighbours"};

constexpr int64_t LibraryCall::*kProductSizes[] = {&LibraryCall::batch, &LibraryCall::m,
                                                   &LibraryCall::n, &LibraryCall::k};
constexpr int64_t LibraryCall::*kOtherSizes[] = {
    &LibraryCall::batch,        &LibraryCall::channels, &LibraryCall::height,
    &LibraryCall::width,        &LibraryCall::filters,  &LibraryCall::filter_height,
    &LibraryCall::filter_width, &LibraryCall::padding,  &LibraryCall::stride,
    &LibraryCall::dilation,     &LibraryCall::groups};

core::LibraryOperation OperationOf(size_t call_class) {
  return static_cast<core::LibraryOperation>(call_class * kLibraryOperations / kLibraryClasses);
}

absl::Span<int64_t LibraryCall::*const> SizesOf(core::LibraryOperation operation) {
  if (operation == core::LibraryOperation::kMatmul) return kProductSizes;
  return kOtherSizes;
}

int64_t FlagsOf(const LibraryCall& call) {
  return static_cast<int64_t>(call.type) + (call.channels_last ? 4 : 0) +
         (call.transpose_a ? 8 : 0) + (call.transpose_b ? 16 : 0) +
         32 * static_cast<int64_t>(call.mode);
}

bool TakeFlags(int64_t flags, LibraryCall& call) {
  if (flags < 0 || flags % 4 > kTypeMost || flags / 32 > kModeMost) return false;
  call.type = static_cast<core::DataType>(flags % 4);
  call.channels_last = (flags & 4) != 0;
  call.transpose_a = (flags & 8) != 0;
  call.transpose_b = (flags & 16) != 0;
  call.mode = static_cast<core::LibraryMode>(flags / 32);
  return true;
}

// The number that `text` begins with, and the character behind it; false without either.
bool TakeNumber(absl::string_view& text, char end, int64_t& out) {
  const char* const last = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), last, out);
  if (error != std::errc() || at == last || *at != end) return false;
  text.remove_prefix(static_cast<size_t>(at - text.data()) + 1);
  return true;
}

bool TakeRow(core::LibraryOperation operation, absl::string_view& text, LibraryRow& row) {
  int64_t value = 0;
  int64_t flags = 0;
  if (!TakeNumber(text, ',', value) || std::abs(value) > kValueMost) return false;
  if (!TakeNumber(text, ',', flags) || !TakeFlags(flags, row.call)) return false;
  row.value = static_cast<double>(value) / kValueUnit;
  row.call.operation = operation;
  const auto sizes = SizesOf(operation);
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t& size = row.call.*sizes[i];
    if (!TakeNumber(text, i + 1 < sizes.size() ? ',' : ';', size)) return false;
    if (size < 0 || size > kSizeMax) return false;
  }
  return true;
}

absl::Status ReadRows(const JsonValue& value, const JsonPath& path, LibraryClass& out) {
  if (!value.is_text() || value.text().size() > kRowsBytesMax) {
    return WrongType(path, value, "a text of rows");
  }
  absl::string_view text = value.text();
  out.rows.clear();
  while (!text.empty()) {
    if (out.rows.size() == kLibraryRowsMax) {
      return KeyError(path, absl::StrCat("has more than ", kLibraryRowsMax, " rows."));
    }
    LibraryRow row;
    if (!TakeRow(OperationOf(out.call_class), text, row)) {
      return KeyError(path, absl::StrCat("has a bad row at ", ShowText(text.substr(0, 40)), "."));
    }
    out.rows.push_back(row);
  }
  return absl::OkStatus();
}

void WriteRows(const LibraryClass& in, JsonWriter& json) {
  std::string text;
  for (const LibraryRow& row : in.rows) {
    const int64_t value =
        std::clamp<int64_t>(std::llround(row.value * kValueUnit), -kValueMost, kValueMost);
    absl::StrAppend(&text, value, ",", FlagsOf(row.call));
    for (const auto size : SizesOf(row.call.operation)) {
      absl::StrAppend(&text, ",", row.call.*size);
    }
    text += ';';
  }
  json.Write(text);
}

absl::Status ReadClass(const JsonValue& value, const JsonPath& path, LibraryClass& out) {
  constexpr size_t kFirst = kLibraryClasses / kLibraryOperations;
  int64_t index = 0;
  GPUSHARE_RETURN_IF_ERROR(ReadInteger(value, path, kFirst, kLibraryClasses - 1, index));
  out.call_class = static_cast<size_t>(index);
  return absl::OkStatus();
}

absl::Status ReadWeights(const JsonValue& value, const JsonPath& path, LibraryClass& out) {
  out.weights.clear();
  return ReadArray(
      value, path, FeatureLine::kTerms, [&](const JsonValue& element, const JsonPath& at) {
        return ReadDouble(element, at, -kWeightMax, kWeightMax, out.weights.emplace_back());
      });
}

void WriteWeights(const LibraryClass& in, JsonWriter& json) {
  json.BeginArray();
  for (const double weight : in.weights) json.Write(weight);
  json.EndArray();
}

// `class` stands before `rows`, which are read by it; CheckClass refuses another order.
const Field<LibraryClass> kClassFields[] = {
    {"class", Field<LibraryClass>::Custom{ReadClass,
                                          [](const LibraryClass& in, JsonWriter& json) {
                                            json.Write(static_cast<int64_t>(in.call_class));
                                          }}},
    {"method", WordField<LibraryClass, LibraryMethod, &LibraryClass::method, kMethodWords>()},
    {"error", &LibraryClass::error, 0, 1e3},
    {"reach", &LibraryClass::reach, 0, kReachMax},
    {"least_ratio", &LibraryClass::least_ratio, -64, 64},
    {"most_ratio", &LibraryClass::most_ratio, -64, 64},
    {"weights",
     Field<LibraryClass>::Custom{ReadWeights, WriteWeights,
                                 [](const LibraryClass& in) { return in.weights.empty(); }}},
    {"rows", Field<LibraryClass>::Custom{ReadRows, WriteRows}},
};

absl::Status CheckClass(const LibraryClass& one, const JsonPath& path) {
  if (one.method == LibraryMethod::kNone || one.call_class == 0) {
    return KeyError(path, "needs a 'class' and a 'method'.");
  }
  for (const LibraryRow& row : one.rows) {
    if (row.call.operation == OperationOf(one.call_class)) continue;
    return KeyError(absl::StrCat(path, ".class"), "stands behind 'rows', and they depend on it.");
  }
  const size_t terms = one.method == LibraryMethod::kNeighbours ? 0 : FeatureLine::kTerms;
  if (one.weights.size() != terms) {
    return KeyError(
        absl::StrCat(path, ".weights"),
        absl::StrCat("has ", one.weights.size(), " numbers, and the method needs ", terms, "."));
  }
  if (one.least_ratio > one.most_ratio) {
    return KeyError(absl::StrCat(path, ".least_ratio"), "is above 'most_ratio'.");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadLibrary(const JsonValue& value, const JsonPath& path, LibraryState& out) {
  out.classes.clear();
  std::array<bool, kLibraryClasses> seen = {};
  return ReadArray(value, path, kLibraryClasses, [&](const JsonValue& element, const JsonPath& at) {
    LibraryClass& one = out.classes.emplace_back();
    GPUSHARE_RETURN_IF_ERROR(ReadObject<LibraryClass>(kClassFields, element, at, one));
    GPUSHARE_RETURN_IF_ERROR(CheckClass(one, at));
    if (!seen[one.call_class]) {
      seen[one.call_class] = true;
      return absl::OkStatus();
    }
    return KeyError(at, absl::StrCat("is class ", one.call_class, ", as an earlier one is."));
  });
}

void WriteLibrary(const LibraryState& in, JsonWriter& json) {
  WriteArray<LibraryClass>(kClassFields, in.classes, json);
}

}  // namespace gpushare::models
