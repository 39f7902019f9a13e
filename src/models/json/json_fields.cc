// The readers behind the field tables; see json_fields.h.

#include "src/models/json/json_fields.h"

#include <cmath>

namespace gpushare::models {
namespace {

// Ranges of integer fields are printed as integers.
std::string ShowNumber(double value) {
  const bool whole = std::floor(value) == value && std::abs(value) < 9e15;
  return whole ? absl::StrCat(static_cast<int64_t>(value)) : absl::StrCat(value);
}

absl::Status OutOfRange(const JsonPath& path, const JsonValue& value, double min, double max) {
  return KeyError(path, absl::StrCat("is ", ShowJson(value), ", and it must be from ",
                                     ShowNumber(min), " to ", ShowNumber(max), "."));
}

}  // namespace

absl::Status WrongType(const JsonPath& path, const JsonValue& value, absl::string_view wanted) {
  const std::string shown_path = path.empty() ? "(the document)" : path.text();
  return KeyError(shown_path,
                  absl::StrCat("is ", ShowJson(value), ", and it must be ", wanted, "."));
}

absl::Status ReadInteger(const JsonValue& value, const JsonPath& path, double min, double max,
                         int64_t& out) {
  if (!value.is_whole()) return WrongType(path, value, "a whole number");
  const double approximate = value.number();
  if (approximate < min || approximate > max) return OutOfRange(path, value, min, max);
  out = value.whole();
  return absl::OkStatus();
}

absl::Status ReadDouble(const JsonValue& value, const JsonPath& path, double min, double max,
                        double& out) {
  if (!value.is_number()) return WrongType(path, value, "a number");
  const double number = value.number();
  if (!(number >= min && number <= max)) return OutOfRange(path, value, min, max);
  out = number;
  return absl::OkStatus();
}

absl::Status ReadBool(const JsonValue& value, const JsonPath& path, bool& out) {
  if (!value.is_bool()) return WrongType(path, value, "true or false");
  out = value.truth();
  return absl::OkStatus();
}

absl::Status ReadString(const JsonValue& value, const JsonPath& path, double min, double max,
                        std::string& out) {
  if (!value.is_text()) return WrongType(path, value, "a string");
  const absl::string_view text = value.text();
  const double length = static_cast<double>(text.size());
  if (length < min || length > max) {
    return KeyError(path, absl::StrCat("has ", text.size(), " bytes, and it must have from ",
                                       ShowNumber(min), " to ", ShowNumber(max), "."));
  }
  out = std::string(text);
  return absl::OkStatus();
}

}  // namespace gpushare::models
