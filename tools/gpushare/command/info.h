// `gpushare info`: what a report of a fault should say of the installation and of this machine.
//
// Where in the flow: before any run. It opens a runtime with the options' defaults, so that it
// shows what the environment sets. Threads: one.

#ifndef GPUSHARE_TOOLS_GPUSHARE_COMMAND_INFO_H_
#define GPUSHARE_TOOLS_GPUSHARE_COMMAND_INFO_H_

#include <string>

namespace gpushare::tool {

// Versions, device, profile and policy, what the library warns of, and the GPUSHARE_ variables that
// are set, a line each. InputError for a variable that the library refuses.
std::string InfoText();

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_COMMAND_INFO_H_
