#include "tools/gpushare/command/datacenter_command.h"

#include <exception>
#include <filesystem>
#include <system_error>

#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/interrupt.h"
#include "tools/gpushare/base/text.h"
#include "tools/gpushare/command/rethrow.h"
#include "tools/gpushare/datacenter/finished_gpus.h"
#include "tools/gpushare/datacenter/warehouse_text.h"
#include "tools/gpushare/plot/plot.h"

namespace gpushare::tool {

namespace {

void WriteFiles(const Warehouse& warehouse, const DatacenterResult& result,
                const std::string& folder) {
  WriteFile(folder + "/figure14.svg", SvgFile(ViolationPlot(result)));
  WriteFile(folder + "/figure15.svg", SvgFile(UtilisationPlot(result)));
  WriteFile(folder + "/report.html", PageOf(warehouse, result));
  WriteFile(folder + "/datacenter.json", JsonOf(warehouse, result));
}

// What was saved last, as a sentence; empty: nothing was.
std::string KeptText(const FinishedGpus& saved, const std::string& file) {
  if (saved.empty()) return "";
  return Format(" Finished are the pairs of %zu policies and %zu GPUs, in '", saved.pairs.size(),
                saved.GpuCount()) +
         file + "'; the same command with --resume runs the rest.";
}

}  // namespace

void RunDatacenterCommand(const Warehouse& warehouse, DatacenterOptions options,
                          const DatacenterOutput& output) {
  const InterruptGuard guard;
  const std::string partial = output.folder + "/partial.json";
  std::string kept;
  if (!output.folder.empty()) {
    MakeFolder(output.folder);
    options.save = [&](const FinishedGpus& finished, const std::string& made_with) {
      SaveFinished(partial, finished, made_with);
      kept = KeptText(finished, partial);
    };
  }
  if (output.resume) {
    options.resume = [&](const std::string& made_with) {
      FinishedGpus finished = LoadFinished(partial, warehouse, made_with);
      kept = KeptText(finished, partial);
      return finished;
    };
  }
  DatacenterResult result;
  try {
    result = RunDatacenter(warehouse, options);
    if (!output.folder.empty()) WriteFiles(warehouse, result, output.folder);
  } catch (const std::exception&) {
    Rethrow(std::current_exception(), kept);
  }
  std::error_code ignored;
  if (!output.folder.empty()) std::filesystem::remove(partial, ignored);
  if (output.json) return Print(JsonOf(warehouse, result));
  Print(TableOf(warehouse, result) + "\nReport: " + output.folder + "/report.html\n");
}

}  // namespace gpushare::tool
