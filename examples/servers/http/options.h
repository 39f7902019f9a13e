// What the command line of the server sets.
#ifndef GPUSHARE_EXAMPLES_SERVERS_HTTP_OPTIONS_H_
#define GPUSHARE_EXAMPLES_SERVERS_HTTP_OPTIONS_H_

#include <string>
#include <vector>

#include "examples/servers/model/lc_model.h"

namespace gpushare::example {

struct Options {
  std::string host = "127.0.0.1";
  int port = 8080;
  int connections = 128;
  int drain_ms = 500;
  std::string device;  // as GPUSHARE_DEVICE; "": the environment's
  bool best_effort = true;
  LcModelOptions model;
};

inline constexpr char kUsage[] =
    "example_http_server [--host ADDRESS] [--port N, 0: any] [--connections N] [--queue N] "
    "[--drain-ms N]\n"
    "                    [--device NAME] [--p99-bound X] [--graph-us N] [--no-be]\n";

// Throws std::invalid_argument with a sentence that names the option, its value and its limits.
Options ParseOptions(const std::vector<std::string>& arguments);

}  // namespace gpushare::example

#endif  // GPUSHARE_EXAMPLES_SERVERS_HTTP_OPTIONS_H_
