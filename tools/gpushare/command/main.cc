// The program `gpushare`. Everything else is in command.cc, so that tests can call it.

#include <csignal>

#include "tools/gpushare/command/command.h"
#include "tools/gpushare/command/exhaustion.h"

int main(int argc, char** argv) {
  // A file above the limit of `ulimit -f` is then an error of its write, with the file's name.
  std::signal(SIGXFSZ, SIG_IGN);
  gpushare::tool::ExitWhenMemoryIsExhausted();
  return gpushare::tool::RunCommand(argc, argv);
}
