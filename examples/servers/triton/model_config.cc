#include "examples/servers/triton/model_config.h"

#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

#include "examples/servers/model/work.h"

namespace gpushare::example {
namespace {

using nlohmann::json;

// The parameters of a configuration, each of which is text.
class Parameters {
 public:
  explicit Parameters(const json& config)
      : parameters_(config.value("parameters", json::object())) {}

  std::string Text(const std::string& name, const std::string& otherwise) {
    known_.insert(name);
    if (!parameters_.contains(name)) return otherwise;
    return parameters_[name].value("string_value", std::string());
  }

  double Number(const std::string& name, double otherwise, double least, double most) {
    const std::string text = Text(name, "");
    if (text.empty() && !parameters_.contains(name)) return otherwise;
    const json value = json::parse(text, nullptr, false);
    if (value.is_number() && value.get<double>() >= least && value.get<double>() <= most)
      return value.get<double>();
    throw std::invalid_argument("The parameter " + name + " is '" + text +
                                "', and must be a number from " + json(least).dump() + " to " +
                                json(most).dump() + ".");
  }

  int64_t Integer(const std::string& name, int64_t otherwise, int64_t least, int64_t most) {
    const auto value = Number(name, static_cast<double>(otherwise), static_cast<double>(least),
                              static_cast<double>(most));
    return static_cast<int64_t>(value);
  }

  // A parameter that nobody reads is a slip, such as gpushare_p99_bund.
  void CheckAllKnown() const {
    for (const auto& [name, value] : parameters_.items()) {
      if (name.rfind("gpushare_", 0) == 0 && known_.count(name) == 0) {
        throw std::invalid_argument("A model of this class has no parameter " + name + ".");
      }
    }
  }

 private:
  const json parameters_;
  std::set<std::string> known_;
};

// The one tensor of a kind, which must have kValues numbers.
std::string NameOfTensor(const json& config, const std::string& kind) {
  const json tensors = config.value(kind, json::array());
  const json shape = json::array({kValues});
  if (tensors.size() == 1 && tensors[0].value("data_type", "") == "TYPE_FP32") {
    // The server writes numbers of 64 bits as text.
    json dims = tensors[0].value("dims", json::array());
    for (json& dim : dims) {
      if (dim.is_string()) dim = json::parse(dim.get<std::string>(), nullptr, false);
    }
    if (dims == shape) return tensors[0].value("name", "");
  }
  throw std::invalid_argument("A latency-critical model must have one " + kind +
                              " of TYPE_FP32 with dims [ " + std::to_string(kValues) + " ].");
}

}  // namespace

ModelConfig ParseModelConfig(const std::string& text) {
  const json config = json::parse(text, nullptr, false);
  if (!config.is_object()) throw std::invalid_argument("The configuration is not JSON.");
  ModelConfig model;
  Parameters parameters(config);
  const std::string app_class = parameters.Text("gpushare_class", "");
  if (app_class != "lc" && app_class != "be") {
    throw std::invalid_argument("The parameter gpushare_class is '" + app_class +
                                "', and must be 'lc' or 'be'.");
  }
  model.best_effort = app_class == "be";
  model.device_ordinal = parameters.Integer("gpushare_device_ordinal", 0, 0, 63);
  if (model.best_effort) {
    model.weight = parameters.Number("gpushare_weight", 1, 0.001, 1000);
  } else {
    model.p99_bound = parameters.Number("gpushare_p99_bound", 1.05, 1, 100);
    model.target_us = parameters.Integer("gpushare_target_us", 0, 1, 3'600'000'000);
    model.graph_us = parameters.Integer("gpushare_graph_us", 200, 10, 100'000);
    model.queries_max = parameters.Integer("gpushare_queries_max", 64, 1, 1'024);
    if (config.value("max_batch_size", 0) != 0) {
      throw std::invalid_argument("The model has no batches; max_batch_size must be 0.");
    }
    static_cast<void>(NameOfTensor(config, "input"));
    model.output = NameOfTensor(config, "output");
  }
  parameters.CheckAllKnown();
  return model;
}

}  // namespace gpushare::example
