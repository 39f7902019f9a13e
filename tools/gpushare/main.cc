// The program `gpushare`. Everything is in command.cc, so that tests can call it.

#include "tools/gpushare/command.h"
#include "tools/gpushare/exhaustion.h"

int main(int argc, char** argv) {
  gpushare::tool::ExitWhenMemoryIsExhausted();
  return gpushare::tool::RunCommand(argc, argv);
}
