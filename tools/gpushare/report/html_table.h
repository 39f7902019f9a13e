// A table as HTML that a narrow screen shows as blocks: each cell carries its column's name, and
// the style sheet stacks the cells of a row (report_style.h, ".stack").
//
// Pure.

#ifndef GPUSHARE_TOOLS_GPUSHARE_REPORT_HTML_TABLE_H_
#define GPUSHARE_TOOLS_GPUSHARE_REPORT_HTML_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

namespace gpushare::tool {

class HtmlTable {
 public:
  explicit HtmlTable(std::vector<std::string> columns);

  // Begins a row. Its cells follow, one a column.
  void Row(const std::string& css_class = "");
  void Cell(const std::string& text, const std::string& css_class = "");
  // `before` is HTML, a marker for example.
  void Cell(const std::string& text, const std::string& css_class, const std::string& before);

  std::string Finish() const;

 private:
  std::vector<std::string> columns_;
  std::string rows_;
  size_t next_ = 0;
};

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_REPORT_HTML_TABLE_H_
