// A table as HTML that a narrow screen shows as blocks: each cell carries its column's name, and
// the style sheet stacks the cells of a row (report_style.h, ".stack"). On a wide screen numbers
// keep to one line and texts wrap, so that no column is cut off.
//
// Pure.

#ifndef GPUSHARE_TOOLS_GPUSHARE_REPORT_HTML_TABLE_H_
#define GPUSHARE_TOOLS_GPUSHARE_REPORT_HTML_TABLE_H_

#include <cstddef>
#include <string>
#include <vector>

namespace gpushare::tool {

struct HtmlColumn {
  std::string name;
  bool text = false;       // its cells wrap; the first column is always a text
  std::string group = {};  // neighbours of one group share a heading above theirs
};

class HtmlTable {
 public:
  // `label` says what the table holds, for readers that do not see it.
  HtmlTable(std::string label, std::vector<HtmlColumn> columns);

  // Begins a row. Its cells follow, one a column.
  void Row(const std::string& css_class = "");
  void Cell(const std::string& text, const std::string& css_class = "");
  // `before` is HTML, a marker for example.
  void Cell(const std::string& text, const std::string& css_class, const std::string& before);

  std::string Finish() const;

 private:
  std::string Headings() const;

  std::string label_;
  std::vector<HtmlColumn> columns_;
  std::string rows_;
  size_t next_ = 0;
};

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_REPORT_HTML_TABLE_H_
