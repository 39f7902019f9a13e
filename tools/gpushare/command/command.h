// The command line: options to actions, failures to exit codes.

#ifndef GPUSHARE_TOOLS_GPUSHARE_COMMAND_COMMAND_H_
#define GPUSHARE_TOOLS_GPUSHARE_COMMAND_COMMAND_H_

namespace gpushare::tool {

// Runs the command and returns its exit code (docs/command.md). Prints a failure on
// stderr, and with --json also on stdout. Throws nothing.
int RunCommand(int argc, const char* const* argv) noexcept;

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_COMMAND_COMMAND_H_
