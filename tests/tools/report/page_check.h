// What a page of the command must have, checked from its text: tables that fit, charts with
// legends, text alternatives. Needs no browser: widths are estimated from letters.
//
// Threads: plain functions.

#ifndef GPUSHARE_TESTS_TOOLS_REPORT_PAGE_CHECK_H_
#define GPUSHARE_TESTS_TOOLS_REPORT_PAGE_CHECK_H_

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

namespace gpushare::tool {

// A letter of a table at 13.5 px (0.6 em as of DejaVu Sans, a wide face), and the padding of a
// cell.
inline constexpr double kLetterPx = 8.1;
inline constexpr double kCellPaddingPx = 14;
// min-width of a text cell: 7 em.
inline constexpr double kTextCellPx = 7 * 13.5;

inline std::string Between(const std::string& text, const std::string& from, const std::string& to,
                           size_t& at) {
  const size_t begin = text.find(from, at);
  if (begin == std::string::npos) {
    at = std::string::npos;
    return "";
  }
  const size_t end = text.find(to, begin + from.size());
  at = end;
  return text.substr(begin, end - begin);
}

// The content of each <tag ...>...</tag>, with its opening tag.
inline std::vector<std::string> Elements(const std::string& page, const std::string& tag) {
  std::vector<std::string> found;
  for (size_t at = 0;;) {
    const std::string element = Between(page, "<" + tag, "</" + tag + ">", at);
    if (at == std::string::npos) return found;
    found.push_back(element);
  }
}

inline std::string OpeningTag(const std::string& element) {
  return element.substr(0, element.find('>') + 1);
}

// The letters that a reader sees; an escaped one counts once.
inline size_t Letters(const std::string& element) {
  size_t letters = 0;
  bool tag = false;
  bool entity = false;
  for (const char c : element) {
    if (c == '<') tag = true;
    if (!tag && !entity) ++letters;
    if (!tag && c == '&') entity = true;
    if (c == ';') entity = false;
    if (c == '>') tag = false;
  }
  return letters;
}

inline size_t LongestWord(const std::string& element) {
  const size_t begin = element.find('>') + 1;
  const size_t end = std::min(element.find('<', begin), element.size());
  size_t longest = 0;
  size_t word = 0;
  for (size_t i = begin; i < end; ++i) {
    word = element[i] == ' ' ? 0 : word + 1;
    longest = std::max(longest, word);
  }
  return longest;
}

inline bool HasClass(const std::string& element, const std::string& name) {
  const std::string tag = OpeningTag(element);
  const size_t at = tag.find("class=\"");
  if (at == std::string::npos) return false;
  const std::string names = " " + tag.substr(at + 7, tag.find('"', at + 7) - at - 7) + " ";
  return names.find(" " + name + " ") != std::string::npos;
}

// The least width of a table: a column is as wide as its widest cell that does not wrap. `wraps`:
// the style sheet lets text cells and headings wrap.
inline double LeastWidthPx(const std::string& table, bool wraps) {
  std::vector<double> columns;
  for (const std::string& row : Elements(table, "tr")) {
    const std::vector<std::string> cells = Elements(row, "td");
    columns.resize(std::max(columns.size(), cells.size()));
    for (size_t i = 0; i < cells.size(); ++i) {
      const double text = kLetterPx * static_cast<double>(Letters(cells[i]));
      const bool narrow = wraps && HasClass(cells[i], "text");
      columns[i] =
          std::max(columns[i], kCellPaddingPx + (narrow ? std::min(text, kTextCellPx) : text));
    }
  }
  // Headings of single columns stand in the last row of headings, or span both rows.
  const std::vector<std::string> headings = Elements(table, "th");
  if (headings.size() == columns.size()) {
    for (size_t i = 0; i < columns.size(); ++i) {
      const size_t letters = wraps ? LongestWord(headings[i]) : Letters(headings[i]);
      columns[i] = std::max(columns[i], kCellPaddingPx + kLetterPx * static_cast<double>(letters));
    }
  }
  double sum = 0;
  for (const double column : columns) sum += column;
  return sum;
}

// Style sheets: the width that a card's content has on a screen of `screen` pixels.
inline double ContentWidthPx(const std::string& page, double screen) {
  const size_t at = page.find("main{max-width:");
  const double most = at == std::string::npos ? screen : std::stod(page.substr(at + 15));
  return std::min(screen, most) - 2 * 20 - 2 * 20 - 2;  // padding of main and card, border
}

// What is wrong with the page, one sentence each.
inline std::vector<std::string> PageFaults(const std::string& page) {
  std::vector<std::string> faults;
  const bool wraps = page.find("td.text{white-space:normal") != std::string::npos &&
                     page.find(
                         "th{font-weight:600;color:var(--soft);text-align:right;white-space:"
                         "nowrap") == std::string::npos;
  const double content = ContentWidthPx(page, 1400);
  size_t at = 0;
  for (const std::string& table : Elements(page, "table")) {
    at = page.find(OpeningTag(table), at);
    const std::string before = page.substr(at < 200 ? 0 : at - 200, std::min<size_t>(at, 200));
    const size_t container = before.rfind('<');
    const std::string name = table.substr(0, 40);
    if (container == std::string::npos || before.compare(container, 4, "<div") != 0 ||
        before.find("class=\"scroll\"", container) == std::string::npos) {
      faults.push_back("a table is in no container that scrolls: " + name);
    }
    const double width = LeastWidthPx(table, wraps);
    if (width > content) {
      faults.push_back("a table needs " + std::to_string(static_cast<int>(width)) + " px of " +
                       std::to_string(static_cast<int>(content)) + ": " + name);
    }
    // At 400 px a table is shown as blocks, or has two columns of wrapping text.
    if (!HasClass(table, "stack") && !HasClass(table, "manifest")) {
      faults.push_back("a table does not fit a narrow screen: " + name);
    }
    ++at;
  }
  for (const std::string& svg : Elements(page, "svg")) {
    const std::string tag = OpeningTag(svg);
    if (HasClass(svg, "key")) continue;  // a marker beside its text
    const size_t title = svg.find("<title>");
    const std::string name = svg.substr(title == std::string::npos ? 0 : title, 60);
    if (title == std::string::npos) faults.push_back("a chart has no text alternative: " + tag);
    if (tag.find("role=\"img\"") == std::string::npos) {
      faults.push_back("a chart has no role: " + name);
    }
    if (svg.find("<g class=\"legend\">") == std::string::npos) {
      faults.push_back("a chart has no legend: " + name);
    }
    if (tag.find(" width=\"") != std::string::npos) {
      faults.push_back("a chart has a fixed width: " + name);
    }
  }
  return faults;
}

}  // namespace gpushare::tool

#endif  // GPUSHARE_TESTS_TOOLS_REPORT_PAGE_CHECK_H_
