// The command line to options; see options.h.
#include "examples/servers/http/options.h"

#include <charconv>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace gpushare::example {
namespace {

int Number(const std::string& name, const std::string& text, int least, int most) {
  int value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code == std::errc() && end == text.data() + text.size() && value >= least && value <= most)
    return value;
  throw std::invalid_argument(name + " is '" + text + "', and must be a number from " +
                              std::to_string(least) + " to " + std::to_string(most) + ".");
}

double Real(const std::string& name, const std::string& text, double least, double most) {
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code == std::errc() && end == text.data() + text.size() && value >= least && value <= most)
    return value;
  throw std::invalid_argument(name + " is '" + text + "', and must be a number from " +
                              nlohmann::json(least).dump() + " to " + nlohmann::json(most).dump() +
                              ".");
}

}  // namespace

Options ParseOptions(const std::vector<std::string>& arguments) {
  Options options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    if (name == "--no-be") {
      options.best_effort = false;
      continue;
    }
    if (i + 1 == arguments.size())
      throw std::invalid_argument("There is no option '" + name + "', or it lacks a value.");
    const std::string& value = arguments[++i];
    if (name == "--host")
      options.host = value;
    else if (name == "--port")
      options.port = Number(name, value, 0, 65'535);
    else if (name == "--connections")
      options.connections = Number(name, value, 1, 4'096);
    else if (name == "--queue")
      options.model.queries_max = Number(name, value, 0, 1'024);
    else if (name == "--drain-ms")
      options.drain_ms = Number(name, value, 0, 60'000);
    else if (name == "--device")
      options.device = value;
    else if (name == "--p99-bound")
      options.model.p99_bound = Real(name, value, 1, 100);
    else if (name == "--graph-us")
      options.model.graph_ns = Number(name, value, 10, 100'000) * int64_t{1'000};
    else
      throw std::invalid_argument("There is no option '" + name + "'.");
  }
  return options;
}

}  // namespace gpushare::example
