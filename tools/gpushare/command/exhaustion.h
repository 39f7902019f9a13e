// A command that finds no memory left ends with one sentence and exit code 1.
//
// The trees of nlohmann-json allocate in their destructors, so that an exception would end the
// process without a word. Results are renamed when they are complete, so that ending at any
// allocation leaves no half of one. Threads: any.

#ifndef GPUSHARE_TOOLS_GPUSHARE_COMMAND_EXHAUSTION_H_
#define GPUSHARE_TOOLS_GPUSHARE_COMMAND_EXHAUSTION_H_

namespace gpushare::tool {

// For the whole process; call it once, at the start.
void ExitWhenMemoryIsExhausted();

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_COMMAND_EXHAUSTION_H_
