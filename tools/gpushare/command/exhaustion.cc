// Exit when memory is exhausted; see exhaustion.h.

#include "tools/gpushare/command/exhaustion.h"

#include <unistd.h>

#include <new>

#include "tools/gpushare/base/errors.h"

namespace gpushare::tool {

void ExitWhenMemoryIsExhausted() {
  // Allocates nothing, and runs no destructors, which might.
  std::set_new_handler([] {
    constexpr char kSentence[] = "gpushare: memory is exhausted; the command ends.\n";
    const ssize_t written = ::write(STDERR_FILENO, kSentence, sizeof(kSentence) - 1);
    static_cast<void>(written);
    ::_exit(kExitRunFailed);
  });
}

}  // namespace gpushare::tool
