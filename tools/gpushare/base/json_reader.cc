#include "tools/gpushare/base/json_reader.h"

#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/limits.h"
#include "tools/gpushare/base/suggest.h"

namespace gpushare::tool {

namespace {

// The parser's own message carries a tag and the offending bytes; only the position is of use.
std::string SyntaxSentence(const std::string& file, std::string_view text, size_t byte) {
  size_t line = 1;
  size_t column = 1;
  for (size_t i = 0; i + 1 < byte && i < text.size(); ++i) {
    if (text[i] == '\n') {
      ++line;
      column = 1;
    } else {
      ++column;
    }
  }
  return "The file '" + file + "' is not valid JSON at line " + std::to_string(line) + ", column " +
         std::to_string(column) + ".";
}

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-' || c == '.' || c == ':' || c == '@';
}

std::string NameProblem(const std::string& name) {
  if (name.empty()) return "is empty, and a name has at least 1 character";
  if (name.size() > kNameBytesMax) {
    return "has " + std::to_string(name.size()) + " bytes, and a name has at most " +
           std::to_string(kNameBytesMax);
  }
  for (const char c : name) {
    if (!IsNameCharacter(c)) {
      return "holds a character other than letters, digits and '_', '-', '.', ':', '@'";
    }
  }
  if (name[0] == '.') return "begins with a dot, and it names a file too";
  return "";
}

}  // namespace

std::string NumberText(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.10g", value);
  return text;
}

Json ParseJson(std::string_view text, const std::string& file) {
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& value) {
    using Event = Json::parse_event_t;
    if (depth > kJsonDepthMax) {
      throw InputError("The file '" + file + "' nests deeper than " +
                       std::to_string(kJsonDepthMax) + " levels.");
    }
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && !keys.back().insert(value.get<std::string>()).second) {
      throw InputError("The file '" + file + "' has the key '" + value.get<std::string>() +
                       "' twice in one object.");
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const nlohmann::json::parse_error& error) {
    throw InputError(SyntaxSentence(file, text, error.byte));
  } catch (const nlohmann::json::exception&) {
    throw InputError("The file '" + file + "' holds a number that is out of range.");
  }
}

ObjectReader::ObjectReader(const Json& object, const std::string& file, const std::string& where)
    : object_(object), file_(file), where_(where) {
  if (!object.is_object()) {
    throw InputError(file + ": " + (where.empty() ? "the document" : where) +
                     " is not a JSON object.");
  }
}

std::string ObjectReader::Where(const char* key) const {
  return where_.empty() ? std::string(key) : where_ + "." + key;
}

void ObjectReader::Fail(const char* key, const std::string& what) const {
  throw InputError(file_ + ": " + Where(key) + " " + what + HintFor(key) + ".");
}

// Names a key that was not read yet and may be the missing one, misspelt.
std::string ObjectReader::HintFor(const char* key) const {
  if (object_.contains(key)) return "";
  std::vector<std::string> unread;
  for (const auto& item : object_.items()) {
    if (asked_.count(item.key()) == 0) unread.push_back(item.key());
  }
  const std::string near = Nearest(key, unread);
  return near.empty() ? "" : "; there is a key '" + near.substr(0, kNameBytesMax) + "'";
}

const Json* ObjectReader::Find(const char* key) {
  asked_.insert(key);
  const auto found = object_.find(key);
  return found == object_.end() ? nullptr : &*found;
}

const Json* ObjectReader::Member(const char* key) { return Find(key); }

std::string ObjectReader::Text(const char* key) {
  const Json* value = Find(key);
  if (value == nullptr) Fail(key, "is missing");
  if (!value->is_string()) Fail(key, "is not a text");
  return value->get<std::string>();
}

std::string ObjectReader::Text(const char* key, const std::string& absent) {
  return Find(key) == nullptr ? absent : Text(key);
}

std::string ObjectReader::Name(const char* key) {
  std::string name = Text(key);
  const std::string problem = NameProblem(name);
  if (!problem.empty()) Fail(key, problem);
  return name;
}

double ObjectReader::Number(const char* key, double absent, double low, double high) {
  const Json* value = Find(key);
  if (value == nullptr) return absent;
  if (!value->is_number()) Fail(key, "is not a number");
  const double number = value->get<double>();
  if (!std::isfinite(number) || number < low || number > high) {
    Fail(key, "is " + NumberText(number) + ", and it must be from " + NumberText(low) + " to " +
                  NumberText(high));
  }
  return number;
}

double ObjectReader::NumberAbove(const char* key, double absent, double above, double high) {
  const Json* value = Find(key);
  if (value == nullptr) return absent;
  if (!value->is_number()) Fail(key, "is not a number");
  const double number = value->get<double>();
  if (!std::isfinite(number) || !(number > above) || number > high) {
    Fail(key, "is " + NumberText(number) + ", and it must be above " + NumberText(above) +
                  " and at most " + NumberText(high));
  }
  return number;
}

int64_t ObjectReader::Integer(const char* key, int64_t absent, int64_t low, int64_t high) {
  const Json* value = Find(key);
  if (value == nullptr) return absent;
  const std::string range =
      ", and it must be from " + std::to_string(low) + " to " + std::to_string(high);
  if (value->is_number_unsigned() && value->get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
    Fail(key, "is " + std::to_string(value->get<uint64_t>()) + range);
  }
  if (!value->is_number_integer()) Fail(key, "is not a whole number");
  const int64_t number = value->get<int64_t>();
  if (number < low || number > high) Fail(key, "is " + std::to_string(number) + range);
  return number;
}

bool ObjectReader::Flag(const char* key, bool absent) {
  const Json* value = Find(key);
  if (value == nullptr) return absent;
  if (!value->is_boolean()) Fail(key, "is not true or false");
  return value->get<bool>();
}

const Json* ObjectReader::Array(const char* key, size_t entries_max) {
  const Json* value = Find(key);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) Fail(key, "is not an array");
  if (value->size() > entries_max) {
    Fail(key, "has " + std::to_string(value->size()) + " entries, and the limit is " +
                  std::to_string(entries_max));
  }
  return value;
}

std::vector<std::string> ObjectReader::Names(const char* key,
                                             const std::vector<std::string>& absent) {
  const Json* value = Array(key, kCasesMax);
  if (value == nullptr) return absent;
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (const Json& entry : *value) {
    if (!entry.is_string()) Fail(key, "holds an entry that is not a text");
    names.push_back(entry.get<std::string>());
    const std::string problem = NameProblem(names.back());
    if (!problem.empty()) Fail(key, "holds a name that " + problem);
    if (!seen.insert(names.back()).second) Fail(key, "names '" + names.back() + "' twice");
  }
  return names;
}

void ObjectReader::Finish() const {
  for (const auto& item : object_.items()) {
    if (asked_.count(item.key()) == 0) {
      throw InputError(file_ + ": " + (where_.empty() ? "the document" : where_) +
                       " has the unknown key '" + item.key().substr(0, kNameBytesMax) + "'.");
    }
  }
}

}  // namespace gpushare::tool
