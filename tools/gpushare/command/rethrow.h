// How a command says what is left of a run that failed.
//
// Threads: the command's.

#ifndef GPUSHARE_TOOLS_GPUSHARE_COMMAND_RETHROW_H_
#define GPUSHARE_TOOLS_GPUSHARE_COMMAND_RETHROW_H_

#include <exception>
#include <string>

namespace gpushare::tool {

// Throws the failure that stopped the run again, of the same class, with `more` behind its
// sentence.
[[noreturn]] void Rethrow(const std::exception_ptr& stopped, const std::string& more);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_COMMAND_RETHROW_H_
