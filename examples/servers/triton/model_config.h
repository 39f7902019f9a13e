// What the backend reads of a model's configuration (config.pbtxt, which the server gives as JSON).
#ifndef GPUSHARE_EXAMPLES_SERVERS_TRITON_MODEL_CONFIG_H_
#define GPUSHARE_EXAMPLES_SERVERS_TRITON_MODEL_CONFIG_H_

#include <cstdint>
#include <string>

namespace gpushare::example {

struct ModelConfig {
  bool best_effort = false;
  double p99_bound = 1.05;     // LC; 0: none
  int64_t target_us = 0;       // LC; 0: none
  int64_t graph_us = 200;      // LC
  int64_t queries_max = 64;    // LC
  double weight = 0;           // BE; 0: 1
  int64_t device_ordinal = 0;  // of the GPU
  std::string output;          // LC: name of the output tensor
};

// Throws std::invalid_argument with a sentence.
ModelConfig ParseModelConfig(const std::string& text);

}  // namespace gpushare::example

#endif  // GPUSHARE_EXAMPLES_SERVERS_TRITON_MODEL_CONFIG_H_
