// Plots of finished runs: a p99 over time that agrees with the sorted samples, bars that cover the
// work, a bounded drawing, and clear errors for what is no result.

#include "tools/gpushare/plot/plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/temporary_folder.h"
#include "tests/tools/report/page_check.h"
#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/events/explain.h"
#include "tools/gpushare/plot/over_time.h"
#include "tools/gpushare/run/metrics.h"

namespace gpushare::tool {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr uint32_t kLc = 1;
constexpr uint32_t kBe = 2;

gpushare_event Event(gpushare_event_type type, int64_t time_ns, uint32_t app) {
  gpushare_event event = GPUSHARE_EVENT_INIT;
  event.type = type;
  event.time_ns = time_ns;
  event.app_id = app;
  event.app_class = app == kLc ? GPUSHARE_CLASS_LATENCY_CRITICAL : GPUSHARE_CLASS_BEST_EFFORT;
  return event;
}

gpushare_event Query(int64_t time_ns, int64_t latency_ns) {
  gpushare_event event = Event(GPUSHARE_EVENT_QUERY_ENDED, time_ns, kLc);
  event.b = latency_ns;
  return event;
}

gpushare_event Part(int64_t from_ns, int64_t to_ns, uint32_t app, int32_t place) {
  gpushare_event event = Event(GPUSHARE_EVENT_PART_DONE, to_ns, app);
  event.b = from_ns;
  event.c = to_ns;
  event.place = place;
  return event;
}

gpushare_event Layout(int64_t time_ns, int64_t sms) {
  gpushare_event event = Event(GPUSHARE_EVENT_CHOICE, time_ns, 0);
  event.detail = kLayoutChoice;
  event.a = sms;
  event.b = -1;
  event.c = 610'000;
  return event;
}

EventIndexEntry MakeRun() {
  EventIndexEntry run;
  run.case_name = "one";
  run.policy = "adaptive";
  run.apps = {{kLc, "service", true}, {kBe, "training", false}};
  LcPromise promise;
  promise.app_id = kLc;
  promise.p99_bound = 1.05;
  promise.p99_alone_ns = 1'000'000;
  run.promises = {promise};
  return run;
}

std::vector<gpushare_event> Queries(int64_t count) {
  std::vector<gpushare_event> events;
  for (int64_t i = 0; i < count; ++i) {
    events.push_back(Query(1'000'000 * i, 500'000 + 7919 * i % 600'000));
  }
  return events;
}

TEST(GuaranteeOverTimeTest, EachPointIsTheExactP99OfTheQueriesUpToIt) {
  const std::vector<gpushare_event> events = Queries(450);
  const std::vector<GuaranteePoint> points = GuaranteeOverTime(events, kLc, 1000);
  ASSERT_EQ(points.size(), 450u);
  std::vector<int64_t> seen;
  for (size_t i = 0; i < points.size(); ++i) {
    seen.push_back(events[i].b);
    std::vector<int64_t> sorted = seen;
    std::sort(sorted.begin(), sorted.end());
    ASSERT_EQ(points[i].p99_ns, Quantile(sorted, 0.99)) << i;
    const size_t first = seen.size() > kRecentQueries ? seen.size() - kRecentQueries : 0;
    std::vector<int64_t> recent(seen.begin() + static_cast<std::ptrdiff_t>(first), seen.end());
    std::sort(recent.begin(), recent.end());
    ASSERT_EQ(points[i].recent_p99_ns, Quantile(recent, 0.99)) << i;
  }
}

TEST(GuaranteeOverTimeTest, ALongLogHasFewPointsAndEndsWithTheLastQuery) {
  const std::vector<gpushare_event> events = Queries(20'000);
  const std::vector<GuaranteePoint> points = GuaranteeOverTime(events, kLc, 600);
  EXPECT_LE(points.size(), 600u);
  EXPECT_GE(points.size(), 300u);
  EXPECT_EQ(points.back().time_ns, events.back().time_ns);
  EXPECT_TRUE(GuaranteeOverTime(events, kBe, 600).empty());
}

TEST(GuaranteePlotsTest, ShowsTheP99AgainstItsBoundWithALegend) {
  const std::vector<NamedPlot> plots = GuaranteePlots(MakeRun(), Queries(200));
  ASSERT_EQ(plots.size(), 1u) << "one for each LC app";
  EXPECT_EQ(plots[0].title, "service: p99 over time");
  EXPECT_THAT(plots[0].svg, HasSubstr("p99 over alone"));
  EXPECT_THAT(plots[0].svg, HasSubstr(">bound 1.05x</text>"));
  EXPECT_THAT(plots[0].svg, HasSubstr(">p99 of the last 100 queries</text>"));
  EXPECT_THAT(PageFaults(plots[0].svg), ::testing::IsEmpty());
}

TEST(GuaranteePlotsTest, WithoutAP99AloneTheAxisIsTimeAndSaysSo) {
  EventIndexEntry run = MakeRun();
  run.promises.clear();
  const std::vector<NamedPlot> plots = GuaranteePlots(run, Queries(20));
  ASSERT_EQ(plots.size(), 1u);
  EXPECT_THAT(plots[0].svg, HasSubstr("p99 in ms; p99 alone is unknown"));
  EXPECT_THAT(plots[0].svg, Not(HasSubstr("bound")));
}

TEST(ArrangementPlotsTest, HasARowForEachPlaceWithWorkAndForEachLayout) {
  std::vector<gpushare_event> events = {Layout(0, 132),
                                        Part(0, 10'000'000, kBe, 0),
                                        Layout(10'000'000, 60),
                                        Part(10'000'000, 30'000'000, kBe, 2),
                                        Part(12'000'000, 13'000'000, kLc, 1),
                                        Layout(30'000'000, 132),
                                        Part(30'000'000, 40'000'000, kBe, 0)};
  const std::vector<NamedPlot> plots = ArrangementPlots(MakeRun(), events);
  ASSERT_EQ(plots.size(), 1u);
  const std::string& svg = plots[0].svg;
  for (const char* const row :
       {">all SMs, BE</text>", ">partition 1, LC</text>", ">partition 2, BE</text>",
        ">60 SMs for LC</text>", ">132 SMs for LC</text>"}) {
    EXPECT_THAT(svg, HasSubstr(row));
  }
  EXPECT_THAT(svg, HasSubstr("60 SMs for LC, predicted BE throughput 0.610"));
  // The whole device: two times of BE work; the layout of 132 SMs: two times in force.
  size_t bars = 0;
  for (const std::string& bar : Elements(svg, "rect"))
    bars += bar.find("<title>") != std::string::npos;
  EXPECT_EQ(bars, 2u + 1 + 1 + 1 + 2);
  EXPECT_THAT(svg, HasSubstr(">layout chosen</text>"));
  EXPECT_THAT(PageFaults(svg), ::testing::IsEmpty());
  EXPECT_TRUE(ArrangementPlots(MakeRun(), Queries(5)).empty()) << "no launch ended";
}

TEST(ArrangementPlotsTest, ALongLogHasABoundedNumberOfBars) {
  std::vector<gpushare_event> events;
  for (int64_t i = 0; i < 30'000; ++i) {
    events.push_back(Part(10'000 * i, 10'000 * i + 4'000, kBe, 0));
    events.push_back(Layout(10'000 * i, i % 2 == 0 ? 132 : 60));
  }
  const std::string svg = ArrangementPlots(MakeRun(), events).at(0).svg;
  EXPECT_LT(svg.size(), 500'000u);
}

TEST(PlotInputsTest, ALogAloneNamesItsAppsByNumberAndReadsTheirPromises) {
  std::vector<gpushare_event> events = {Event(GPUSHARE_EVENT_APP_CREATED, 5, kLc),
                                        Event(GPUSHARE_EVENT_APP_UPDATED, 6, kLc),
                                        Event(GPUSHARE_EVENT_APP_CREATED, 7, kBe)};
  events[0].b = 2'000'000;
  events[0].c = 1'050'000;
  events[1].b = 900'000;
  events[1].c = 0x3FF199999999999A;  // 1.1
  const EventIndexEntry run = RunOfEvents("folder/some.gpulog", events);
  EXPECT_EQ(run.case_name, "some.gpulog");
  ASSERT_EQ(run.apps.size(), 2u);
  EXPECT_EQ(run.apps[0].name, "app 1");
  EXPECT_TRUE(run.apps[0].latency_critical);
  ASSERT_EQ(run.promises.size(), 1u) << "BE apps have none";
  EXPECT_EQ(run.promises[0].p99_alone_ns, 900'000);
  EXPECT_DOUBLE_EQ(run.promises[0].p99_bound, 1.1);
}

constexpr char kResult[] =
    R"({"schema_version": 1, "scenario": "made_up", "simulated": true, "runs": [
 {"case": "a", "policy": "be_alone", "lc": [], "be": [{"app": "be", "rate_of_solo": 1}]},
 {"case": "a", "policy": "adaptive", "load": 0.3, "realised_load": 0.31,
  "lc": [{"app": "lc", "p99_over_alone": 1.02, "p99_bound": 1.05, "a_new_field": 1}],
  "be": [{"app": "x", "rate_of_solo": 0.4}, {"app": "y", "rate_of_solo": 0.9}]}]})";

// Writes the log of a BE task that runs alone.
void WriteLog(const std::string& path) {
  DeviceChoice device;
  device.device = "sim";
  const RuntimeHandle runtime = OpenRuntime(device, "adaptive");
  gpushare_trace_options trace = GPUSHARE_TRACE_OPTIONS_INIT;
  trace.event_log_path = path.c_str();
  Check(gpushare_trace_start(runtime.get(), &trace));
  gpushare_app_options be = GPUSHARE_APP_OPTIONS_INIT;
  be.name = "training";
  be.app_class = GPUSHARE_CLASS_BEST_EFFORT;
  gpushare_app* app = nullptr;
  Check(gpushare_app_create(runtime.get(), &be, &app));
  const AppHandle owned_app(app);
  gpushare_queue* queue = nullptr;
  Check(gpushare_queue_create(app, &queue));
  const QueueHandle owned_queue(queue);
  gpushare_kernel_options options = GPUSHARE_KERNEL_OPTIONS_INIT;
  options.name = "sincos_27us";
  gpushare_kernel* kernel = nullptr;
  Check(gpushare_kernel_register(runtime.get(), &options, &kernel));
  const KernelHandle owned_kernel(kernel);
  gpushare_task_options step = GPUSHARE_TASK_OPTIONS_INIT;
  step.kernel = kernel;
  step.block_tasks = 4000;
  Check(gpushare_submit_be(queue, &step, nullptr));
  Check(gpushare_poll_until(runtime.get(), NowNs(runtime.get()) + 50'000'000));
  Check(gpushare_trace_stop(runtime.get(), nullptr));
}

constexpr char kStamp[] = ">SIMULATED<";

class PlotTest : public ::testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    std::string path = temporary_.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }
  std::string ErrorOf(PlotOptions options) {
    options.out = temporary_.path() + "/out";
    try {
      Plot(options);
    } catch (const InputError& error) {
      EXPECT_FALSE(std::filesystem::exists(options.out)) << "nothing is written";
      return error.what();
    }
    return "no error";
  }
  // A folder of colocate with one log, and its result.json where `result` has a text.
  std::string Folder(const std::string& name, const std::string& result,
                     const std::optional<RunOrigin>& origin) {
    std::string folder = temporary_.path() + "/" + name;
    std::filesystem::create_directories(folder + "/events");
    EventIndexEntry run = MakeRun();
    run.file = "events/one.gpulog";
    run.chosen = true;
    run.origin = origin;
    Write(name + "/events/index.json", FormatEventIndex({run}));
    if (!result.empty()) Write(name + "/result.json", result);
    return folder;
  }
  static std::string Read(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  const TemporaryFolder temporary_;
};

TEST_F(PlotTest, ALogIsSimulatedIfWhatLiesBesideItSaysSo) {
  std::string of_gpu = kResult;
  of_gpu.replace(of_gpu.find("true"), 4, "false");
  const RunOrigin origin = {"a.json", "0", "sim", "kernel", 1};
  const std::vector<std::pair<std::string, std::optional<bool>>> cases = {
      {Folder("simulated", kResult, std::nullopt), true},
      {Folder("gpu", of_gpu, std::nullopt), false},
      {Folder("origin", "", origin), true},
      {Folder("silent", "", std::nullopt), std::nullopt}};
  for (const auto& [folder, expected] : cases) {
    for (const std::string& path : {folder, folder + "/events/one.gpulog"}) {
      const PlotInput input = ReadPlotInput(path, {});
      ASSERT_EQ(input.logs.size(), 1u) << path;
      EXPECT_EQ(input.logs[0].simulated, expected) << path;
    }
  }
}

TEST_F(PlotTest, ASimulatedLogIsStampedOnThePageAndInItsFile) {
  const std::string folder = Folder("simulated", kResult, std::nullopt);
  WriteLog(folder + "/events/one.gpulog");
  PlotOptions options;
  options.inputs = {folder + "/events/one.gpulog"};
  options.out = temporary_.path() + "/stamped";
  Plot(options);
  EXPECT_THAT(Read(options.out + "/plots.html"), HasSubstr("<span class=\"stamp\">SIMULATED<"));
  EXPECT_THAT(Read(options.out + "/01-arrangement.svg"), HasSubstr(kStamp));
  EXPECT_THAT(PageFaults(Read(options.out + "/plots.html")), ::testing::IsEmpty());

  std::filesystem::remove(folder + "/result.json");
  options.out = temporary_.path() + "/unknown";
  Plot(options);
  EXPECT_THAT(
      Read(options.out + "/plots.html"),
      AllOf(HasSubstr("Whether the device was simulated is unknown"), Not(HasSubstr(kStamp))));
  EXPECT_THAT(Read(options.out + "/01-arrangement.svg"), Not(HasSubstr(kStamp)));
}

TEST_F(PlotTest, OfAResultItWritesAPageAndAnSvgThatStandsAlone) {
  PlotOptions options;
  options.inputs = {Write("result.json", kResult)};
  options.out = temporary_.path() + "/plots";
  EXPECT_THAT(Plot(options), HasSubstr("/01-tradeoff.svg: made_up ("));
  const std::string page = Read(options.out + "/plots.html");
  EXPECT_THAT(page, HasSubstr("SIMULATED"));
  EXPECT_THAT(page, HasSubstr("adaptive, a, x: p99 1.020 x alone, BE 0.400"));
  EXPECT_THAT(page, HasSubstr("adaptive, a, y: p99 1.020 x alone, BE 0.900"));
  EXPECT_THAT(page, Not(HasSubstr("1.300"))) << "no sum over apps";
  EXPECT_THAT(PageFaults(page), ::testing::IsEmpty());
  const std::string svg = Read(options.out + "/01-tradeoff.svg");
  EXPECT_THAT(svg, ::testing::StartsWith("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_THAT(svg, HasSubstr("<style>"));
  EXPECT_THAT(svg, HasSubstr(kStamp));
}

TEST_F(PlotTest, WhatIsNoResultGetsASentenceAndWritesNothing) {
  const std::string result = Write("result.json", kResult);
  PlotOptions options;
  options.inputs = {temporary_.path() + "/none"};
  EXPECT_THAT(ErrorOf(options), HasSubstr("none"));
  options.inputs = {Write("bad.json", "{\"schema_version\": 1}")};
  EXPECT_THAT(ErrorOf(options), HasSubstr("bad.json"));
  options.inputs = {Write("torn.json", "{\"schema_ver")};
  EXPECT_THAT(ErrorOf(options), HasSubstr("is not valid JSON at line 1"));
  options.inputs = {Write("text.gpulog", "no log")};
  EXPECT_THAT(ErrorOf(options), HasSubstr("text.gpulog"));
  std::filesystem::create_directory(temporary_.path() + "/empty");
  options.inputs = {temporary_.path() + "/empty"};
  EXPECT_THAT(ErrorOf(options), HasSubstr("it has neither 'result.json' nor 'events/index.json'"));
  options.inputs.assign(17, result);
  EXPECT_THAT(ErrorOf(options), HasSubstr("17 results are given, and the most are 16."));
  options.inputs = {result};
  options.choice.policy = "adaptiv";
  EXPECT_THAT(ErrorOf(options),
              HasSubstr("no run under the policy 'adaptiv'; did you mean 'adaptive'?"));
}

}  // namespace
}  // namespace gpushare::tool
