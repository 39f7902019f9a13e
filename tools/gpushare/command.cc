#include "tools/gpushare/command.h"

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "tools/gpushare/arrivals.h"
#include "tools/gpushare/calibrate.h"
#include "tools/gpushare/colocate.h"
#include "tools/gpushare/errors.h"
#include "tools/gpushare/explain.h"
#include "tools/gpushare/files.h"
#include "tools/gpushare/limits.h"
#include "tools/gpushare/measured.h"
#include "tools/gpushare/report_html.h"
#include "tools/gpushare/result.h"
#include "tools/gpushare/scenario.h"
#include "tools/gpushare/table.h"
#include "tools/gpushare/text.h"
#include "tools/gpushare/validate.h"

namespace gpushare::tool {

namespace {

// Options as typed. Numbers stay text, so that this file words the message for a bad one.
struct ColocateArguments {
  std::string scenario;
  std::vector<std::string> policies;
  std::vector<std::string> cases;
  std::vector<std::string> measured;
  std::string device = "auto";
  std::string tier = "kernel";
  std::string seed;
  std::string duration;
  std::string queries;
  std::string trace_ms;
  std::string trace;
  std::string out;
  std::string threads;
  std::string rounds;
  bool json = false;
};

struct ExplainArguments {
  std::string folder;
  std::string ticket;
  std::string case_name;
  std::string policy;
};

struct CalibrateArguments {
  CalibrateOptions options;
  std::string seed;
  std::string repeats;
  std::string seconds;
  std::string total;
  std::string slice_percent;
};

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

// Sets `field` if the option was given.
template <class Field>
void SetWholeNumber(const char* option, const std::string& text, int64_t low, int64_t high,
                    Field& field) {
  if (!text.empty()) field = static_cast<Field>(WholeNumber(option, text, low, high));
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

// Sets `field_ns` if the option was given.
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
                   "', and it must be one of " + list + ".");
}

void ApplyOverrides(const ColocateArguments& arguments, Scenario& scenario) {
  SetWholeNumber("--seed", arguments.seed, 0, INT64_MAX, scenario.seed);
  if (!arguments.duration.empty()) {
    scenario.duration_ns = SecondsToNs("--duration", arguments.duration);
    scenario.queries = 0;
    for (Case& one : scenario.cases) one.queries = 0;
  }
  if (!arguments.queries.empty()) {
    scenario.queries = WholeNumber("--queries", arguments.queries, 1, kQueriesMax);
    for (Case& one : scenario.cases) one.queries = 0;
  }
  LoadTraces(scenario, arguments.trace);
}

int RunColocate(const ColocateArguments& arguments) {
  RequireChoice("--device", arguments.device, {"auto", "sim", "cuda", "null"});
  RequireChoice("--tier", arguments.tier, {"kernel", "block"});
  Scenario scenario = LoadScenario(FindScenario(arguments.scenario));
  const MeasuredResults measured = LoadMeasured(arguments.measured);
  ApplyOverrides(arguments, scenario);
  ColocateOptions options;
  options.device = arguments.device;
  options.tier = arguments.tier;
  options.policies = arguments.policies;
  options.cases = arguments.cases;
  options.out = arguments.out;
  if (!arguments.trace_ms.empty()) {
    options.trace_window_ns =
        1'000'000 * WholeNumber("--trace-ms", arguments.trace_ms, 1, kTraceMsMax);
  }
  SetWholeNumber("--threads", arguments.threads, 1, 256, options.threads);
  SetWholeNumber("--rounds", arguments.rounds, 1, kRoundsMax, options.rounds);
  if (options.out.empty() && !arguments.json) options.out = "out/" + scenario.name;
  const ColocateResult result = Colocate(scenario, options);
  const std::string result_json = FormatResult(scenario, result);
  if (!options.out.empty()) {
    WriteFile(options.out + "/result.json", result_json);
    WriteFile(options.out + "/events/index.json", FormatEventIndex(result.events));
    WriteFile(options.out + "/report.html", FormatReport(scenario, result, options.out, measured));
  }
  if (arguments.json) {
    std::fputs(result_json.c_str(), stdout);
  } else {
    std::fputs(FormatTable(scenario, result, measured).c_str(), stdout);
    std::printf("\nReport: %s/report.html\n", options.out.c_str());
  }
  return kExitOk;
}

int RunExplain(const ExplainArguments& arguments) {
  ExplainOptions options;
  options.folder = arguments.folder;
  options.case_name = arguments.case_name;
  options.policy = arguments.policy;
  if (!arguments.ticket.empty()) options.ticket = TicketNumber(arguments.ticket);
  std::fputs(Explain(options).c_str(), stdout);
  return kExitOk;
}

int RunCalibrate(const CalibrateArguments& arguments) {
  CalibrateOptions options = arguments.options;
  if (!options.device.profile.empty()) options.device.profile = FindProfile(options.device.profile);
  RequireChoice("--device", options.device.device, {"auto", "sim", "cuda"});
  RequireChoice("--tier", options.device.tier, {"kernel", "block"});
  SetWholeNumber("--seed", arguments.seed, 1, INT64_MAX, options.device.seed);
  SetWholeNumber("--repeats", arguments.repeats, 1, 101, options.repeats);
  SetSeconds("--seconds-per-kernel", arguments.seconds, options.kernel_time_ns);
  SetSeconds("--seconds", arguments.total, options.total_time_ns);
  if (!arguments.slice_percent.empty()) {
    options.slice_overhead_max =
        0.01 * static_cast<double>(WholeNumber("--slice-percent", arguments.slice_percent, 1, 100));
  }
  std::fputs(Calibrate(options).c_str(), stdout);
  return kExitOk;
}

CLI::App* AddCalibrate(CLI::App& app, CalibrateArguments& arguments) {
  CLI::App* command =
      app.add_subcommand("calibrate", "Measure kernels on this device and write their profile");
  arguments.options.out = "out/profile.json";
  command->add_option("--device", arguments.options.device.device, "auto (default), sim or cuda");
  command->add_option("--out", arguments.options.out, "The profile, default out/profile.json");
  command
      ->add_option("--kernels", arguments.options.kernels,
                   "Only these kernels, separated by commas; restricts the catalogue too")
      ->delimiter(',');
  command->add_option("--repeats", arguments.repeats, "Samples of each duration, default 7");
  command->add_option("--seconds-per-kernel", arguments.seconds,
                      "Device time for each kernel, default 30");
  command->add_option(
      "--seconds", arguments.total,
      "Device time of this run, default without a bound; the notes name what it does not "
      "reach, and --resume continues");
  command->add_option("--slice-percent", arguments.slice_percent,
                      "Most overhead of the smallest slice in per cent, default 2");
  command->add_flag("--catalogue", arguments.options.catalogue,
                    "Also the kernels of the catalogue that the profile does not know");
  command->add_option("--profile", arguments.options.device.profile,
                      "Profile (a file, or an installed name) for values that are not measured, "
                      "default the library's own");
  command->add_option("--tier", arguments.options.device.tier,
                      "Of the simulated device: kernel (default) or block");
  command->add_option("--seed", arguments.seed, "Seed of evictions and of the simulated device");
  command->add_flag("--resume", arguments.options.resume,
                    "Continue from the checkpoint of a calibration that was stopped");
  return command;
}

CLI::App* AddColocate(CLI::App& app, ColocateArguments& arguments) {
  CLI::App* command = app.add_subcommand(
      "colocate", "Run LC apps beside BE apps under each policy on the same arrivals");
  command
      ->add_option("SCENARIO", arguments.scenario,
                   "Scenario file (docs/scenario-schema.md), or the name of an installed one")
      ->required();
  command
      ->add_option("--policy", arguments.policies,
                   "Policies instead of the scenario's, separated by commas")
      ->delimiter(',');
  command->add_option("--case", arguments.cases, "Only these cases, separated by commas")
      ->delimiter(',');
  command
      ->add_option("--measured", arguments.measured,
                   "Files of rows that a GPU measured, to show beside these, separated by commas")
      ->delimiter(',');
  command->add_option("--device", arguments.device, "auto (default), sim, cuda or null");
  command->add_option("--tier", arguments.tier,
                      "Of the simulated device: kernel (default) or block");
  command->add_option("--seed", arguments.seed, "Seed of arrivals and of the simulated device");
  command->add_option("--duration", arguments.duration, "Seconds of device time with arrivals");
  command->add_option("--queries", arguments.queries, "Queries of each LC app");
  command->add_option("--trace", arguments.trace, "CSV file for the arrivals of type 'trace'");
  command->add_option("--trace-ms", arguments.trace_ms,
                      "Length of the traced window in ms, default 50");
  command->add_option("--threads", arguments.threads, "Runs at a time on a simulated device");
  command->add_option("--rounds", arguments.rounds,
                      "Rounds in which the rows of a case are interleaved on a GPU, default 3");
  command->add_option("--out", arguments.out,
                      "Output folder, default out/<scenario>; with --json none");
  command->add_flag("--json", arguments.json, "Print result.json instead of the table");
  return command;
}

CLI::App* AddExplain(CLI::App& app, ExplainArguments& arguments) {
  CLI::App* command = app.add_subcommand(
      "explain", "Why a task waited, what ran beside it, predicted against measured");
  command->add_option("OUTPUT_FOLDER", arguments.folder, "What colocate wrote")->required();
  command->add_option(
      "TICKET", arguments.ticket,
      "Ticket number; without one, the slowest LC tickets of the traced window are listed");
  command->add_option("--case", arguments.case_name, "Only in this case");
  command->add_option("--policy", arguments.policy, "Only under this policy");
  return command;
}

int Parse(int argc, const char* const* argv) {
  CLI::App app("gpushare: latency-critical and best-effort work on one GPU");
  app.set_version_flag("--version", std::string("gpushare ") + gpushare_version_string());
  app.require_subcommand(1);
  ColocateArguments colocate;
  ExplainArguments explain;
  std::string file;
  const CLI::App* colocate_command = AddColocate(app, colocate);
  const CLI::App* explain_command = AddExplain(app, explain);
  CalibrateArguments calibrate;
  const CLI::App* calibrate_command = AddCalibrate(app, calibrate);
  CLI::App* validate_command =
      app.add_subcommand("validate", "Check a scenario or a profile without running it");
  validate_command->add_option("FILE", file, "Scenario or profile")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    throw InputError(std::string(error.what()) + ".");
  }
  if (colocate_command->parsed()) return RunColocate(colocate);
  if (explain_command->parsed()) return RunExplain(explain);
  if (calibrate_command->parsed()) return RunCalibrate(calibrate);
  std::fputs(Validate(file).c_str(), stdout);
  return kExitOk;
}

int Complain(const std::exception& error, int code) {
  std::fprintf(stderr, "gpushare: %s\n", OneLine(error.what()).c_str());
  return code;
}

}  // namespace

int RunCommand(int argc, const char* const* argv) noexcept {
  try {
    return Parse(argc, argv);
  } catch (const InputError& error) {
    return Complain(error, kExitBadInput);
  } catch (const std::exception& error) {
    return Complain(error, kExitRunFailed);
  }
}

}  // namespace gpushare::tool
