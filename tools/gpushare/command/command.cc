#include "tools/gpushare/command/command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/interrupt.h"
#include "tools/gpushare/base/limits.h"
#include "tools/gpushare/base/text.h"
#include "tools/gpushare/command/arguments.h"
#include "tools/gpushare/command/colocate_command.h"
#include "tools/gpushare/command/datacenter_command.h"
#include "tools/gpushare/command/info.h"
#include "tools/gpushare/command/json_output.h"
#include "tools/gpushare/command/ptx_command.h"
#include "tools/gpushare/command/ptx_fuse.h"
#include "tools/gpushare/command/validate.h"
#include "tools/gpushare/datacenter/datacenter.h"
#include "tools/gpushare/datacenter/warehouse.h"
#include "tools/gpushare/events/explain.h"
#include "tools/gpushare/events/explain_text.h"
#include "tools/gpushare/events/replay.h"
#include "tools/gpushare/plan/evaluate_planner.h"
#include "tools/gpushare/plan/place_command.h"
#include "tools/gpushare/plan/plan_command.h"
#include "tools/gpushare/plot/plot.h"
#include "tools/gpushare/profile/calibrate.h"
#include "tools/gpushare/profile/evaluation.h"
#include "tools/gpushare/profile/evaluation_report.h"
#include "tools/gpushare/profile/profile_files.h"
#include "tools/gpushare/report/measured.h"
#include "tools/gpushare/scenario/arrivals.h"
#include "tools/gpushare/scenario/scenario.h"

