// Field tables: one list of a struct's fields drives both reading it from JSON and writing it.
//
//   const Field<Point> kPointFields[] = {{"sms", &Point::sms, 1, 4096}, {"speed", &Point::speed, 0,
//   100}}; const Field<Curve> kCurveFields[] = {
//       {"name", &Curve::name, 1, 64},
//       {"points", ListField<Curve, Point, &Curve::points, kPointFields, 48>()},
//   };
//
// For the .cc files of models and calibration: no other header includes nlohmann-json. A reader is
// strict: an unknown key, a wrong type or a value outside the field's range is an INVALID_ARGUMENT
// that names the path of the key, the value and the limit. Nothing throws. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_JSON_FIELDS_H_
#define GPUSHARE_SRC_MODELS_JSON_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace gpushare::models {

using Json = nlohmann::ordered_json;  // keeps the order of the field tables in files

// Where in the document a value stands, for messages: "kernels[3].simulation.demand.dram".
using JsonPath = std::string;

// Parses strict JSON: at most `bytes_max` bytes, no key twice in one object, bounded nesting.
// `what` starts the messages: "The profile".
absl::StatusOr<Json> ParseStrictJson(absl::string_view text, absl::string_view what,
                                     int64_t bytes_max);

// The value for a message; long values are cut so that the message stays one line.
std::string ShowJson(const Json& value);

inline absl::Status KeyError(const JsonPath& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("Key '", path, "' ", what));
}
absl::Status WrongType(const JsonPath& path, const Json& value, absl::string_view wanted);

template <class S>
struct Field {
  // A field that is not a number, a boolean or a string has its own two functions.
  struct Custom {
    absl::Status (*parse)(const Json& value, const JsonPath& path, S& out);
    Json (*format)(const S& in);
  };
  absl::string_view key;
  std::variant<int32_t S::*, int64_t S::*, uint64_t S::*, double S::*, bool S::*, std::string S::*,
               Custom>
      member;
  double min = 0;  // of the value of numbers, of the length in bytes of strings
  double max = 0;
};

absl::Status ReadInteger(const Json& value, const JsonPath& path, double min, double max,
                         int64_t& out);
absl::Status ReadDouble(const Json& value, const JsonPath& path, double min, double max,
                        double& out);
absl::Status ReadBool(const Json& value, const JsonPath& path, bool& out);
absl::Status ReadString(const Json& value, const JsonPath& path, double min, double max,
                        std::string& out);

template <class S>
absl::Status ReadField(const Field<S>& field, const Json& value, const JsonPath& path, S& out) {
  return std::visit(
      [&](auto member) -> absl::Status {
        using Member = decltype(member);
        if constexpr (std::is_same_v<Member, typename Field<S>::Custom>) {
          return member.parse(value, path, out);
        } else {
          using Value = std::remove_reference_t<decltype(out.*member)>;
          if constexpr (std::is_same_v<Value, bool>) {
            return ReadBool(value, path, out.*member);
          } else if constexpr (std::is_same_v<Value, double>) {
            return ReadDouble(value, path, field.min, field.max, out.*member);
          } else if constexpr (std::is_same_v<Value, std::string>) {
            return ReadString(value, path, field.min, field.max, out.*member);
          } else {
            int64_t integer = 0;
            absl::Status status = ReadInteger(value, path, field.min, field.max, integer);
            if (status.ok()) out.*member = static_cast<Value>(integer);
            return status;
          }
        }
      },
      field.member);
}

// Reads an object whose keys are exactly those of the table, each optional.
template <class S>
absl::Status ReadObject(absl::Span<const Field<S>> fields, const Json& value, const JsonPath& path,
                        S& out) {
  if (!value.is_object()) return WrongType(path, value, "an object");
  for (auto item = value.begin(); item != value.end(); ++item) {
    const JsonPath key_path = path.empty() ? item.key() : absl::StrCat(path, ".", item.key());
    const Field<S>* found = nullptr;
    for (const Field<S>& field : fields) {
      if (field.key == item.key()) found = &field;
    }
    if (found == nullptr) {
      return KeyError(key_path, "is not known; the name is misspelt or from another version.");
    }
    absl::Status status = ReadField(*found, item.value(), key_path, out);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

template <class S>
Json WriteObject(absl::Span<const Field<S>> fields, const S& in) {
  Json object = Json::object();
  for (const Field<S>& field : fields) {
    object[std::string(field.key)] = std::visit(
        [&](auto member) -> Json {
          if constexpr (std::is_same_v<decltype(member), typename Field<S>::Custom>) {
            return member.format(in);
          } else {
            return in.*member;
          }
        },
        field.member);
  }
  return object;
}

// An array of at most `count_max` elements, each read by `read(element, path)`.
template <class Read>
absl::Status ReadArray(const Json& value, const JsonPath& path, int64_t count_max, Read read) {
  if (!value.is_array()) return WrongType(path, value, "an array");
  if (static_cast<int64_t>(value.size()) > count_max) {
    return KeyError(
        path, absl::StrCat("has ", value.size(), " elements, and the limit is ", count_max, "."));
  }
  for (size_t i = 0; i < value.size(); ++i) {
    absl::Status status = read(value[i], absl::StrCat(path, "[", i, "]"));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// A field that is an object with fields of its own.
template <class S, class T, T S::*member, const auto& fields>
typename Field<S>::Custom ObjectField() {
  return {[](const Json& value, const JsonPath& path, S& out) {
            return ReadObject<T>(fields, value, path, out.*member);
          },
          [](const S& in) { return WriteObject<T>(fields, in.*member); }};
}

// A field that is a list of at most `most` objects, each with the same fields.
template <class S, class E, std::vector<E> S::*member, const auto& fields, int64_t most>
typename Field<S>::Custom ListField() {
  return {[](const Json& value, const JsonPath& path, S& out) {
            (out.*member).clear();
            return ReadArray(value, path, most, [&](const Json& element, const JsonPath& at) {
              (out.*member).emplace_back();
              return ReadObject<E>(fields, element, at, (out.*member).back());
            });
          },
          [](const S& in) {
            Json array = Json::array();
            for (const E& element : in.*member) array.push_back(WriteObject<E>(fields, element));
            return array;
          }};
}

// An enumeration, written as one of `words`, which are in the order of its values.
template <class S, class E, E S::*member, const auto& words>
typename Field<S>::Custom WordField() {
  return {[](const Json& value, const JsonPath& path, S& out) -> absl::Status {
            std::string known;
            for (size_t i = 0; i < std::size(words); ++i) {
              if (value == words[i]) {
                out.*member = static_cast<E>(i);
                return absl::OkStatus();
              }
              absl::StrAppend(&known, i == 0 ? "" : ", ", words[i]);
            }
            return WrongType(path, value, absl::StrCat("one of ", known));
          },
          [](const S& in) { return Json(words[static_cast<size_t>(in.*member)]); }};
}

// The version of a document's schema: only this one is read.
template <class S, int64_t version>
typename Field<S>::Custom VersionField() {
  return {[](const Json& value, const JsonPath& path, S&) -> absl::Status {
            if (value.is_number_integer() && value.get<int64_t>() == version) {
              return absl::OkStatus();
            }
            return WrongType(path, value, absl::StrCat(version, ", the version that is read here"));
          },
          [](const S&) { return Json(version); }};
}

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_JSON_FIELDS_H_
