// Output of log messages: the caller's log callback, or stderr if GPUSHARE_LOG asks for it.
//
// Silent by default. Invariants: the callback runs outside every lock of this layer. Threads: any.

#ifndef GPUSHARE_BINDINGS_C_LOG_H_
#define GPUSHARE_BINDINGS_C_LOG_H_

#include <gpushare/gpushare.h>

#include <string>

#include "absl/strings/string_view.h"

namespace gpushare::abi {

class Log {
 public:
  // Without a callback, and for a message whose callback throws, GPUSHARE_LOG (error, warning,
  // info) is the level that goes to stderr.
  Log(gpushare_log_callback callback, void* user);
  void Write(gpushare_log_level level, const char* message) const;
  void Write(gpushare_log_level level, const std::string& message) const {
    Write(level, message.c_str());
  }
  // Whether GPUSHARE_LOG=info asks for sentences on stderr (announce.h), whatever the callback.
  bool Announces() const { return stderr_level_ >= GPUSHARE_LOG_INFO; }
  void Announce(const std::string& sentence) const;

 private:
  gpushare_log_callback callback_;
  void* user_;
  gpushare_log_level stderr_level_ = 0;
};

}  // namespace gpushare::abi

#endif  // GPUSHARE_BINDINGS_C_LOG_H_
