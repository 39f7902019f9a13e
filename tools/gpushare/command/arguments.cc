#include "tools/gpushare/command/arguments.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/library.h"
#include "tools/gpushare/base/limits.h"
#include "tools/gpushare/base/suggest.h"
#include "tools/gpushare/base/text.h"

namespace gpushare::tool {

namespace {

// An option whose value --help shows as `type`.
template <class Field>
CLI::Option* Add(CLI::App& command, const char* name, Field& field, const char* type,
                 const std::string& help) {
  return command.add_option(name, field, help)->type_name(type);
}

std::string Joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? " " : ", ") + name;
  return text;
}

void AddQuiet(CLI::App& command, bool& quiet) {
  command.add_flag("--quiet", quiet, "No progress on stderr");
}

}  // namespace

int64_t WholeNumber(const char* option, const std::string& text, int64_t low, int64_t high) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw InputError(Format("%s is '%.60s', and it must be a whole number.", option, text.c_str()));
  }
  if (value < low || value > high) {
    throw InputError(Format("%s is %lld, and it must be from %lld to %lld.", option,
                            static_cast<long long>(value), static_cast<long long>(low),
                            static_cast<long long>(high)));
  }
  return value;
}

std::array<uint32_t, 2> NumberPair(const char* option, const std::string& text, uint32_t low,
                                   uint32_t high) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) {
    throw InputError(
        Format("%s is '%.60s', and it must be two whole numbers with a colon between "
               "them, as in 1:2.",
               option, text.c_str()));
  }
  return {static_cast<uint32_t>(WholeNumber(option, text.substr(0, colon), low, high)),
          static_cast<uint32_t>(WholeNumber(option, text.substr(colon + 1), low, high))};
}

uint64_t TicketNumber(const std::string& text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value == 0) {
    throw InputError("The ticket is '" + text.substr(0, 60) +
                     "', and it must be a whole number above 0.");
  }
  return value;
}

int64_t SecondsToNs(const char* option, const std::string& text) {
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  const double limit = static_cast<double>(kDurationNsMax) * 1e-9;
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(seconds) ||
      seconds < 1e-6 || seconds > limit) {
    throw InputError(Format("%s is '%.60s', and it must be seconds from 0.000001 to %.0f.", option,
                            text.c_str(), limit));
  }
  return std::llround(seconds * 1e9);
}

void SetSeconds(const char* option, const std::string& text, int64_t& field_ns) {
  if (!text.empty()) field_ns = SecondsToNs(option, text);
}

void RequireChoice(const char* option, const std::string& value,
                   const std::vector<std::string>& choices) {
  std::string list;
  for (const std::string& choice : choices) {
    if (value == choice) return;
    list += (list.empty() ? "" : ", ") + choice;
  }
  throw InputError(std::string(option) + " is '" + value.substr(0, 60) +
                   "', and it must be one of " + list + DidYouMean(value, choices));
}

