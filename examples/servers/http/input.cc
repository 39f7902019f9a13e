// JSON and text to numbers; see input.h.
#include "examples/servers/http/input.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

#include "examples/servers/model/work.h"

namespace gpushare::example {
namespace {

using nlohmann::json;

std::vector<float> Padded(std::vector<float> values) {
  if (values.empty() || values.size() > kValues) {
    throw std::invalid_argument("The input has " + std::to_string(values.size()) +
                                " numbers, and must have 1 to " + std::to_string(kValues) + ".");
  }
  for (const float value : values) {
    if (!std::isfinite(value))
      throw std::invalid_argument("The input has a number that float32 does not hold.");
  }
  values.resize(kValues);
  return values;
}

std::vector<float> ParseText(const std::string& body) {
  std::vector<float> values;
  const char* at = body.data();
  const char* const end = at + body.size();
  for (;;) {
    while (at != end && (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t')) ++at;
    if (at == end) return values;
    float value = 0;
    const auto [next, code] = std::from_chars(at, end, value);
    if (code != std::errc()) throw std::invalid_argument("The body is no list of numbers.");
    values.push_back(value);
    at = next;
  }
}

std::vector<float> ParseJson(const std::string& text) {
  const json body = json::parse(text, nullptr, false);
  if (body.is_discarded() || !body.is_object() || !body.contains("input") ||
      !body["input"].is_array()) {
    throw std::invalid_argument("The body is not JSON of the form {\"input\": [1, 2]}.");
  }
  std::vector<float> values;
  for (const json& value : body["input"]) {
    if (!value.is_number()) throw std::invalid_argument("The input has a value that is no number.");
    values.push_back(value.get<float>());
  }
  return values;
}

}  // namespace

std::vector<float> ParseInput(const std::string& body, bool is_json) {
  return Padded(is_json ? ParseJson(body) : ParseText(body));
}

}  // namespace gpushare::example
