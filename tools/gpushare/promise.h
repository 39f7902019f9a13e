// What an LC app was promised, in words and as the index of event logs keeps it.
//
// Pure.

#ifndef GPUSHARE_TOOLS_GPUSHARE_PROMISE_H_
#define GPUSHARE_TOOLS_GPUSHARE_PROMISE_H_

#include <cstdint>
#include <string>

namespace gpushare::tool {

// "p99 within 1.05 x alone, median within 1.1 x alone, latency within 2.00 ms"; "nothing" for none.
std::string PromiseText(double p99_bound, double p50_bound, int64_t target_ns);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_PROMISE_H_
