// The names that a trace shows. An event log has only numbers.
//
// Threads: plain data.

#ifndef GPUSHARE_SRC_TRACE_TRACE_NAMES_H_
#define GPUSHARE_SRC_TRACE_TRACE_NAMES_H_

#include <cstdint>
#include <map>
#include <string>

namespace gpushare::trace {

// Names for the numbers in a log. A number without a name is shown as it is.
struct TraceNames {
  std::map<uint32_t, std::string> apps;     // by AppId
  std::map<uint32_t, std::string> kernels;  // by KernelId
  std::map<int32_t, std::string> places;    // by PlaceIndex, such as "LC side, 84 SMs"
  std::string device = "GPU";
  bool simulated = false;
};

}  // namespace gpushare::trace

#endif  // GPUSHARE_SRC_TRACE_TRACE_NAMES_H_
