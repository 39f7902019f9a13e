#include "tools/gpushare/report/html_table.h"

#include <algorithm>
#include <utility>

#include "tools/gpushare/base/text.h"

namespace gpushare::tool {

namespace {

// Tables with more columns are shown as blocks on screens of medium width too.
constexpr size_t kColumnsOfNarrowTable = 9;

std::string Heading(const std::string& name, bool text, const std::string& attributes) {
  return "<th" + std::string(text ? " class=\"text\"" : "") + attributes + ">" + EscapeHtml(name) +
         "</th>";
}

}  // namespace

HtmlTable::HtmlTable(std::string label, std::vector<HtmlColumn> columns)
    : label_(std::move(label)), columns_(std::move(columns)) {
  columns_.at(0).text = true;
}

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
  const HtmlColumn& column = columns_.at(next_);
  std::string names = css_class;
  if (column.text) names += names.empty() ? "text" : " text";
  // A narrow screen leaves out what has no value.
  if (text == "-") names += names.empty() ? "none" : " none";
  rows_ += "<td";
  if (!names.empty()) rows_ += " class=\"" + names + "\"";
  const std::string label = column.group.empty() ? column.name : column.group + " " + column.name;
  rows_ += " data-label=\"" + EscapeHtml(label) + "\">" + before + EscapeHtml(text) + "</td>";
  ++next_;
}

// One row of headings, or two where columns have groups.
std::string HtmlTable::Headings() const {
  const bool grouped = std::any_of(columns_.begin(), columns_.end(),
                                   [](const HtmlColumn& column) { return !column.group.empty(); });
  std::string first;
  std::string second;
  for (size_t i = 0; i < columns_.size(); ++i) {
    const HtmlColumn& column = columns_[i];
    const std::string name = Heading(column.name, column.text, " scope=\"col\"");
    if (column.group.empty()) {
      first += grouped ? Heading(column.name, column.text, " scope=\"col\" rowspan=\"2\"") : name;
      continue;
    }
    second += name;
    if (i > 0 && columns_[i - 1].group == column.group) continue;
    size_t end = i;
    while (end < columns_.size() && columns_[end].group == column.group) ++end;
    first +=
        Heading(column.group, false,
                " class=\"group\" scope=\"colgroup\" colspan=\"" + std::to_string(end - i) + "\"");
  }
  std::string html = "<tr class=\"head\">" + first + "</tr>";
  if (grouped) html += "<tr class=\"head\">" + second + "</tr>";
  return html;
}

std::string HtmlTable::Finish() const {
  return "<div class=\"scroll\" role=\"region\" tabindex=\"0\" aria-label=\"" + EscapeHtml(label_) +
         "\"><table class=\"stack" + (columns_.size() > kColumnsOfNarrowTable ? " broad" : "") +
         "\">" + Headings() + rows_ + (rows_.empty() ? "" : "</tr>") + "</table></div>";
}

}  // namespace gpushare::tool
