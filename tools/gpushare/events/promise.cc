#include "tools/gpushare/events/promise.h"

#include <vector>

#include "tools/gpushare/base/text.h"

namespace gpushare::tool {

std::string PromiseText(double p99_bound, double p50_bound, int64_t target_ns) {
  std::vector<std::string> parts;
  if (p99_bound > 0) parts.push_back(Format("p99 within %g x alone", p99_bound));
  if (p50_bound > 0) parts.push_back(Format("median within %g x alone", p50_bound));
  if (target_ns > 0) {
    parts.push_back("latency within " + DurationText(static_cast<double>(target_ns)));
  }
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text.empty() ? "nothing" : text;
}

}  // namespace gpushare::tool