CLI::App* AddCalibrate(CLI::App& app, CalibrateArguments& arguments) {
  CLI::App* command =
      app.add_subcommand("calibrate", "Measure kernels on this device and write their profile");
  CalibrateOptions& options = arguments.options;
  options.out = "out/profile.json";
  Add(*command, "--device", options.device.device, "auto|sim|cuda", "Device, default auto");
  Add(*command, "--out", options.out, "PATH", "The profile, default out/profile.json");
  Add(*command, "--kernels", options.kernels, "KERNEL",
      "Only these kernels, separated by commas; restricts the catalogue too")
      ->delimiter(',');
  Add(*command, "--repeats", arguments.repeats, "COUNT", "Samples of each duration, default 7");
  Add(*command, "--seconds-per-kernel", arguments.seconds, "SECONDS",
      "Device time for each kernel, default 30");
  Add(*command, "--seconds", arguments.total, "SECONDS",
      "Device time of this run, default without a bound; the notes name what it does not reach, "
      "and --resume continues");
  Add(*command, "--slice-percent", arguments.slice_percent, "PERCENT",
      "Most overhead of the smallest slice, 1 to 100, default 2");
  Add(*command, "--samples", options.samples, "PATH",
      "Appends measured durations to this file, repeat by repeat, and measures what models need "
      "beyond a "
      "profile");
  const auto add_instead = [&](const char* name, CalibrateOptions::Instead what,
                               const char* description) {
    return command->add_flag_callback(
        name, [&options, what] { options.instead = what; }, description);
  };
  CLI::Option* const shapes =
      add_instead("--shapes", CalibrateOptions::Instead::kShapes,
                  "Library calls of many shapes instead of kernels; needs a GPU and --samples");
  CLI::Option* const drawn = add_instead("--drawn-shapes", CalibrateOptions::Instead::kDrawnShapes,
                                         "Library calls of random shapes, as --shapes");
  CLI::Option* const placed =
      add_instead("--placed-shapes", CalibrateOptions::Instead::kPlacedShapes,
                  "Some library calls on every number of SMs that a split gives, as --shapes");
  CLI::Option* const blind =
      add_instead("--blind-shapes", CalibrateOptions::Instead::kBlindShapes,
                  "Library calls that judge models and train none, as --shapes");
  CLI::Option* const queries = add_instead("--queries", CalibrateOptions::Instead::kQueries,
                                           "Whole queries at several input sizes, as --shapes");
  drawn->excludes(shapes);
  placed->excludes(shapes)->excludes(drawn);
  blind->excludes(shapes)->excludes(drawn)->excludes(placed);
  queries->excludes(shapes)->excludes(drawn)->excludes(placed)->excludes(blind);
  command->add_flag("--catalogue", options.catalogue,
                    "Also the kernels of the catalogue that the profile does not know");
  Add(*command, "--like", arguments.like, "NAME",
      "Measures nothing: fills the record of the one kernel in --kernels from that of this kernel "
      "in --profile");
  Add(*command, "--counters", arguments.counters, "PATH",
      "A samples file with counters of the kernel to fill; without --like, it is filled from the "
      "kernel with the nearest counters");
  Add(*command, "--profile", options.device.profile, "PATH|NAME",
      "Profile (a file, or an installed name) for values that are not measured, default the "
      "library's own");
  Add(*command, "--tier", options.device.tier, "kernel|block",
      "Of the simulated device, default kernel");
  Add(*command, "--seed", arguments.seed, "INTEGER",
      "Seed of evictions and of the simulated device");
  command->add_flag("--resume", options.resume,
                    "Continue from the checkpoint of a calibration that was stopped");
  AddQuiet(*command, options.quiet);
  return command;
}

CLI::App* AddColocate(CLI::App& app, ColocateArguments& arguments) {
  CLI::App* command = app.add_subcommand(
      "colocate", "Run LC apps beside BE apps under each policy on the same arrivals");
  Add(*command, "SCENARIO", arguments.scenario, "PATH|NAME",
      "Scenario file (docs/scenario-schema.md), or the name of an installed one")
      ->required();
  Add(*command, "--policy", arguments.policies, "POLICY",
      "Policies instead of the scenario's, separated by commas:" + Joined(PolicyNames()))
      ->delimiter(',');
  Add(*command, "--case", arguments.cases, "CASE",
      "Only these cases of the scenario, separated by commas")
      ->delimiter(',');
  Add(*command, "--measured", arguments.measured, "PATH",
      "Files of rows that a GPU measured, to show beside these, separated by commas")
      ->delimiter(',');
  Add(*command, "--device", arguments.device, "auto|sim|cuda|null|sim:realtime",
      "Device, default auto");
  Add(*command, "--tier", arguments.tier, "kernel|block",
      "Of the simulated device, default kernel");
  Add(*command, "--seed", arguments.seed, "INTEGER",
      "Seed of arrivals and of the simulated device");
  Add(*command, "--duration", arguments.duration, "SECONDS", "Device time with arrivals");
  Add(*command, "--queries", arguments.queries, "COUNT", "Queries of each LC app");
  Add(*command, "--trace", arguments.trace, "PATH", "CSV file for the arrivals of type 'trace'");
  Add(*command, "--trace-ms", arguments.trace_ms, "MILLISECONDS",
      "Length of the traced window, default 50");
  Add(*command, "--threads", arguments.threads, "COUNT",
      "Runs at a time on a simulated device, default the host's cores");
  Add(*command, "--rounds", arguments.rounds, "COUNT",
      "Rounds in which the rows of a case are interleaved on a GPU, default 3");
  Add(*command, "--out", arguments.out, "FOLDER",
      "Output folder, default out/<scenario>; with --json none");
  command->add_flag("--resume", arguments.resume,
                    "Run only the cases that the partial set of the output folder does not have");
  command->add_flag("--json", arguments.json, "Print result.json instead of the table");
  AddQuiet(*command, arguments.quiet);
  return command;
}

