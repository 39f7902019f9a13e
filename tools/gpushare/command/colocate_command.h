// `gpushare colocate` from a scenario to its files: a complete set lands in the folder, a run that
// stops early leaves a partial set beside the earlier results (result_set.h).

#ifndef GPUSHARE_TOOLS_GPUSHARE_COMMAND_COLOCATE_COMMAND_H_
#define GPUSHARE_TOOLS_GPUSHARE_COMMAND_COLOCATE_COMMAND_H_

#include <string>

#include "tools/gpushare/colocate/colocate.h"
#include "tools/gpushare/report/measured.h"
#include "tools/gpushare/scenario/scenario.h"

namespace gpushare::tool {

struct ColocateOutput {
  std::string folder;   // empty: no files
  bool json = false;    // print result.json instead of the table
  bool resume = false;  // continue from the partial set of the folder
};

// Runs, writes the files and prints. `options.out`, `finished`, `begin` and `save` are set here.
// Throws InputError, RunError or Interrupted, whose text says what is kept and how to go on.
void RunColocateCommand(const Scenario& scenario, ColocateOptions options,
                        const MeasuredResults& measured, const ColocateOutput& output);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_COMMAND_COLOCATE_COMMAND_H_
