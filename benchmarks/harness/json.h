// How benchmarks print results: JSON on stdout, keys in the order in which they are written. For
// .cc files only.
//
// A Report is one object with one list of rows. A row is printed when it is measured, so that a
// program that is cut off leaves the rows that it has.

#ifndef GPUSHARE_BENCHMARKS_HARNESS_JSON_H_
#define GPUSHARE_BENCHMARKS_HARNESS_JSON_H_

#include <nlohmann/json.hpp>
#include <string>

namespace gpushare::benchmarks {

using Json = nlohmann::ordered_json;

// Decimals, so that a result has no digits that were not measured. Null where the value is not
// finite, which JSON does not have.
Json Rounded(double value, int decimals);

// A whole object as one line.
void PrintLine(const Json& object);

class Report {
 public:
  // Prints the members of `head` and opens the list `rows`.
  Report(const Json& head, const std::string& rows);
  void Row(const Json& row);
  // Closes the list and prints the members of `tail` behind it.
  void End(const Json& tail = Json::object());

 private:
  bool first_ = true;
};

}  // namespace gpushare::benchmarks

#endif  // GPUSHARE_BENCHMARKS_HARNESS_JSON_H_
