// Field tables: one list of a struct's fields drives both reading it from JSON and writing it.
//
//   const Field<Point> kPointFields[] = {{"sms", &Point::sms, 1, 4096}, {"speed", &Point::speed, 0,
//   100}}; const Field<Curve> kCurveFields[] = {
//       {"name", &Curve::name, 1, 64},
//       {"points", ListField<Curve, Point, &Curve::points, kPointFields, 48>()},
//   };
//
// For the .cc files of models. A reader is strict: an unknown key, a wrong type or a value outside
// the field's range is an INVALID_ARGUMENT that names the path of the key, the value and the limit.
// Nothing but std::bad_alloc is thrown. Threads: any.

#ifndef GPUSHARE_SRC_MODELS_JSON_JSON_FIELDS_H_
#define GPUSHARE_SRC_MODELS_JSON_JSON_FIELDS_H_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "src/models/json/json_document.h"
#include "src/models/json/json_path.h"
#include "src/models/json/json_writer.h"

namespace gpushare::models {

inline absl::Status KeyError(const JsonPath& path, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("Key '", path, "' ", what));
}
absl::Status WrongType(const JsonPath& path, const JsonValue& value, absl::string_view wanted);

template <class S>
struct Field {
  // A field that is not a number, a boolean or a string has its own two functions.
  struct Custom {
    absl::Status (*parse)(const JsonValue& value, const JsonPath& path, S& out);
    void (*format)(const S& in, JsonWriter& json);
    bool (*omit)(const S& in) = nullptr;  // whether the key is left out of the text
  };
  absl::string_view key;
  std::variant<int32_t S::*, int64_t S::*, uint64_t S::*, double S::*, bool S::*, std::string S::*,
               Custom>
      member;
  double min = 0;  // of the value of numbers, of the length in bytes of strings
  double max = 0;
};

absl::Status ReadInteger(const JsonValue& value, const JsonPath& path, double min, double max,
                         int64_t& out);
absl::Status ReadDouble(const JsonValue& value, const JsonPath& path, double min, double max,
                        double& out);
absl::Status ReadBool(const JsonValue& value, const JsonPath& path, bool& out);
absl::Status ReadString(const JsonValue& value, const JsonPath& path, double min, double max,
                        std::string& out);

template <class S>
absl::Status ReadField(const Field<S>& field, const JsonValue& value, const JsonPath& path,
                       S& out) {
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
absl::Status ReadObject(absl::Span<const Field<S>> fields, const JsonValue& value,
                        const JsonPath& path, S& out) {
  if (!value.is_object()) return WrongType(path, value, "an object");
  // A written object has its keys in the order of the table, so the search goes on where it ended.
  size_t next = 0;
  for (const JsonValue item : value) {
    const JsonPath key_path(path, item.key());
    size_t tried = 0;
    while (tried < fields.size() && fields[next].key != item.key()) {
      next = next + 1 == fields.size() ? 0 : next + 1;
      ++tried;
    }
    if (tried == fields.size()) {
      return KeyError(key_path, "is not known; the name is misspelt or from another version.");
    }
    absl::Status status = ReadField(fields[next], item, key_path, out);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

template <class S>
void WriteObject(absl::Span<const Field<S>> fields, const S& in, JsonWriter& json) {
  json.BeginObject();
  for (const Field<S>& field : fields) {
    std::visit(
        [&](auto member) {
          if constexpr (std::is_same_v<decltype(member), typename Field<S>::Custom>) {
            if (member.omit != nullptr && member.omit(in)) return;
            json.Key(field.key);
            member.format(in, json);
          } else {
            json.Key(field.key);
            json.Write(in.*member);
          }
        },
        field.member);
  }
  json.EndObject();
}

// An array of at most `count_max` elements, each read by `read(element, path)`.
template <class Read>
absl::Status ReadArray(const JsonValue& value, const JsonPath& path, int64_t count_max, Read read) {
  if (!value.is_array()) return WrongType(path, value, "an array");
  if (static_cast<int64_t>(value.size()) > count_max) {
    return KeyError(
        path, absl::StrCat("has ", value.size(), " elements, and the limit is ", count_max, "."));
  }
  size_t i = 0;
  for (const JsonValue element : value) {
    absl::Status status = read(element, JsonPath(path, i++));
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// A field that is an object with fields of its own.
template <class S, class T, T S::*member, const auto& fields>
typename Field<S>::Custom ObjectField() {
  return {[](const JsonValue& value, const JsonPath& path, S& out) {
            return ReadObject<T>(fields, value, path, out.*member);
          },
          [](const S& in, JsonWriter& json) { WriteObject<T>(fields, in.*member, json); }};
}

template <class E>
void WriteArray(absl::Span<const Field<E>> fields, absl::Span<const E> in, JsonWriter& json) {
  json.BeginArray();
  for (const E& element : in) WriteObject<E>(fields, element, json);
  json.EndArray();
}

// A field that is a list of at most `most` objects, each with the same fields.
template <class S, class E, std::vector<E> S::*member, const auto& fields, int64_t most>
typename Field<S>::Custom ListField() {
  return {[](const JsonValue& value, const JsonPath& path, S& out) {
            (out.*member).clear();
            if (value.is_array() && int64_t{value.size()} <= most) {
              (out.*member).reserve(value.size());
            }
            return ReadArray(value, path, most, [&](const JsonValue& element, const JsonPath& at) {
              (out.*member).emplace_back();
              return ReadObject<E>(fields, element, at, (out.*member).back());
            });
          },
          [](const S& in, JsonWriter& json) { WriteArray<E>(fields, in.*member, json); }};
}

// An enumeration, written as one of `words`, which are in the order of its values.
template <class S, class E, E S::*member, const auto& words>
typename Field<S>::Custom WordField() {
  return {
      [](const JsonValue& value, const JsonPath& path, S& out) -> absl::Status {
        std::string known;
        for (size_t i = 0; i < std::size(words); ++i) {
          if (value.is_text() && value.text() == words[i]) {
            out.*member = static_cast<E>(i);
            return absl::OkStatus();
          }
          absl::StrAppend(&known, i == 0 ? "" : ", ", words[i]);
        }
        return WrongType(path, value, absl::StrCat("one of ", known));
      },
      [](const S& in, JsonWriter& json) { json.Write(words[static_cast<size_t>(in.*member)]); }};
}

// The version of a document's schema: only this one is read.
template <class S, int64_t version>
typename Field<S>::Custom VersionField() {
  return {[](const JsonValue& value, const JsonPath& path, S&) -> absl::Status {
            if (value.is_whole() && value.whole() == version) {
              return absl::OkStatus();
            }
            return WrongType(path, value, absl::StrCat(version, ", the version that is read here"));
          },
          [](const S&, JsonWriter& json) { json.Write(version); }};
}

}  // namespace gpushare::models

#endif  // GPUSHARE_SRC_MODELS_JSON_JSON_FIELDS_H_
