#include "benchmarks/harness/arguments.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <utility>

namespace gpushare::benchmarks {
namespace {

double ParseNumber(const std::string& option, const std::string& text, double least) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end != text.c_str() && *end == '\0' && value >= least) return value;
  char limit[32];
  std::snprintf(limit, sizeof(limit), "%g", least);
  throw Failure(option + " is '" + text + "', and it must be a number of at least " + limit + ".",
                kBadUse);
}

int ParseWhole(const std::string& option, const std::string& text, int least) {
  const double value = ParseNumber(option, text, least);
  if (value == std::floor(value) && value <= std::numeric_limits<int>::max()) {
    return static_cast<int>(value);
  }
  throw Failure(option + " is '" + text + "', and it must be a whole number below 2^31.", kBadUse);
}

}  // namespace

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> items;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find(separator, at), text.size());
    if (end > at) items.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return items;
}

bool Arguments::Has(const std::string& option) {
  options_.push_back(option);
  const auto found = std::find(words_.begin(), words_.end(), option);
  if (found == words_.end()) return false;
  words_.erase(found);
  return true;
}

std::optional<std::string> Arguments::Value(const std::string& option) {
  options_.push_back(option + " VALUE");
  const auto found = std::find(words_.begin(), words_.end(), option);
  if (found == words_.end()) return std::nullopt;
  if (found + 1 == words_.end()) throw Failure(option + " has no value.", kBadUse);
  std::string value = *(found + 1);
  words_.erase(found, found + 2);
  return value;
}

std::string Arguments::Text(const std::string& option, const std::string& otherwise) {
  return Value(option).value_or(otherwise);
}

int Arguments::Number(const std::string& option, int otherwise, int least) {
  const std::optional<std::string> value = Value(option);
  return value.has_value() ? ParseWhole(option, *value, least) : otherwise;
}

double Arguments::Real(const std::string& option, double otherwise, double least) {
  const std::optional<std::string> value = Value(option);
  return value.has_value() ? ParseNumber(option, *value, least) : otherwise;
}

uint64_t Arguments::Seed() {
  const std::string text = Text("--seed", "1");
  char* end = nullptr;
  const uint64_t seed = std::strtoull(text.c_str(), &end, 10);
  if (end != text.c_str() && *end == '\0') return seed;
  throw Failure("--seed is '" + text + "', and it must be a whole number.", kBadUse);
}

std::vector<std::string> Arguments::List(const std::string& option,
                                         std::vector<std::string> otherwise) {
  const std::optional<std::string> value = Value(option);
  return value.has_value() ? Split(*value) : std::move(otherwise);
}

std::vector<int> Arguments::Numbers(const std::string& option, std::vector<int> otherwise,
                                    int least) {
  const std::optional<std::string> value = Value(option);
  if (!value.has_value()) return otherwise;
  std::vector<int> numbers;
  for (const std::string& item : Split(*value)) {
    numbers.push_back(ParseWhole(option, item, least));
  }
  return numbers;
}

void Arguments::Finish() const {
  if (words_.empty()) return;
  std::string why = "'" + words_.front() + "' is no option; there are";
  for (const std::string& option : options_) why += " [" + option + "]";
  throw Failure(why + ".", kBadUse);
}

bool IsChosen(const std::vector<std::string>& chosen, const std::string& name) {
  return chosen.empty() || std::find(chosen.begin(), chosen.end(), name) != chosen.end();
}

int Main(const char* program, int argc, char** argv, int (*run)(Arguments& given)) {
  Arguments given(std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
  try {
    return run(given);
  } catch (const Failure& failure) {
    std::fprintf(stderr, "%s: %s\n", program, failure.what());
    return failure.exit_code();
  }
}

}  // namespace gpushare::benchmarks
