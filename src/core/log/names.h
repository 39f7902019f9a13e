// The words of types.h as text, for traces and messages. Threads: any; the texts are static.

#ifndef GPUSHARE_SRC_CORE_LOG_NAMES_H_
#define GPUSHARE_SRC_CORE_LOG_NAMES_H_

#include "src/core/base/types.h"
#include "src/core/seams/device.h"

namespace gpushare::core {

// A value that is not of the enum gives "unknown".
const char* ReasonName(Reason reason);
const char* OutcomeName(Outcome outcome);
const char* FormName(Form form);

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_LOG_NAMES_H_