CLI::App* AddExplain(CLI::App& app, ExplainArguments& arguments) {
  CLI::App* command = app.add_subcommand(
      "explain", "Why a task waited, what ran beside it, predicted against measured");
  Add(*command, "OUTPUT_FOLDER", arguments.folder, "FOLDER", "What colocate wrote")->required();
  Add(*command, "TICKET", arguments.ticket, "NUMBER",
      "Ticket; without one, the slowest LC tickets of the traced window are listed, and what each "
      "app was promised and got");
  Add(*command, "--case", arguments.case_name, "CASE", "Only in this case");
  Add(*command, "--policy", arguments.policy, "POLICY", "Only under this policy");
  command->add_flag("--json", arguments.json, "Print JSON (docs/command.md)");
  return command;
}

CLI::App* AddReplay(CLI::App& app, ReplayArguments& arguments) {
  CLI::App* command = app.add_subcommand(
      "replay", "Whether the scheduler decides again as the event log of a run says");
  ReplayOptions& options = arguments.options;
  Add(*command, "LOG", options.log, "PATH", "An event log of colocate, or its output folder: all")
      ->required();
  Add(*command, "--scenario", options.scenario, "FILE",
      "The scenario of the run, default where the run found it");
  Add(*command, "--case", options.case_name, "CASE", "Only logs of this case");
  Add(*command, "--policy", options.policy, "POLICY", "Only logs recorded under this policy");
  Add(*command, "--under", options.under, "POLICY",
      "Replay under this policy, default the recorded one");
  command->add_flag("--json", arguments.json, "Print JSON (docs/replay.md)");
  return command;
}

CLI::App* AddEvaluate(CLI::App& app, EvaluateArguments& arguments) {
  CLI::App* command = app.add_subcommand(
      "evaluate-models", "What the models predict of samples that did not train them");
  Add(*command, "SAMPLES", arguments.samples, "PATH", "What calibrate --samples wrote")->required();
  Add(*command, "--out", arguments.out, "FOLDER",
      "models.json and models.html go there, default out/models");
  AddQuiet(*command, arguments.quiet);
  return command;
}

CLI::App* AddPlot(CLI::App& app, PlotOptions& options) {
  CLI::App* command = app.add_subcommand(
      "plot", "Plots of finished runs: guarantees and arrangement over time, p99 against BE");
  Add(*command, "RESULTS", options.inputs, "PATH",
      "Output folders of colocate, their result.json, or event logs; at most 16")
      ->required();
  Add(*command, "--case", options.choice.case_name, "CASE", "Only this case");
  Add(*command, "--policy", options.choice.policy, "POLICY", "Only this policy");
  Add(*command, "--out", options.out, "FOLDER",
      "plots.html and an SVG file for each plot go there, default out/plots");
  AddQuiet(*command, options.quiet);
  return command;
}

CLI::App* AddProfile(CLI::App& app, ProfileArguments& arguments) {
  CLI::App* command =
      app.add_subcommand("profile", "Show, compare, merge, train or extend profiles");
  Add(*command, "ACTION", arguments.action, "show|diff|merge|train|like", "What to do")->required();
  Add(*command, "FILE", arguments.file, "PATH|NAME", "Profile")->required();
  Add(*command, "OTHER", arguments.other, "PATH|NAME",
      "For diff and merge: a second profile, which counts where both have a record. For train: a "
      "samples file");
  Add(*command, "--out", arguments.out, "PATH", "For merge, train and like: the profile to write");
  command->add_flag("--replace-demands", arguments.replace_demands,
                    "For train: counted demands also where the profile has some");
  Add(*command, "--kernel", arguments.kernel, "NAME", "For like: the kernel to fill");
  Add(*command, "--like", arguments.like, "NAME",
      "For like: the kernel that it is like, default the nearest by counters");
  Add(*command, "--counters", arguments.counters, "PATH",
      "For like: a samples file with counters of the kernel");
  return command;
}

CLI::App* AddInfo(CLI::App& app) {
  return app.add_subcommand("info", "Say versions, device, profile, policy and environment");
}

