// Reading the times of a trace: CSV or JSON lines (declared in arrivals.h).

#include <algorithm>
#include <cstdint>
#include <optional>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/json_reader.h"
#include "tools/gpushare/base/limits.h"
#include "tools/gpushare/scenario/arrivals.h"
#include "tools/gpushare/scenario/trace_time.h"

namespace gpushare::tool {

namespace {

constexpr std::string_view kBlank = " \t\r";

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

[[noreturn]] void Fail(const std::string& file, const std::string& what) {
  throw InputError("The trace '" + file + "' " + what);
}

std::string_view TakeLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// The cells of a CSV file (RFC 4180), one record after the other. A cell in quotes may hold commas,
// line ends and doubled quotes, which stay doubled.
class CsvReader {
 public:
  CsvReader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  bool done() const { return text_.empty(); }
  size_t line() const { return line_; }  // of the record that was taken last

  // The cell at `column`, empty where the record has none. `blank`: the record holds nothing.
  std::string_view TakeRecord(size_t column, bool& blank) {
    line_ = next_line_;
    std::string_view found;
    blank = true;
    bool last = false;
    for (size_t i = 0; !last; ++i) {
      const std::string_view cell = TakeCell(last);
      if (!cell.empty()) blank = false;
      if (i == column) found = cell;
    }
    return found;
  }
  // The position of the header's cell `name`; the first one for an empty name.
  size_t TakeHeader(const std::string& name) {
    size_t column = name.empty() ? 0 : std::string_view::npos;
    bool last = text_.empty();
    for (size_t i = 0; !last; ++i) {
      const bool found = TakeCell(last) == name && column == std::string_view::npos;
      if (found) column = i;
    }
    if (column == std::string_view::npos) {
      Fail(file_, "has no column '" + name.substr(0, kNameBytesMax) + "' in its header line.");
    }
    return column;
  }

 private:
  std::string_view TakeCell(bool& last) {
    text_.remove_prefix(std::min(text_.find_first_not_of(" \t"), text_.size()));
    std::string_view quoted;
    const bool in_quotes = !text_.empty() && text_[0] == '"';
    if (in_quotes) {
      const size_t end = ClosingQuote();
      quoted = text_.substr(1, end - 1);
      next_line_ += static_cast<size_t>(std::count(quoted.begin(), quoted.end(), '\n'));
      text_.remove_prefix(end + 1);
    }
    const size_t end = std::min(text_.find_first_of(",\n"), text_.size());
    const std::string_view plain = text_.substr(0, end);
    last = end == text_.size() || text_[end] == '\n';
    if (last) ++next_line_;
    text_.remove_prefix(std::min(end + 1, text_.size()));
    return Trim(in_quotes ? quoted : plain);
  }

  // Of the quote that the text begins with.
  size_t ClosingQuote() const {
    for (size_t at = text_.find('"', 1); at != std::string_view::npos;
         at = text_.find('"', at + 2)) {
      if (at + 1 >= text_.size() || text_[at + 1] != '"') return at;
    }
    Fail(file_, "has a quote in line " + std::to_string(next_line_) + " that is never closed.");
  }

  std::string_view text_;
  const std::string& file_;
  size_t line_ = 1;
  size_t next_line_ = 1;
};

// The times of one trace, with its limits.
class Times {
 public:
  explicit Times(const std::string& file) : file_(file) {}

  void Add(std::optional<int64_t> time, size_t line) {
    if (!time) {
      Fail(file_, "has no time in line " + std::to_string(line) +
                      ": it must be a number of seconds (or of time_unit) or "
                      "YYYY-MM-DD HH:MM:SS[.fraction][offset].");
    }
    if (times_.size() == kTraceRowsMax) {
      Fail(file_, "has more than " + std::to_string(kTraceRowsMax) + " rows, which is the limit.");
    }
    times_.push_back(*time);
  }
  std::vector<int64_t> FromTheFirst() {
    if (times_.size() < 2) Fail(file_, "has fewer than 2 rows.");
    std::sort(times_.begin(), times_.end());  // rows of several front ends may be out of order
    if (times_.front() == times_.back()) {
      Fail(file_, "has the same time in each of its " + std::to_string(times_.size()) + " rows.");
    }
    const int64_t origin = times_.front();
    for (int64_t& time : times_) time -= origin;
    return std::move(times_);
  }

 private:
  const std::string& file_;
  std::vector<int64_t> times_;
};

std::vector<int64_t> ParseCsv(std::string_view text, const std::string& file,
                              const TraceColumn& column) {
  CsvReader reader(text, file);
  const size_t at = reader.TakeHeader(column.name);
  Times times(file);
  while (!reader.done()) {
    bool blank = false;
    const std::string_view cell = reader.TakeRecord(at, blank);
    if (!blank) times.Add(TimeNs(cell, column.unit_ns), reader.line());
  }
  return times.FromTheFirst();
}

std::vector<int64_t> ParseJsonLines(std::string_view text, const std::string& file,
                                    const TraceColumn& column) {
  if (column.name.empty()) {
    Fail(file, "holds JSON lines, and time_column must name the key of the time.");
  }
  Times times(file);
  for (size_t line_number = 1; !text.empty(); ++line_number) {
    const std::string_view line = Trim(TakeLine(text));
    if (line.empty()) continue;
    const Json row = Json::parse(line, nullptr, false);
    if (!row.is_object()) {
      Fail(file, "has no JSON object in line " + std::to_string(line_number) + ".");
    }
    const auto found = row.find(column.name);
    if (found == row.end()) {
      Fail(file, "has no key '" + column.name.substr(0, kNameBytesMax) + "' in line " +
                     std::to_string(line_number) + ".");
    }
    std::optional<int64_t> time;
    if (found->is_number()) time = NumberNs(found->get<double>(), column.unit_ns);
    if (found->is_string()) time = TimeNs(found->get_ref<const std::string&>(), column.unit_ns);
    times.Add(time, line_number);
  }
  return times.FromTheFirst();
}

}  // namespace

std::vector<int64_t> ParseTrace(std::string_view text, const std::string& file,
                                const TraceColumn& column) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) {
    text.remove_prefix(kByteOrderMark.size());
  }
  const size_t first = text.find_first_not_of(" \t\r\n");
  const bool json = first != std::string_view::npos && text[first] == '{';
  return json ? ParseJsonLines(text, file, column) : ParseCsv(text, file, column);
}

void LoadTraces(Scenario& scenario, const std::string& override_path) {
  for (LcApp& app : scenario.lc) {
    if (app.arrivals.kind != ArrivalKind::kTrace) continue;
    const std::string path = override_path.empty()
                                 ? ResolveBeside(ExpandVariables(app.arrivals.path), scenario.file)
                                 : override_path;
    app.arrivals.times_ns = ParseTrace(ReadFile(path, kTraceBytesMax), path,
                                       {app.arrivals.time_column, app.arrivals.time_unit_ns});
  }
}

}  // namespace gpushare::tool
