// Reading the time column of a CSV trace (declared in arrivals.h).

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <optional>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/limits.h"
#include "tools/gpushare/scenario/arrivals.h"

namespace gpushare::tool {

namespace {

constexpr int64_t kSecondNs = 1'000'000'000;

std::string_view Trim(std::string_view text) {
  const char* kBlank = " \t\r\"";
  const size_t first = text.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kBlank) - first + 1);
}

std::string_view Cell(std::string_view line, size_t column) {
  for (size_t i = 0; i < column; ++i) {
    const size_t comma = line.find(',');
    if (comma == std::string_view::npos) return {};
    line.remove_prefix(comma + 1);
  }
  return Trim(line.substr(0, line.find(',')));
}

std::optional<int64_t> Digits(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty() || text[0] == '-') {
    return std::nullopt;
  }
  return value;
}

// Days since 1970-01-01 of a date in the Gregorian calendar (Hinnant's algorithm).
int64_t DaysFromCivil(int64_t year, int64_t month, int64_t day) {
  year -= month <= 2;
  const int64_t era = (year >= 0 ? year : year - 399) / 400;
  const int64_t year_of_era = year - era * 400;
  const int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year -
         719468;
}

// Nanoseconds of ".9799600": exact, where a double would lose the last digits.
std::optional<int64_t> FractionNs(std::string_view digits) {
  if (digits.empty() || digits.size() > 18) return std::nullopt;
  std::string nine(digits.substr(0, 9));
  nine.resize(9, '0');
  if (!Digits(digits)) return std::nullopt;
  return Digits(nine);
}

std::optional<int64_t> TimeStampNs(std::string_view text) {
  if (!text.empty() && text.back() == 'Z') text.remove_suffix(1);
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' ||
      (text[10] != ' ' && text[10] != 'T') || text[13] != ':' || text[16] != ':') {
    return std::nullopt;
  }
  const auto year = Digits(text.substr(0, 4));
  const auto month = Digits(text.substr(5, 2));
  const auto day = Digits(text.substr(8, 2));
  const auto hour = Digits(text.substr(11, 2));
  const auto minute = Digits(text.substr(14, 2));
  const auto second = Digits(text.substr(17, 2));
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  if (*month < 1 || *month > 12 || *day < 1 || *day > 31 || *hour > 23 || *minute > 59 ||
      *second > 60 || *year > 2200 || *year < 1970) {
    return std::nullopt;
  }
  std::optional<int64_t> fraction = 0;
  if (text.size() > 19) {
    fraction = text[19] == '.' ? FractionNs(text.substr(20)) : std::nullopt;
    if (!fraction) return std::nullopt;
  }
  const int64_t days = DaysFromCivil(*year, *month, *day);
  return ((days * 24 + *hour) * 3600 + *minute * 60 + *second) * kSecondNs + *fraction;
}

std::optional<int64_t> SecondsNs(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  if (!std::isfinite(value) || value < 0 || value > 9e9) return std::nullopt;
  return static_cast<int64_t>(std::llround(value * 1e9));
}

size_t ColumnOf(std::string_view header, const std::string& name, const std::string& file) {
  if (name.empty()) return 0;
  size_t column = 0;
  while (true) {
    const size_t comma = header.find(',');
    if (Trim(header.substr(0, comma)) == name) return column;
    if (comma == std::string_view::npos) {
      throw InputError("The trace '" + file + "' has no column '" + name.substr(0, kNameBytesMax) +
                       "' in its header line.");
    }
    header.remove_prefix(comma + 1);
    ++column;
  }
}

}  // namespace

std::vector<int64_t> ParseTrace(std::string_view text, const std::string& file,
                                const std::string& column_name) {
  const size_t header_end = std::min(text.find('\n'), text.size());
  const size_t column = ColumnOf(text.substr(0, header_end), column_name, file);
  text.remove_prefix(std::min(header_end + 1, text.size()));
  std::vector<int64_t> times;
  for (size_t line_number = 2; !text.empty(); ++line_number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (Trim(line).empty()) continue;
    const std::string_view cell = Cell(line, column);
    std::optional<int64_t> time = TimeStampNs(cell);
    if (!time) time = SecondsNs(cell);
    if (!time) {
      throw InputError("The trace '" + file + "' has no time in line " +
                       std::to_string(line_number) +
                       ": it must be seconds or YYYY-MM-DD HH:MM:SS.");
    }
    if (times.size() == kTraceRowsMax) {
      throw InputError("The trace '" + file + "' has more than " + std::to_string(kTraceRowsMax) +
                       " rows, which is the limit.");
    }
    times.push_back(*time);
  }
  if (times.size() < 2) throw InputError("The trace '" + file + "' has fewer than 2 rows.");
  std::sort(times.begin(), times.end());  // rows of several front ends may be out of order
  const int64_t origin = times.front();
  for (int64_t& time : times) time -= origin;
  return times;
}

void LoadTraces(Scenario& scenario, const std::string& override_path) {
  for (LcApp& app : scenario.lc) {
    if (app.arrivals.kind != ArrivalKind::kTrace) continue;
    const std::string path = override_path.empty()
                                 ? ResolveBeside(ExpandVariables(app.arrivals.path), scenario.file)
                                 : override_path;
    app.arrivals.times_ns =
        ParseTrace(ReadFile(path, kTraceBytesMax), path, app.arrivals.time_column);
  }
}

}  // namespace gpushare::tool
