// Figures that a GPU measured, to show beside simulated ones: `gpushare colocate --measured FILE`.
//
// The files are those under benchmarks/results/ that tools/colocate_rows.py writes: a list of rows,
// one for each case and policy. They appear in the table and in the report, never in result.json.

#ifndef GPUSHARE_TOOLS_GPUSHARE_REPORT_MEASURED_H_
#define GPUSHARE_TOOLS_GPUSHARE_REPORT_MEASURED_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gpushare::tool {

struct MeasuredRow {
  std::string case_name;
  std::string policy;
  double p50_over_alone = 0;  // 0: the file does not have it
  double p99_over_alone = 0;
  double be_rate_of_solo = 0;
  int64_t queries = 0;
};

struct MeasuredResults {
  std::string gpu;
  std::string driver;
  std::vector<MeasuredRow> rows;

  bool empty() const { return rows.empty(); }
  // Null when the GPU did not run this case under this policy.
  const MeasuredRow* Find(const std::string& case_name, const std::string& policy) const;
};

// One sentence for the reader: which GPU, and how many queries the rows of these policies have.
std::string MeasuredOrigin(const MeasuredResults& results,
                           const std::vector<std::string>& policies);

// Adds the rows of one file. A row that `results` has already stays: earlier files win. InputError
// when the text is no such file, or of another GPU than the rows before; `results` is then as it
// was. `file` names the text in errors.
void AddMeasured(std::string_view text, const std::string& file, MeasuredResults& results);

// The rows of all `files`, in their order.
MeasuredResults LoadMeasured(const std::vector<std::string>& files);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_REPORT_MEASURED_H_
