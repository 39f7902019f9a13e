// The options of every command as typed, with the types that --help shows, and their numbers.
//
// Numbers stay text, so that this file words the message for a bad one.

#ifndef GPUSHARE_TOOLS_GPUSHARE_COMMAND_ARGUMENTS_H_
#define GPUSHARE_TOOLS_GPUSHARE_COMMAND_ARGUMENTS_H_

#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tools/gpushare/command/ptx_command.h"
#include "tools/gpushare/events/replay.h"
#include "tools/gpushare/plan/evaluate_planner.h"
#include "tools/gpushare/plan/place_command.h"
#include "tools/gpushare/plan/plan_command.h"
#include "tools/gpushare/plot/plot.h"
#include "tools/gpushare/profile/calibrate.h"

namespace gpushare::tool {

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
  bool resume = false;
  bool quiet = false;
};

struct ExplainArguments {
  std::string folder;
  std::string ticket;
  std::string case_name;
  std::string policy;
  bool json = false;
};

struct ReplayArguments {
  ReplayOptions options;
  bool json = false;
};

struct CalibrateArguments {
  CalibrateOptions options;
  std::string seed;
  std::string repeats;
  std::string seconds;
  std::string total;
  std::string slice_percent;
  std::string like;      // fills a kernel from this one, and measures nothing
  std::string counters;  // samples file that counts the kernel to fill
};

struct EvaluateArguments {
  std::string samples;
  std::string out = "out/models";
  bool quiet = false;
};

struct ProfileArguments {
  std::string action;
  std::string file;
  std::string other;
  std::string out;
  bool replace_demands = false;
  std::string kernel;
  std::string like;
  std::string counters;
};

struct ValidateArguments {
  std::string file;
  bool json = false;
};

// Pairs of numbers as typed, "A:B"; "": the default.
struct PtxFuseArguments {
  std::string other;
  std::string other_entry;
  std::string ratio;
  std::string threads;
  std::string shared;
  std::string registers;
  std::string setmaxnreg;
};

struct PtxArguments {
  std::string action;
  PtxRequest request;
  PtxFuseArguments fuse;
  std::string out;
  bool json = false;
};

// Numbers as typed; "": the default.
struct PlanArguments {
  PlanRequest request;
  std::string analysis = "evictable";
  std::string reserved_sms;
  bool fixed_priorities = false;
  bool alone = false;
  std::string svg;
  bool json = false;
};

struct DatacenterArguments {
  std::string scenario;
  std::vector<std::string> policies;
  std::vector<std::string> placements;
  std::string gpus;
  std::string seed;
  std::string tier = "kernel";
  std::string checked;
  std::string threads;
  std::string out;
  bool tables = false;
  bool resume = false;
  bool json = false;
  bool quiet = false;
};

struct PlaceArguments {
  PlaceRequest request;
  std::string algorithm = "assignment";
  std::string moves;
  std::string seed;
  bool ignore_bounds = false;
  bool json = false;
};

struct EvaluatePlannerArguments {
  std::string tasks;
  std::string utilisation;
  std::string sets;
  std::string seed;
  std::string sms;
  std::string granularity;
  std::string serial_share = "per-sm";
  std::string analysis = "concurrent";
  std::string eviction_percent;
  bool quiet = false;
  bool json = false;
};

// Each adds its command to `app`; `arguments` must outlive the parse.
CLI::App* AddCalibrate(CLI::App& app, CalibrateArguments& arguments);
CLI::App* AddColocate(CLI::App& app, ColocateArguments& arguments);
CLI::App* AddEvaluate(CLI::App& app, EvaluateArguments& arguments);
CLI::App* AddDatacenter(CLI::App& app, DatacenterArguments& arguments);
CLI::App* AddEvaluatePlanner(CLI::App& app, EvaluatePlannerArguments& arguments);
CLI::App* AddExplain(CLI::App& app, ExplainArguments& arguments);
CLI::App* AddPlace(CLI::App& app, PlaceArguments& arguments);
CLI::App* AddPlan(CLI::App& app, PlanArguments& arguments);
CLI::App* AddPlot(CLI::App& app, PlotOptions& options);
CLI::App* AddProfile(CLI::App& app, ProfileArguments& arguments);
CLI::App* AddInfo(CLI::App& app);
CLI::App* AddPtx(CLI::App& app, PtxArguments& arguments);
CLI::App* AddReplay(CLI::App& app, ReplayArguments& arguments);
CLI::App* AddValidate(CLI::App& app, ValidateArguments& arguments);

// The functions below read a number from text. They throw InputError with the option, the value and
// the limits.
int64_t WholeNumber(const char* option, const std::string& text, int64_t low, int64_t high);
// "1:2".
std::array<uint32_t, 2> NumberPair(const char* option, const std::string& text, uint32_t low,
                                   uint32_t high);
uint64_t TicketNumber(const std::string& text);
int64_t SecondsToNs(const char* option, const std::string& text);

// Sets `field` if the option was given.
template <class Field>
void SetWholeNumber(const char* option, const std::string& text, int64_t low, int64_t high,
                    Field& field) {
  if (!text.empty()) field = static_cast<Field>(WholeNumber(option, text, low, high));
}
void SetSeconds(const char* option, const std::string& text, int64_t& field_ns);

// InputError unless `value` is one of `choices`.
void RequireChoice(const char* option, const std::string& value,
                   const std::vector<std::string>& choices);

// InputError for a command or an option that does not exist, with the one that was meant. `error`
// is what the parser says.
[[noreturn]] void RefuseArguments(const CLI::App& app, const std::vector<std::string>& typed,
                                  const CLI::ParseError& error);

}  // namespace gpushare::tool

#endif  // GPUSHARE_TOOLS_GPUSHARE_COMMAND_ARGUMENTS_H_
