// The readers behind the field tables; see json_fields.h.

#include "src/models/json_fields.h"

#include <cmath>
#include <set>
#include <utility>
#include <vector>

namespace gpushare::models {
namespace {

// A profile nests five deep (kernels, kernel, simulation, nodes, node and its demand). The bound
// keeps a hostile document from using much memory.
constexpr int kMaxNesting = 16;
constexpr size_t kMaxShownBytes = 48;

// What the parser's callback watches: the first key that an object has twice, and the nesting.
struct Watch {
  std::vector<std::set<std::string>> keys;
  std::string duplicate;
  bool too_deep = false;

  bool Event(int depth, nlohmann::detail::parse_event_t event, const Json& parsed) {
    using Type = nlohmann::detail::parse_event_t;
    if (depth > kMaxNesting) {
      too_deep = true;
      return false;
    }
    const size_t level = static_cast<size_t>(depth);
    if (event == Type::object_start) {
      keys.resize(level + 2);
      keys[level + 1].clear();
    } else if (event == Type::key) {
      const std::string& key = parsed.get_ref<const std::string&>();
      if (level >= keys.size()) keys.resize(level + 1);
      if (!keys[level].insert(key).second && duplicate.empty()) duplicate = key;
    }
    return true;
  }
};

// Ranges of integer fields are printed as integers.
std::string ShowNumber(double value) {
  const bool whole = std::floor(value) == value && std::abs(value) < 9e15;
  return whole ? absl::StrCat(static_cast<int64_t>(value)) : absl::StrCat(value);
}

absl::Status OutOfRange(const JsonPath& path, const Json& value, double min, double max) {
  return KeyError(path, absl::StrCat("is ", ShowJson(value), ", and it must be from ",
                                     ShowNumber(min), " to ", ShowNumber(max), "."));
}

}  // namespace

std::string ShowJson(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kMaxShownBytes) text = absl::StrCat(text.substr(0, kMaxShownBytes), "...");
  return text;
}

absl::Status WrongType(const JsonPath& path, const Json& value, absl::string_view wanted) {
  const std::string shown_path = path.empty() ? "(the document)" : path;
  return KeyError(shown_path,
                  absl::StrCat("is ", ShowJson(value), ", and it must be ", wanted, "."));
}

absl::StatusOr<Json> ParseStrictJson(absl::string_view text, absl::string_view what,
                                     int64_t bytes_max) {
  if (static_cast<int64_t>(text.size()) > bytes_max) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " has ", text.size(), " bytes, and the limit is ", bytes_max, "."));
  }
  Watch watch;
  const auto callback = [&watch](int depth, nlohmann::detail::parse_event_t event, Json& parsed) {
    return watch.Event(depth, event, parsed);
  };
  Json json;
  try {
    json = Json::parse(text.begin(), text.end(), callback, /*allow_exceptions=*/true);
  } catch (const Json::parse_error& error) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " is not valid JSON: reading stops at byte ", error.byte, " of ", text.size(), "."));
  } catch (const std::exception&) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " is not valid JSON: it holds a number or text out of range."));
  }
  if (watch.too_deep) {
    return absl::InvalidArgumentError(
        absl::StrCat(what, " nests deeper than ", kMaxNesting, " levels, which is the limit."));
  }
  if (!watch.duplicate.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        what, " has the key ", ShowJson(Json(watch.duplicate)), " twice in one object."));
  }
  return json;
}

absl::Status ReadInteger(const Json& value, const JsonPath& path, double min, double max,
                         int64_t& out) {
  if (!value.is_number_integer()) return WrongType(path, value, "a whole number");
  const double approximate = value.get<double>();
  if (approximate < min || approximate > max) return OutOfRange(path, value, min, max);
  out = value.get<int64_t>();
  return absl::OkStatus();
}

absl::Status ReadDouble(const Json& value, const JsonPath& path, double min, double max,
                        double& out) {
  if (!value.is_number()) return WrongType(path, value, "a number");
  const double number = value.get<double>();
  if (!(number >= min && number <= max)) return OutOfRange(path, value, min, max);
  out = number;
  return absl::OkStatus();
}

absl::Status ReadBool(const Json& value, const JsonPath& path, bool& out) {
  if (!value.is_boolean()) return WrongType(path, value, "true or false");
  out = value.get<bool>();
  return absl::OkStatus();
}

absl::Status ReadString(const Json& value, const JsonPath& path, double min, double max,
                        std::string& out) {
  if (!value.is_string()) return WrongType(path, value, "a string");
  const std::string& text = value.get_ref<const std::string&>();
  const double length = static_cast<double>(text.size());
  if (length < min || length > max) {
    return KeyError(path, absl::StrCat("has ", text.size(), " bytes, and it must have from ",
                                       ShowNumber(min), " to ", ShowNumber(max), "."));
  }
  out = text;
  return absl::OkStatus();
}

}  // namespace gpushare::models
