// The words of the library's enumerations, one table each (names.cc), for the C ABI, metrics,
// traces and messages.
//
// Functions take the number of a value because records and callers of the C ABI hold numbers. A
// number outside the enumeration gives "unknown". Threads: any; every text is static.

#ifndef GPUSHARE_SRC_CORE_LOG_NAMES_H_
#define GPUSHARE_SRC_CORE_LOG_NAMES_H_

#include <cstdint>

namespace gpushare::core {

// The lower-case words of the C ABI: "latency_critical", "memcpy", "timed_out", "evict_for_lc".
const char* AppClassName(int64_t app_class);
const char* TaskKindName(int64_t kind);
const char* FormName(int64_t form);
const char* VerdictName(int64_t verdict);
const char* ReasonName(int64_t reason);
const char* EventTypeName(int64_t type);

// Phrases for traces: "evicted for LC", "device lost".
const char* ReasonPhrase(int64_t reason);
const char* OutcomePhrase(int64_t outcome);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_LOG_NAMES_H_
