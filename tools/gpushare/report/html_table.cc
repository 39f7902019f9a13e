#include "tools/gpushare/report/html_table.h"

#include <utility>

#include "tools/gpushare/base/text.h"

namespace gpushare::tool {

HtmlTable::HtmlTable(std::vector<std::string> columns) : columns_(std::move(columns)) {}

void HtmlTable::Row(const std::string& css_class) {
  if (!rows_.empty()) rows_ += "</tr>";
  rows_ += css_class.empty() ? "<tr>" : "<tr class=\"" + css_class + "\">";
  next_ = 0;
}

void HtmlTable::Cell(const std::string& text, const std::string& css_class) {
  Cell(text, css_class, "");
}

void HtmlTable::Cell(const std::string& text, const std::string& css_class,
                     const std::string& before) {
  // A narrow screen leaves out what has no value.
  const std::string names = text == "-" ? css_class + " none" : css_class;
  rows_ += "<td";
  if (!names.empty()) rows_ += " class=\"" + names + "\"";
  rows_ += " data-label=\"" + EscapeHtml(columns_.at(next_)) + "\">" + before + EscapeHtml(text) +
           "</td>";
  ++next_;
}

std::string HtmlTable::Finish() const {
  std::string html = "<div class=\"scroll\"><table class=\"stack\"><tr class=\"head\">";
  for (const std::string& column : columns_) html += "<th>" + EscapeHtml(column) + "</th>";
  html += "</tr>" + rows_;
  return html + (rows_.empty() ? "" : "</tr>") + "</table></div>";
}

}  // namespace gpushare::tool