namespace gpushare::tool {

namespace {

constexpr char kExitCodes[] =
    "Exit codes: 0 done; 1 a run or a write failed, a replay differs, a twin is refused, or "
    "an app has no GPU; 2 bad "
    "input; 130 or 143 interrupted by SIGINT or SIGTERM.";

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

void RunColocate(const ColocateArguments& arguments) {
  RequireChoice("--device", arguments.device, {"auto", "sim", "cuda", "null", "sim:realtime"});
  RequireChoice("--tier", arguments.tier, {"kernel", "block"});
  Scenario scenario = LoadScenario(FindScenario(arguments.scenario));
  const MeasuredResults measured = LoadMeasured(arguments.measured);
  ApplyOverrides(arguments, scenario);
  ColocateOptions options;
  options.device = arguments.device;
  options.tier = arguments.tier;
  options.policies = arguments.policies;
  options.cases = arguments.cases;
  options.quiet = arguments.quiet;
  if (!arguments.trace_ms.empty()) {
    options.trace_window_ns =
        1'000'000 * WholeNumber("--trace-ms", arguments.trace_ms, 1, kTraceMsMax);
  }
  SetWholeNumber("--threads", arguments.threads, 1, 256, options.threads);
  SetWholeNumber("--rounds", arguments.rounds, 1, kRoundsMax, options.rounds);
  ColocateOutput output = {arguments.out, arguments.json, arguments.resume};
  if (output.folder.empty() && !output.json) output.folder = "out/" + scenario.name;
  if (output.resume && output.folder.empty()) {
    throw InputError("--resume needs --out, because --json alone writes no files.");
  }
  RunColocateCommand(scenario, options, measured, output);
}

void RunExplain(const ExplainArguments& arguments) {
  ExplainOptions options = {
      .folder = arguments.folder, .case_name = arguments.case_name, .policy = arguments.policy};
  if (!arguments.ticket.empty()) options.ticket = TicketNumber(arguments.ticket);
  const Explanation explanation = Explain(options);
  Print(arguments.json ? JsonOf(explanation) : TextOf(explanation));
}

void RunReplay(const ReplayArguments& arguments) {
  const std::vector<ReplayedLog> logs = ReplayLogs(arguments.options);
  Print(arguments.json ? JsonOf(logs) : TextOf(logs));
  const auto differ = std::count_if(logs.begin(), logs.end(),
                                    [](const ReplayedLog& log) { return !log.matches(); });
  if (differ == 0) return;
  throw Differs(std::to_string(differ) + " of " + std::to_string(logs.size()) +
                " replays differ from their logs.");
}

// The first option given that asks for a measurement, by its name; null: none does.
const char* MeasuringOption(const CalibrateArguments& arguments) {
  const CalibrateOptions& options = arguments.options;
  const std::pair<const char*, bool> all[] = {
      {"--catalogue", options.catalogue},
      {"--shapes", options.instead == CalibrateOptions::Instead::kShapes},
      {"--placed-shapes", options.instead == CalibrateOptions::Instead::kPlacedShapes},
      {"--drawn-shapes", options.instead == CalibrateOptions::Instead::kDrawnShapes},
      {"--blind-shapes", options.instead == CalibrateOptions::Instead::kBlindShapes},
      {"--queries", options.instead == CalibrateOptions::Instead::kQueries},
      {"--resume", options.resume},
      {"--samples", !options.samples.empty()},
      {"--repeats", !arguments.repeats.empty()},
      {"--seconds-per-kernel", !arguments.seconds.empty()},
      {"--seconds", !arguments.total.empty()},
      {"--slice-percent", !arguments.slice_percent.empty()},
  };
  for (const auto& [name, given] : all) {
    if (given) return name;
  }
  return nullptr;
}

// `calibrate --like` is `profile like` under the names that calibrate gives to its options.
void RunCalibrateLike(const CalibrateArguments& arguments) {
  const CalibrateOptions& options = arguments.options;
  const std::string option = arguments.like.empty() ? "--counters" : "--like";
  if (const char* measuring = MeasuringOption(arguments); measuring != nullptr) {
    throw InputError(option + " measures nothing, and " + measuring + " does not go with it.");
  }
  if (options.kernels.size() != 1) {
    throw InputError(option + " needs --kernels with one name, the kernel to fill, and it has " +
                     std::to_string(options.kernels.size()) + ".");
  }
  if (options.device.profile.empty()) {
    throw InputError(option + " needs --profile, which has the kernel that the new one is like.");
  }
  const std::filesystem::path folder = std::filesystem::path(options.out).parent_path();
  if (!folder.empty()) MakeFolder(folder.string());
  Print(LikeKernel(options.device.profile, options.kernels.front(), arguments.like,
                   arguments.counters, options.out));
}

void RunCalibrate(const CalibrateArguments& arguments) {
  if (!(arguments.like + arguments.counters).empty()) return RunCalibrateLike(arguments);
  const InterruptGuard guard;
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
  const bool kernels = options.instead == CalibrateOptions::Instead::kNothing;
  if (!kernels && options.samples.empty()) {
    throw InputError(
        "--shapes, --drawn-shapes, --placed-shapes, --blind-shapes and --queries need --samples: "
        "what they measure are rows for models.");
  }
  if (!kernels && (options.catalogue || !options.kernels.empty())) {
    throw InputError(
        "--shapes, --drawn-shapes, --placed-shapes, --blind-shapes and --queries measure no "
        "kernels, so --catalogue and --kernels do not go with them.");
  }
  Print(Calibrate(options));
}

void RunEvaluate(const EvaluateArguments& arguments) {
  const std::vector<ModelRows> models = EvaluateModels(arguments.samples, arguments.quiet);
  MakeFolder(arguments.out);
  const std::string name = std::filesystem::path(arguments.samples).filename().string();
  WriteFile(arguments.out + "/models.json", EvaluationJson(models, name));
  WriteFile(arguments.out + "/models.html", EvaluationPage(models, name));
  Print(EvaluationTable(models) + "\nPlots: " + arguments.out + "/models.html\n");
}

// The arguments that an action of `profile` takes, in the order in which they are checked.
struct ProfileAction {
  const char* name;
  const char* other;  // what OTHER is, null: it takes none
  bool writes;
};
constexpr ProfileAction kProfileActions[] = {
    {"show", nullptr, false},
    {"diff", "a second profile", false},
    {"merge", "a second profile", true},
    {"train", "a samples file", true},
    {"like", nullptr, true},
};

void CheckProfileArguments(const ProfileArguments& arguments) {
  RequireChoice("ACTION", arguments.action, {"show", "diff", "merge", "train", "like"});
  const std::string command = "`profile " + arguments.action + "`";
  for (const ProfileAction& action : kProfileActions) {
    if (arguments.action != action.name) continue;
    if ((action.other == nullptr) != arguments.other.empty()) {
      throw InputError(command + (action.other == nullptr ? " takes one profile."
                                                          : std::string(" needs ") + action.other +
                                                                " after the profile."));
    }
    if (action.writes == arguments.out.empty()) {
      throw InputError(command + (action.writes ? " needs --out, the profile to write."
                                                : " writes no profile, and --out does not go with "
                                                  "it."));
    }
  }
  if (arguments.replace_demands && arguments.action != "train") {
    throw InputError("--replace-demands goes with `profile train` only.");
  }
  const bool names = !(arguments.like + arguments.counters).empty() || !arguments.kernel.empty();
  if (names && arguments.action != "like") {
    throw InputError("--kernel, --like and --counters go with `profile like` only.");
  }
  if (arguments.action == "like" && arguments.kernel.empty()) {
    throw InputError("`profile like` needs --kernel, the kernel to fill.");
  }
}

void RunProfile(const ProfileArguments& arguments) {
  CheckProfileArguments(arguments);
  const std::string& action = arguments.action;
  if (action == "show") return Print(ShowProfile(arguments.file));
  if (action == "diff") return Print(DiffProfiles(arguments.file, arguments.other));
  if (action == "train") {
    return Print(
        TrainProfile(arguments.file, arguments.other, arguments.replace_demands, arguments.out));
  }
  if (action == "like") {
    return Print(LikeKernel(arguments.file, arguments.kernel, arguments.like, arguments.counters,
                            arguments.out));
  }
  Print(MergeProfiles(arguments.file, arguments.other, arguments.out));
}

// Options that say something about a pair need the pair.
void RefuseFuseOptions(const PtxFuseArguments& fuse) {
  const bool any = !fuse.other_entry.empty() || !fuse.ratio.empty() || !fuse.threads.empty() ||
                   !fuse.shared.empty() || !fuse.registers.empty() || !fuse.setmaxnreg.empty();
  if (any) {
    throw InputError(
        "--fused-entry, --ratio, --threads, --shared, --registers and --setmaxnreg "
        "go with --fused only.");
  }
}

void RunPtxFuse(const PtxArguments& arguments) {
  const PtxFuseArguments& fuse = arguments.fuse;
  PtxFuseRequest request;
  request.file = arguments.request.file;
  request.entry = arguments.request.entry;
  request.other = fuse.other;
  request.other_entry = fuse.other_entry;
  SetWholeNumber("--setmaxnreg", fuse.setmaxnreg, 1, kFusedBlocksMax, request.moving_blocks);
  const auto read = [](const char* option, const std::string& text, uint32_t low,
                       std::array<uint32_t, 2>& pair, uint32_t high = kFusedNumberMax) {
    if (!text.empty()) pair = NumberPair(option, text, low, high);
  };
  read("--ratio", fuse.ratio, 1, request.copies);
  read("--threads", fuse.threads, 0, request.threads);
  read("--shared", fuse.shared, 0, request.shared_bytes);
  read("--registers", fuse.registers, 0, request.registers, kThreadRegistersMax);
  if (!arguments.request.form.empty() || arguments.json) {
    throw InputError("--form and --json do not go with --fused.");
  }
  if (arguments.action == "check") {
    if (!arguments.out.empty()) throw InputError("--out goes with `ptx transform` only.");
    return Print(FusedRatiosOf(request));
  }
  const std::string module = FusePtx(request);
  return arguments.out.empty() ? Print(module) : WriteFile(arguments.out, module);
}

void RunPtx(const PtxArguments& arguments) {
  RequireChoice("ACTION", arguments.action, {"check", "transform"});
  if (!arguments.fuse.other.empty()) return RunPtxFuse(arguments);
  RefuseFuseOptions(arguments.fuse);
  if (!arguments.request.form.empty()) {
    RequireChoice("--form", arguments.request.form, {"worker", "slice"});
  }
  if (arguments.action == "transform") {
    if (arguments.json) throw InputError("--json goes with `ptx check` only.");
    const std::string module = TransformPtx(arguments.request);
    return arguments.out.empty() ? Print(module) : WriteFile(arguments.out, module);
  }
  if (!arguments.out.empty()) throw InputError("--out goes with `ptx transform` only.");
  const std::vector<PtxVerdict> verdicts = CheckPtx(arguments.request);
  Print(arguments.json ? JsonOf(verdicts) : TextOf(verdicts));
  const auto refused = std::count_if(verdicts.begin(), verdicts.end(),
                                     [](const PtxVerdict& one) { return !one.reason.empty(); });
  if (refused == 0) return;
  throw Differs(std::to_string(refused) + " of " + std::to_string(verdicts.size()) +
                " forms are refused.");
}

// A refused set is an answer, with exit code 1.
void RunPlan(const PlanArguments& arguments) {
  PlanRequest request = arguments.request;
  request.options.analysis = AnalysisOf("--analysis", arguments.analysis);
  if (arguments.fixed_priorities) {
    request.options.priorities = models::partition::Priorities::kFixed;
  }
  if (arguments.alone) request.options.beside = models::partition::Beside::kNothing;
  SetWholeNumber("--reserve-sms", arguments.reserved_sms, 0, models::partition::kSmsMax,
                 request.options.reserved_sms);
  const Planned planned = PlanTaskSet(request);
  if (!arguments.svg.empty()) WriteFile(arguments.svg, SvgOf(planned));
  Print(arguments.json ? JsonOf(planned) : TextOf(planned));
  if (!planned.plan.admitted) throw Differs("The task set is refused. " + planned.plan.reason);
}

// Apps without a GPU are an answer, with exit code 1.
void RunPlace(const PlaceArguments& arguments) {
  PlaceRequest request = arguments.request;
  request.options.algorithm = AlgorithmOf("--algorithm", arguments.algorithm);
  SetWholeNumber("--moves", arguments.moves, 0, models::placement::kInstancesMax,
                 request.options.moves_max);
  SetWholeNumber("--seed", arguments.seed, 0, INT64_MAX, request.options.seed);
  request.options.valuation.keep_bounds = !arguments.ignore_bounds;
  const Placed placed = PlaceCluster(request);
  Print(arguments.json ? JsonOf(placed) : TextOf(placed));
  if (const std::string text = UnplacedText(placed); !text.empty()) throw Differs(text);
}

void RunDatacenter(const DatacenterArguments& arguments) {
  RequireChoice("--tier", arguments.tier, {"kernel", "block"});
  Warehouse warehouse = LoadWarehouse(FindScenario(arguments.scenario));
  SetWholeNumber("--seed", arguments.seed, 0, INT64_MAX, warehouse.apps.seed);
  SetWholeNumber("--gpus", arguments.gpus, 1, kWarehouseGpusMax, warehouse.gpus);
  CheckGpus(arguments.gpus.empty() ? "'datacenter.gpus'" : "--gpus", warehouse, !arguments.tables);
  if (!arguments.placements.empty()) {
    warehouse.placings = PlacingsOf("--placement", arguments.placements);
  }
  DatacenterOptions options;
  options.tier = arguments.tier;
  options.policies = arguments.policies;
  options.tables = arguments.tables;
  options.quiet = arguments.quiet;
  SetWholeNumber("--check", arguments.checked, 0, kCheckedGpusMax, options.checked);
  CheckChecked(warehouse, options.checked);
  SetWholeNumber("--threads", arguments.threads, 1, 256, options.threads);
  DatacenterOutput output = {arguments.out, arguments.json, arguments.resume};
  if (output.folder.empty() && !output.json) output.folder = "out/" + warehouse.apps.name;
  if (output.resume && output.folder.empty()) {
    throw InputError("--resume needs --out, because --json alone writes no files.");
  }
  RunDatacenterCommand(warehouse, options, output);
}

void RunEvaluatePlanner(const EvaluatePlannerArguments& arguments) {
  EvaluatePlannerRequest request;
  models::partition::EvaluationOptions& options = request.options;
  models::partition::GeneratorOptions& generator = options.generator;
  SetWholeNumber("--tasks", arguments.tasks, 1, kEvaluatedTasksMax, generator.tasks);
  SetWholeNumber("--sets", arguments.sets, 1, kEvaluatedSetsMax, options.sets);
  SetWholeNumber("--seed", arguments.seed, 0, INT64_MAX, options.seed);
  SetWholeNumber("--sms", arguments.sms, 1, models::partition::kSmsMax, generator.sms);
  SetWholeNumber("--granularity", arguments.granularity, 1, generator.sms, generator.grain);
  if (!arguments.eviction_percent.empty()) {
    generator.eviction_share =
        0.01 *
        static_cast<double>(WholeNumber("--eviction-percent", arguments.eviction_percent, 0, 100));
  }
  RequireChoice("--serial-share", arguments.serial_share, {"per-sm", "printed"});
  if (arguments.serial_share == "printed") {
    generator.serial_share = models::partition::SerialShare::kPrinted;
  }
  options.analysis = AnalysisOf("--analysis", arguments.analysis);
  request.utilisations = UtilisationsOf(arguments.utilisation);
  request.quiet = arguments.quiet;
  const PlannerEvaluation evaluation = EvaluatePlanner(request);
  Print(arguments.json ? JsonOf(evaluation) : TextOf(evaluation));
}

void RunValidate(const ValidateArguments& arguments) {
  const Validated validated = Validate(arguments.file);
  Print(arguments.json ? JsonOf(validated) : TextOf(validated));
}

void Parse(int argc, const char* const* argv) {
  CLI::App app("gpushare: latency-critical and best-effort work on one GPU");
  app.set_version_flag("--version", std::string("gpushare ") + gpushare_version_string());
  app.require_subcommand(1);
  app.footer(kExitCodes);
  ColocateArguments colocate;
  ExplainArguments explain;
  CalibrateArguments calibrate;
  ReplayArguments replay;
  ValidateArguments validate;
  const CLI::App* colocate_command = AddColocate(app, colocate);
  const CLI::App* explain_command = AddExplain(app, explain);
  const CLI::App* calibrate_command = AddCalibrate(app, calibrate);
  ProfileArguments profile;
  const CLI::App* profile_command = AddProfile(app, profile);
  EvaluateArguments evaluate;
  const CLI::App* evaluate_command = AddEvaluate(app, evaluate);
  const CLI::App* replay_command = AddReplay(app, replay);
  const CLI::App* info_command = AddInfo(app);
  PlotOptions plot;
  const CLI::App* plot_command = AddPlot(app, plot);
  PtxArguments ptx;
  const CLI::App* ptx_command = AddPtx(app, ptx);
  PlanArguments plan;
  const CLI::App* plan_command = AddPlan(app, plan);
  PlaceArguments place;
  const CLI::App* place_command = AddPlace(app, place);
  DatacenterArguments datacenter;
  const CLI::App* datacenter_command = AddDatacenter(app, datacenter);
  EvaluatePlannerArguments planner;
  const CLI::App* planner_command = AddEvaluatePlanner(app, planner);
  AddValidate(app, validate);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    return Print(app.help());
  } catch (const CLI::CallForVersion& version) {
    return Print(std::string(version.what()) + "\n");
  } catch (const CLI::ParseError& error) {
    RefuseArguments(app, std::vector<std::string>(argv + 1, argv + argc), error);
  }
  if (colocate_command->parsed()) return RunColocate(colocate);
  if (explain_command->parsed()) return RunExplain(explain);
  if (calibrate_command->parsed()) return RunCalibrate(calibrate);
  if (profile_command->parsed()) return RunProfile(profile);
  if (evaluate_command->parsed()) return RunEvaluate(evaluate);
  if (replay_command->parsed()) return RunReplay(replay);
  if (info_command->parsed()) return Print(InfoText());
  if (plot_command->parsed()) return Print(Plot(plot));
  if (ptx_command->parsed()) return RunPtx(ptx);
  if (plan_command->parsed()) return RunPlan(plan);
  if (place_command->parsed()) return RunPlace(place);
  if (datacenter_command->parsed()) return RunDatacenter(datacenter);
  if (planner_command->parsed()) return RunEvaluatePlanner(planner);
  RunValidate(validate);
}

// Says on stderr what failed; with --json also on stdout.
int Complain(const std::exception& error, int code, bool json) {
  const std::string text = OneLine(error.what());
  std::fprintf(stderr, "gpushare: %s\n", text.c_str());
  if (!json) return code;
  try {
    Print(JsonOfError(code, text));
  } catch (const std::exception&) {  // stderr has the error
  }
  return code;
}

bool AsksForJson(int argc, const char* const* argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--json") == 0) return true;
  }
  return false;
}

}  // namespace

int RunCommand(int argc, const char* const* argv) noexcept {
  const bool json = AsksForJson(argc, argv);
  try {
    Parse(argc, argv);
    return kExitOk;
  } catch (const InputError& error) {
    return Complain(error, kExitBadInput, json);
  } catch (const Differs& error) {
    return Complain(error, kExitRunFailed, false);
  } catch (const Interrupted& error) {
    return Complain(error, kExitSignal + error.signal(), json);
  } catch (const std::exception& error) {
    return Complain(error, kExitRunFailed, json);
  }
}

}  // namespace gpushare::tool
