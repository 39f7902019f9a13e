// What an LC app was promised, in words and as the index of event logs keeps it.
//
// Pure.

#ifndef GPUSHARE_TOOLS_GPUSHARE_EVENTS_PROMISE_H_
#define GPUSHARE_TOOLS_GPUSHARE_EVENTS_PROMISE_H_

#include <cstdint>
#include <string>

namespace gpushare::tool {

struct LcPromise {
  uint32_t app_id = 0;
  int64_t target_ns = 0;  // 0: none
  double p99_bound = 0;   // 0: none
  double p50_bound = 0;   // 0: none
  int64_t p99_alone_ns = 0;
  int64_t p50_alone_ns = 0;
  int64_t solo_ns = 0;     // of one query alone
  double tail_credit = 0;  // the account at the end of the run
  int64_t queries_late_for_be = 0;
};

// "p99 within 1.05 x alone, median within 1.1 x alone, latency within 2.00 ms"; "nothing" for none.
std::string PromiseText(double p99_bound, double p50_bound, int64_t target_ns);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_EVENTS_PROMISE_H_
