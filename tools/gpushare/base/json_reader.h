// A strict reader of JSON objects. An unknown or doubled key is an error, and every error names the
// place ("cases[3].load is -0.3, and it must be above 0.").
//
// Threads: none of its own. Throws InputError.

#ifndef GPUSHARE_TOOLS_GPUSHARE_BASE_JSON_READER_H_
#define GPUSHARE_TOOLS_GPUSHARE_BASE_JSON_READER_H_

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace gpushare::tool {

using Json = nlohmann::ordered_json;

// Parses `text`; `file` names it in errors. Rejects doubled keys and nesting beyond the limit.
Json ParseJson(std::string_view text, const std::string& file);

// The shortest text of a number, for messages.
std::string NumberText(double value);

class ObjectReader {
 public:
  // `where` is the path of this object in its document, empty for the root. `object` must outlive
  // the reader. InputError unless it is an object.
  ObjectReader(const Json& object, const std::string& file, const std::string& where);

  bool Has(const char* key) const { return object_.contains(key); }
  // The value of a key that must be present, or the default if it is absent. Bounds are inclusive
  // unless the name says otherwise.
  std::string Text(const char* key);
  std::string Text(const char* key, const std::string& absent);
  // A name: 1 to 63 characters of letters, digits, '_', '-', '.', ':' and '@'.
  std::string Name(const char* key);
  double Number(const char* key, double absent, double low, double high);
  double NumberAbove(const char* key, double absent, double above, double high);
  int64_t Integer(const char* key, int64_t absent, int64_t low, int64_t high);
  bool Flag(const char* key, bool absent);
  // An array of names, or `absent`.
  std::vector<std::string> Names(const char* key, const std::vector<std::string>& absent = {});
  // An array, null when absent.
  const Json* Array(const char* key, size_t entries_max);
  const Json* Member(const char* key);
  // Rejects every key that was not read.
  void Finish() const;

  std::string Where(const char* key) const;
  [[noreturn]] void Fail(const char* key, const std::string& what) const;

 private:
  const Json* Find(const char* key);
  std::string HintFor(const char* key) const;

  const Json& object_;
  std::string file_;
  std::string where_;
  std::set<std::string> asked_;
};

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_BASE_JSON_READER_H_