CLI::App* AddPlan(CLI::App& app, PlanArguments& arguments) {
  CLI::App* command = app.add_subcommand(
      "plan", "Admit periodic tasks to partitions of a device, with a bound for each");
  Add(*command, "FILE", arguments.request.file, "PATH", "Task set (docs/partition-planner.md)")
      ->required();
  Add(*command, "--analysis", arguments.analysis, "concurrent|exclusive|evictable",
      "What a partition's tasks do to each other, default evictable");
  command->add_flag("--fixed-priorities", arguments.fixed_priorities,
                    "Serve a partition by fixed priorities, shortest deadline first, not by EDF");
  Add(*command, "--reserve-sms", arguments.reserved_sms, "COUNT",
      "SMs that no partition gets, default 0");
  command->add_flag("--no-best-effort", arguments.alone,
                    "Nothing else runs on the device: one partition of all SMs has no neighbours");
  Add(*command, "--svg", arguments.svg, "PATH", "Write a map of the SMs to this file");
  command->add_flag("--json", arguments.json, "Print JSON (docs/command.md)");
  return command;
}

CLI::App* AddPlace(CLI::App& app, PlaceArguments& arguments) {
  CLI::App* command =
      app.add_subcommand("place", "Place LC and BE apps on the GPUs of a cluster by predictions");
  models::placement::Valuation& valuation = arguments.request.options.valuation;
  Add(*command, "FILE", arguments.request.file, "PATH", "Cluster (docs/placement.md)")->required();
  Add(*command, "--predict", arguments.request.predict, "SCENARIO",
      "Predict pairs without a row: a scenario whose apps have the names of the kinds");
  Add(*command, "--algorithm", arguments.algorithm, "random|first-fit|greedy|assignment",
      "How BE apps get their GPUs, default assignment");
  Add(*command, "--moves", arguments.moves, "COUNT",
      "Running BE instances that may change their GPU, default 0");
  Add(*command, "--seed", arguments.seed, "NUMBER", "Seed, default 1");
  Add(*command, "--error-bars", valuation.error_bars, "COUNT",
      "Error bars that a p99 counts with, default 1");
  Add(*command, "--risk", valuation.risk, "COUNT",
      "Error bars that a BE rate counts less, default 1");
  Add(*command, "--free-gpu", valuation.free_gpu, "RATE",
      "BE rate that a free GPU is worth, default 0.05");
  command->add_flag("--ignore-bounds", arguments.ignore_bounds,
                    "Place also where an LC app is predicted above its bound, and count those");
  command->add_flag("--json", arguments.json, "Print JSON (docs/command.md)");
  return command;
}

CLI::App* AddDatacenter(CLI::App& app, DatacenterArguments& arguments) {
  CLI::App* command = app.add_subcommand(
      "datacenter", "Simulate a warehouse of GPUs under each policy with each placement");
  Add(*command, "SCENARIO", arguments.scenario, "PATH|NAME",
      "Scenario file (docs/datacenter.md), or the name of an installed one")
      ->required();
  Add(*command, "--policy", arguments.policies, "POLICY",
      "Policies instead of the scenario's, separated by commas:" + Joined(PolicyNames()))
      ->delimiter(',');
  Add(*command, "--placement", arguments.placements, "random|assigned",
      "Placements instead of the scenario's, separated by commas")
      ->delimiter(',');
  Add(*command, "--gpus", arguments.gpus, "COUNT", "GPUs instead of the scenario's");
  command->add_flag("--tables", arguments.tables,
                    "Draw each GPU from runs of its pairs instead of simulating it");
  Add(*command, "--check", arguments.checked, "COUNT",
      "GPUs to simulate again with each SM by itself, default 0");
  Add(*command, "--tier", arguments.tier, "kernel|block",
      "Of the simulated device, default kernel");
  Add(*command, "--seed", arguments.seed, "INTEGER", "Seed of arrivals, devices and placements");
  Add(*command, "--threads", arguments.threads, "COUNT",
      "Runs at a time, default the host's cores");
  Add(*command, "--out", arguments.out, "FOLDER",
      "Output folder, default out/<scenario>; with --json none");
  command->add_flag("--resume", arguments.resume,
                    "Run only what partial.json of the output folder does not have");
  command->add_flag("--json", arguments.json, "Print datacenter.json instead of the table");
  AddQuiet(*command, arguments.quiet);
  return command;
}

