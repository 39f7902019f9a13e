// The program `gpushare`. Everything is in command.cc, so that tests can call it.

#include "tools/gpushare/command.h"

int main(int argc, char** argv) { return gpushare::tool::RunCommand(argc, argv); }
