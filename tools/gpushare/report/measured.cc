#include "tools/gpushare/report/measured.h"

#include <algorithm>
#include <functional>
#include <map>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/json_reader.h"
#include "tools/gpushare/base/limits.h"
#include "tools/gpushare/colocate/colocate.h"

namespace gpushare::tool {

namespace {

constexpr int kSchemaVersion = 1;
constexpr size_t kRowsMax = 10'000;
constexpr double kRatioMax = 1e9;
constexpr double kNsMax = 1e18;

void Require(const ObjectReader& object, const char* key) {
  if (!object.Has(key)) object.Fail(key, "is missing");
}

// The p50 of LC alone by case. Rows written before p50_over_alone was have their p50 only.
std::map<std::string, double> P50AloneOf(const Json& rows, const std::string& file) {
  std::map<std::string, double> p50_ns;
  for (size_t i = 0; i < rows.size(); ++i) {
    ObjectReader entry(rows[i], file, "rows[" + std::to_string(i) + "]");
    if (entry.Text("policy") != kLcAlone) continue;
    p50_ns[entry.Text("case")] = entry.Number("p50_ns", 0, 0, kNsMax);
  }
  return p50_ns;
}

double P50OverAlone(ObjectReader& entry, double p50_alone_ns) {
  const double p50_ns = entry.Number("p50_ns", 0, 0, kNsMax);
  const double derived = p50_alone_ns > 0 ? p50_ns / p50_alone_ns : 0;
  return entry.Number("p50_over_alone", derived, 0, kRatioMax);
}

}  // namespace

const MeasuredRow* MeasuredResults::Find(const std::string& case_name,
                                         const std::string& policy) const {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const MeasuredRow& row) {
    return row.case_name == case_name && row.policy == policy;
  });
  return found == rows.end() ? nullptr : &*found;
}

std::string MeasuredOrigin(const MeasuredResults& results,
                           const std::vector<std::string>& policies) {
  std::map<int64_t, std::vector<std::string>, std::greater<>> by_queries;
  for (const MeasuredRow& row : results.rows) {
    if (std::find(policies.begin(), policies.end(), row.policy) == policies.end()) continue;
    std::vector<std::string>& names = by_queries[row.queries];
    if (std::find(names.begin(), names.end(), row.policy) == names.end()) {
      names.push_back(row.policy);
    }
  }
  std::string text = "Lines '" + results.gpu + "' were measured on that GPU";
  if (!results.driver.empty()) text += ", driver " + results.driver;
  for (const auto& [queries, names] : by_queries) {
    text += "; " + std::to_string(queries) + " queries a row under ";
    for (size_t i = 0; i < names.size(); ++i) text += (i > 0 ? ", " : "") + names[i];
  }
  return text + ".";
}

void AddMeasured(std::string_view text, const std::string& file, MeasuredResults& results) {
  const Json document = ParseJson(text, file);
  ObjectReader in(document, file, "");
  if (in.Integer("schema_version", 0, 0, INT32_MAX) != kSchemaVersion) {
    in.Fail("schema_version", "is not 1, the version that this program reads");
  }
  const std::string gpu = in.Text("gpu");
  if (!results.gpu.empty() && results.gpu != gpu) {
    in.Fail("gpu", "is '" + gpu + "', and the rows before were measured on '" + results.gpu + "'");
  }
  MeasuredResults added = results;
  added.gpu = gpu;
  added.driver = in.Text("driver", added.driver);
  Require(in, "queries");
  const int64_t queries = in.Integer("queries", 0, 1, kQueriesMax);
  Require(in, "rows");
  const Json* rows = in.Array("rows", kRowsMax);
  std::map<std::string, double> p50_alone_ns = P50AloneOf(*rows, file);
  for (size_t i = 0; i < rows->size(); ++i) {
    ObjectReader entry((*rows)[i], file, "rows[" + std::to_string(i) + "]");
    MeasuredRow row = {.case_name = entry.Name("case"), .policy = entry.Name("policy")};
    Require(entry, "p99_over_alone");
    Require(entry, "be");
    row.p50_over_alone = P50OverAlone(entry, p50_alone_ns[row.case_name]);
    row.p99_over_alone = entry.NumberAbove("p99_over_alone", 0, 0, kRatioMax);
    row.be_rate_of_solo = entry.Number("be", 0, 0, kRatioMax);
    row.queries = queries;
    if (added.Find(row.case_name, row.policy) == nullptr) added.rows.push_back(row);
  }
  results = added;
}

MeasuredResults LoadMeasured(const std::vector<std::string>& files) {
  MeasuredResults results;
  for (const std::string& file : files) {
    AddMeasured(ReadFile(file, kScenarioBytesMax), file, results);
  }
  return results;
}

}  // namespace gpushare::tool
