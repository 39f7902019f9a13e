// `gpushare datacenter` from a scenario to its files, which are renamed into place one by one:
// datacenter.json, report.html, figure14.svg and figure15.svg. A run that stops early leaves
// partial.json beside them, from which --resume goes on.

#ifndef GPUSHARE_TOOLS_GPUSHARE_COMMAND_DATACENTER_COMMAND_H_
#define GPUSHARE_TOOLS_GPUSHARE_COMMAND_DATACENTER_COMMAND_H_

#include <string>

#include "tools/gpushare/datacenter/datacenter.h"
#include "tools/gpushare/datacenter/warehouse.h"

namespace gpushare::tool {

struct DatacenterOutput {
  std::string folder;   // empty: no files
  bool json = false;    // print datacenter.json instead of the table
  bool resume = false;  // continue from partial.json of the folder
};

// Runs, writes the files and prints. `options.resume` and `save` are set here. Throws InputError,
// RunError or Interrupted, whose text says what is kept and how to go on.
void RunDatacenterCommand(const Warehouse& warehouse, DatacenterOptions options,
                          const DatacenterOutput& output);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_COMMAND_DATACENTER_COMMAND_H_