CLI::App* AddEvaluatePlanner(CLI::App& app, EvaluatePlannerArguments& arguments) {
  CLI::App* command = app.add_subcommand("evaluate-planner",
                                         "Plan random task sets: figures 3.4 to 3.6 of the thesis");
  Add(*command, "--tasks", arguments.tasks, "COUNT", "Tasks of a set, default 50");
  Add(*command, "--utilisation", arguments.utilisation, "U,...",
      "Points of the figure in SMs, default 2 to all SMs by 2");
  Add(*command, "--sets", arguments.sets, "COUNT", "Sets of a point, default 100");
  Add(*command, "--seed", arguments.seed, "NUMBER", "Seed, default 1");
  Add(*command, "--sms", arguments.sms, "COUNT", "SMs of the device, default 68");
  Add(*command, "--granularity", arguments.granularity, "COUNT",
      "A partition has a multiple of these SMs, default 1");
  Add(*command, "--serial-share", arguments.serial_share, "per-sm|printed",
      "How b follows from a, default per-sm (docs/partition-planner.md)");
  Add(*command, "--analysis", arguments.analysis, "concurrent|exclusive|evictable",
      "Analysis, default concurrent");
  Add(*command, "--eviction-percent", arguments.eviction_percent, "PERCENT",
      "What an eviction costs, of the shortest period, default 5");
  AddQuiet(*command, arguments.quiet);
  command->add_flag("--json", arguments.json, "Print JSON (docs/command.md)");
  return command;
}

CLI::App* AddPtx(CLI::App& app, PtxArguments& arguments) {
  CLI::App* command =
      app.add_subcommand("ptx", "Check which kernels of PTX have twins, or make them");
  Add(*command, "ACTION", arguments.action, "check|transform", "What to do")->required();
  Add(*command, "FILE", arguments.request.file, "PATH", "PTX of one module")->required();
  Add(*command, "--entry", arguments.request.entry, "KERNEL", "Only this kernel of the file");
  Add(*command, "--form", arguments.request.form, "worker|slice", "Only this form; default both");
  Add(*command, "--out", arguments.out, "PATH", "File of the module; default standard output");
  command->add_flag("--json", arguments.json, "check: print JSON (docs/command.md)");
  PtxFuseArguments& fuse = arguments.fuse;
  Add(*command, "--fused", fuse.other, "PATH", "Fuse with the kernel of this file (docs/ptx.md)");
  Add(*command, "--fused-entry", fuse.other_entry, "KERNEL", "Which kernel of that file");
  Add(*command, "--ratio", fuse.ratio, "A:B", "Blocks of each in a fused block; default 1:1");
  Add(*command, "--threads", fuse.threads, "A:B", "Of a block, where a text does not state it");
  Add(*command, "--shared", fuse.shared, "A:B", "Bytes of dynamic shared memory of each block");
  Add(*command, "--registers", fuse.registers, "A:B", "Of a thread of each worker twin");
  Add(*command, "--setmaxnreg", fuse.setmaxnreg, "N",
      "Move registers to the first, so that an SM holds N fused blocks (sm_90a)");
  return command;
}

CLI::App* AddValidate(CLI::App& app, ValidateArguments& arguments) {
  CLI::App* command =
      app.add_subcommand("validate", "Check a scenario or a profile without running it");
  Add(*command, "FILE", arguments.file, "PATH|NAME", "Scenario or profile")->required();
  command->add_flag("--json", arguments.json, "Print JSON (docs/command.md)");
  return command;
}

void RefuseArguments(const CLI::App& app, const std::vector<std::string>& typed,
                     const CLI::ParseError& error) {
  std::vector<std::string> commands;
  const CLI::App* command = nullptr;
  for (const CLI::App* one : app.get_subcommands({})) {
    commands.push_back(one->get_name());
    if (!typed.empty() && one->get_name() == typed[0]) command = one;
  }
  const std::string list = ListOf("commands", commands);
  if (typed.empty()) throw InputError("A command is missing." + list);
  if (command == nullptr && typed[0][0] != '-') {
    throw InputError("There is no command '" + typed[0].substr(0, 60) + "'" +
                     DidYouMean(typed[0], commands) + list);
  }
  const CLI::App& parsed = command == nullptr ? app : *command;
  std::vector<std::string> options;
  for (const CLI::Option* option : parsed.get_options()) {
    for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
  }
  for (const std::string& word : typed) {
    const std::string name = word.substr(0, word.find('='));
    if (name.size() <= 2 || name.compare(0, 2, "--") != 0) continue;
    if (std::find(options.begin(), options.end(), name) != options.end()) continue;
    const std::string of =
        command == nullptr ? "gpushare" : "The command '" + command->get_name() + "'";
    throw InputError(of + " has no option '" + name.substr(0, 60) + "'" +
                     DidYouMean(name, options) + ListOf("options", options));
  }
  throw InputError(std::string(error.what()) + ".");
}

}  // namespace gpushare::tool
