// The input of a query, from the body of a request.
#ifndef GPUSHARE_EXAMPLES_SERVERS_HTTP_INPUT_H_
#define GPUSHARE_EXAMPLES_SERVERS_HTTP_INPUT_H_

#include <string>
#include <vector>

namespace gpushare::example {

// The numbers of the body, filled up with zeros to kValues: {"input": [1, 2]}, or "1 2" as text.
// Throws std::invalid_argument with a sentence for the client.
std::vector<float> ParseInput(const std::string& body, bool is_json);

}  // namespace gpushare::example

#endif  // GPUSHARE_EXAMPLES_SERVERS_HTTP_INPUT_H_
