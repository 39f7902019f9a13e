// The command as a user runs it: exit codes, one sentence on bad input, the files of a run, and the
// same bytes for the same seed.

#include "tools/gpushare/command/command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/temporary_folder.h"
#include "tests/tools/run_tool.h"

namespace gpushare::tool {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CommandTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* scenarios = std::getenv("GPUSHARE_TEST_SCENARIOS");
    ASSERT_NE(scenarios, nullptr) << "the test needs the folder of the scenarios";
    scenarios_ = scenarios;
  }

  std::string Smoke() const { return scenarios_ + "/smoke.json"; }

  // The smoke scenario with one text replaced, in a file of its own.
  std::string Changed(const std::string& from, const std::string& to) {
    std::string text = Read(Smoke());
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    const size_t profile = text.find("../../profiles");
    if (profile != std::string::npos) text.insert(profile, scenarios_ + "/");
    std::string path = folder_ + "/changed.json";
    std::ofstream(path) << text;
    return path;
  }

  void ExpectBadInput(const std::vector<std::string>& arguments, const std::string& part) {
    const Answer answer = RunTool(arguments);
    EXPECT_EQ(answer.code, 2) << part;
    EXPECT_EQ(answer.out, "") << part;
    EXPECT_THAT(answer.err, HasSubstr(part));
    EXPECT_THAT(answer.err, ::testing::MatchesRegex("(.|\n)*[.?]\n"));
    EXPECT_EQ(answer.err.find('\n'), answer.err.size() - 1) << answer.err;
  }

  const TemporaryFolder temporary_;
  const std::string folder_ = temporary_.path();
  std::string scenarios_;
};

TEST_F(CommandTest, BadInputEndsWithCode2AndOneSentence) {
  ExpectBadInput({}, "A command is missing. The commands are");
  ExpectBadInput({"colocate"}, "SCENARIO");
  ExpectBadInput({"colocate", folder_ + "/none.json"}, "does not exist");
  ExpectBadInput({"colocate", folder_}, "not a regular file");
  ExpectBadInput({"colocate", Smoke(), "--device", "sim", "--policy", "fastest"}, "'fastest'");
  ExpectBadInput({"colocate", Smoke(), "--device", "tpu"}, "auto, sim, cuda, null, sim:realtime");
  ExpectBadInput({"colocate", Smoke(), "--tier", "warp"}, "kernel, block");
  ExpectBadInput({"colocate", Smoke(), "--duration", "nan"}, "--duration is 'nan'");
  ExpectBadInput({"colocate", Smoke(), "--duration", "-1"}, "--duration is '-1'");
  ExpectBadInput({"colocate", Smoke(), "--duration", "1e99"}, "--duration is '1e99'");
  ExpectBadInput({"colocate", Smoke(), "--seed", "-1"}, "--seed is -1");
  ExpectBadInput({"colocate", Smoke(), "--queries", "0"}, "--queries is 0");
  ExpectBadInput({"colocate", Smoke(), "--trace-ms", "1000000"}, "--trace-ms is 1000000");
  ExpectBadInput({"colocate", Smoke(), "--device", "sim", "--case", "none"}, "no case 'none'");
  ExpectBadInput({"colocate", Smoke(), "--rounds", "0"}, "--rounds is 0");
  ExpectBadInput({"colocate", Smoke(), "--device", "sim", "--rounds", "2"}, "--rounds is 2");
  ExpectBadInput({"explain", folder_, "7"}, "holds no results of gpushare colocate");
  ExpectBadInput({"explain", folder_, "seven"}, "The ticket is 'seven'");
}

TEST_F(CommandTest, AWrongWordNamesTheOneThatWasMeant) {
  ExpectBadInput({"coloocate", Smoke()},
                 "There is no command 'coloocate'; did you mean 'colocate'?");
  ExpectBadInput({"colocate", Smoke(), "--polcy", "fifo"},
                 "The command 'colocate' has no option '--polcy'; did you mean '--policy'?");
  ExpectBadInput({"--versoin"}, "gpushare has no option '--versoin'; did you mean '--version'?");
  ExpectBadInput({"colocate", Smoke(), "--device", "cua"}, "did you mean 'cuda'?");
  ExpectBadInput({"colocate", Smoke(), "--device", "sim", "--policy", "adpative"},
                 "The policy 'adpative' is unknown; did you mean 'adaptive'?");
  ExpectBadInput({"colocate", Smoke(), "--device", "sim", "--case", "chain1-03"},
                 "has no case 'chain1-03'; did you mean 'chain1-0.3'?");
  ExpectBadInput({"colocate", scenarios_ + "/smoek.json"}, "The nearest name is 'smoke.json'.");
  ExpectBadInput({"validate", scenarios_ + "/smoek"}, "The nearest name is 'smoke'.");
  ExpectBadInput({"calibrate", "--device", "sim", "--kernels", "decode61"},
                 "did you mean 'decode16'?");
}

TEST_F(CommandTest, HelpGivesEveryOptionATypeAndEnumerationsTheirValues) {
  for (const char* command : {"colocate", "explain", "calibrate", "validate", "info"}) {
    const std::string help = RunTool({command, "--help"}).out;
    for (const char* untyped : {" TEXT", " INT", " FLOAT", " UINT"}) {
      EXPECT_EQ(help.find(std::string(untyped) + " "), std::string::npos) << command << untyped;
    }
  }
  const std::string help = RunTool({"colocate", "--help"}).out;
  EXPECT_THAT(help, HasSubstr("--device auto|sim|cuda|null|sim:realtime"));
  EXPECT_THAT(help, HasSubstr("--duration SECONDS"));
  EXPECT_THAT(help, HasSubstr("--out FOLDER"));
  EXPECT_THAT(help, HasSubstr("smguard:packed, smguard:active, kernelet, kernelet:base, tacker, "
                              "tacker:direct, baymax, baymax:nc"));
  EXPECT_THAT(RunTool({"--help"}).out, HasSubstr("Exit codes: 0 done"));
}

TEST_F(CommandTest, JsonIsWhatTheSchemaSays) {
  const std::string out = folder_ + "/out";
  ASSERT_EQ(RunTool({"colocate", Smoke(), "--device", "sim", "--queries", "60", "--out", out}).code,
            0);
  const auto list = nlohmann::json::parse(RunTool({"explain", out, "--json"}).out);
  EXPECT_EQ(list.at("schema_version"), 1);
  const auto& slowest = list.at("slowest");
  EXPECT_EQ(slowest.at("policy"), "adaptive");
  ASSERT_FALSE(slowest.at("tickets").empty());
  const std::string ticket = slowest.at("tickets")[0].at("ticket");
  const auto answer = nlohmann::json::parse(RunTool({"explain", out, ticket, "--json"}).out);
  const auto& story = answer.at("story");
  EXPECT_EQ(story.at("ticket"), ticket);
  EXPECT_EQ(story.at("latency_ns"), slowest.at("tickets")[0].at("latency_ns"));
  EXPECT_EQ(story.at("completed"), true);
  EXPECT_EQ(story.at("steps").front().at("event"), "submitted");
  EXPECT_EQ(story.at("steps").back().at("event"), "completed");
  EXPECT_EQ(story.at("steps").back().at("verdict"), "ok");
  const auto valid = nlohmann::json::parse(RunTool({"validate", Smoke(), "--json"}).out);
  EXPECT_EQ(valid.at("valid"), true);
  EXPECT_EQ(valid.at("kind"), "scenario");
  EXPECT_EQ(valid.at("cases"), (std::vector<std::string>{"chain1-0.3", "decode16-0.3"}));
}

TEST_F(CommandTest, JsonHasTheErrorTooAndItsExitCode) {
  const std::string broken = Changed("\"load\": 0.3", "\"load\": -0.3");
  const std::vector<std::vector<std::string>> commands = {
      {"validate", broken, "--json"},
      {"explain", folder_, "7", "--json"},
      {"colocate", broken, "--json"},
      {"validate", "--json", "--quietly", Smoke()}};
  for (const auto& command : commands) {
    const Answer answer = RunTool(command);
    EXPECT_EQ(answer.code, 2) << command[0];
    const auto error = nlohmann::json::parse(answer.out).at("error");
    EXPECT_EQ(error.at("code"), 2);
    EXPECT_EQ(error.at("kind"), "bad_input");
    EXPECT_EQ(answer.err, "gpushare: " + error.at("message").get<std::string>() + "\n");
  }
}

TEST_F(CommandTest, BadScenariosEndWithCode2AndOneSentence) {
  const auto colocate = [&](const std::string& path) {
    return std::vector<std::string>{"colocate", path, "--device", "sim"};
  };
  ExpectBadInput(colocate(Changed("{", "{{")), "not valid JSON");
  ExpectBadInput(colocate(Changed("\"load\": 0.3", "\"load\": -0.3")), "load is -0.3");
  ExpectBadInput(colocate(Changed("\"load\": 0.3", "\"load\": NaN")), "not valid JSON");
  ExpectBadInput(colocate(Changed("\"queries\": 200", "\"duration_ns\": -1")), "duration_ns is -1");
  ExpectBadInput(colocate(Changed("\"kernel\": \"sincos_27us\"", "\"kernel\": \"no_such\"")),
                 "'no_such'");
  ExpectBadInput(colocate(Changed("\"quota_capsms\": 48", "\"quota_capsms\": 140")), "140");
  ExpectBadInput(colocate(Changed("\"adaptive\"]", "\"adaptive\", \"none\"]")), "'none'");
  ExpectBadInput(colocate(Changed("../../profiles/h200.json", folder_ + "/none.json")),
                 "none.json");
  ExpectBadInput({"colocate", "no_such_scenario", "--device", "sim"},
                 "share/gpushare/scenarios/no_such_scenario.json");
  ExpectBadInput({"validate", "no_such_scenario"}, "share/gpushare/profiles/no_such_scenario.json");
  ExpectBadInput({"colocate", Smoke(), "--device", "sim", "--measured", folder_ + "/none.json"},
                 "does not exist");
}

TEST_F(CommandTest, TheSameSeedGivesTheSameBytes) {
  const auto run = [&](const std::string& out, const std::string& seed,
                       const std::string& threads) {
    const Answer answer =
        RunTool({"colocate", Smoke(), "--device", "sim", "--queries", "60", "--seed", seed, "--out",
                 folder_ + "/" + out, "--threads", threads});
    EXPECT_EQ(answer.code, 0) << answer.err;
    // A run of several seconds, on a machine that is busy, says how far it is.
    EXPECT_THAT(answer.err,
                ::testing::MatchesRegex("(gpushare: [0-9]+ of [0-9]+ done, [^\n]*\n)*"));
    return Read(folder_ + "/" + out + "/result.json");
  };
  const std::string first = run("a", "5", "1");
  EXPECT_FALSE(first.empty());
  EXPECT_EQ(first, run("b", "5", "2"));
  EXPECT_NE(first, run("c", "6", "2"));
  EXPECT_EQ(Read(folder_ + "/a/report.html"), Read(folder_ + "/b/report.html"));
}

TEST_F(CommandTest, WritesEveryFileAndExplainsATicket) {
  const std::string out = folder_ + "/out";
  const Answer answer = RunTool({"colocate", Smoke(), "--device", "sim", "--out", out});
  ASSERT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("SIMULATED"));
  EXPECT_THAT(answer.out, HasSubstr("adaptive"));
  for (const char* file :
       {"/result.json", "/report.html", "/trace.pftrace", "/events/index.json",
        "/events/chain1-0.3-fifo.gpulog", "/events/decode16-0.3-adaptive.gpulog"}) {
    EXPECT_GT(std::filesystem::file_size(out + file), 0u) << file;
  }
  const Answer slowest = RunTool({"explain", out});
  ASSERT_EQ(slowest.code, 0) << slowest.err;
  std::istringstream lines(slowest.out);
  std::string line;
  std::getline(lines, line);
  std::string ticket;
  lines >> ticket;
  EXPECT_THAT(slowest.out, HasSubstr("LC decode16, promised p99 within 1.05 x alone\n"));
  EXPECT_THAT(slowest.out, HasSubstr("BE sincos_27us, "));
  const Answer story = RunTool({"explain", out, ticket});
  ASSERT_EQ(story.code, 0) << story.err;
  EXPECT_THAT(story.out, HasSubstr("Ticket " + ticket + " of app decode16"));
  EXPECT_THAT(story.out, HasSubstr("Predicted"));
  ExpectBadInput({"explain", out, "18446744073709551615"}, "has the ticket");
}

// result.json has the time that the library counted. A log of the whole run yields the same, but
// for holds that go on when the log ends.
TEST_F(CommandTest, ExplainFindsInTheLogTheHeldTimesThatTheLibraryCounted) {
  const std::string out = folder_ + "/out";
  ASSERT_EQ(
      RunTool({"colocate", Smoke(), "--device", "sim", "--trace-ms", "10000", "--out", out}).code,
      0);
  const auto result = nlohmann::json::parse(Read(out + "/result.json"));
  int reasons = 0;
  for (const auto& run : result.at("runs")) {
    if (run.at("events").get<std::string>().empty()) continue;
    const std::string policy = run.at("policy");
    const Answer answer =
        RunTool({"explain", out, "--case", run.at("case"), "--policy", policy, "--json"});
    const auto apps = nlohmann::json::parse(answer.out).at("guarantees");
    const auto& held = run.at("be")[0].at("held_ns");
    EXPECT_EQ(apps[1].at("held_ns").size(), held.size()) << policy;
    for (const auto& [reason, time_ns] : held.items()) {
      const double counted = time_ns;
      EXPECT_NEAR(apps[1].at("held_ns").value(reason, 0.0), counted, 0.01 * counted) << policy;
      ++reasons;
    }
    EXPECT_EQ(apps[0].at("p99_bound"), 1.05);
    if (policy != "adaptive") continue;  // others have queries that end after the log
    const double p50 = run.at("lc")[0].at("p50_over_alone");
    EXPECT_NEAR(apps[0].at("p50_over_alone").get<double>(), p50, 0.01);
  }
  EXPECT_GE(reasons, 2 * 3);  // baymax, smguard and adaptive hold BE in both cases
}

// A BE kernel whose block tasks take 2.7 ms, under a bound that lets them delay every query.
TEST_F(CommandTest, ACaseMayBoundTheMedianToo) {
  const std::string file = folder_ + "/median.json";
  std::ofstream(file) << R"json({
    "schema_version": 1, "name": "median", "queries": 600, "be_alone_ns": 20000000,
    "policies": ["adaptive"],
    "lc": [{"name": "chain1", "kernel": "chain1", "p99_bound": 2}],
    "be": [{"name": "sincos", "kernel": "sincos_2700us", "block_tasks": 3168}],
    "cases": [{"name": "free", "lc": ["chain1"], "be": ["sincos"], "load": 0.3},
              {"name": "bound", "lc": ["chain1"], "be": ["sincos"], "load": 0.3, "p50_bound": 1.2}]
  })json";
  const Answer answer = RunTool({"colocate", file, "--device", "sim", "--json"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  std::map<std::string, double> medians;
  const auto result = nlohmann::json::parse(answer.out);
  for (const auto& run : result.at("runs")) {
    if (run.at("policy") != "adaptive") continue;
    const auto& lc = run.at("lc")[0];
    medians[run.at("case")] = lc.at("p50_over_alone");
    EXPECT_EQ(lc.at("p50_bound"), run.at("case") == "bound" ? 1.2 : 0);
  }
  EXPECT_GT(medians["free"], 1.5);
  EXPECT_LE(medians["bound"], 1.23);
}

TEST_F(CommandTest, ResultsHaveTheReferencesAndSaneNumbers) {
  const Answer answer = RunTool({"colocate", Smoke(), "--device", "sim", "--json"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  const auto result = nlohmann::json::parse(answer.out);
  EXPECT_EQ(result.at("schema_version"), 1);
  EXPECT_EQ(result.at("device"), "sim");
  EXPECT_EQ(result.at("simulated"), true);
  ASSERT_EQ(result.at("runs").size(), 2u * (3 + 5));
  const std::vector<std::string> order = {"lc_alone", "library_alone", "be_alone", "fifo",
                                          "priority", "baymax",        "smguard",  "adaptive"};
  for (size_t i = 0; i < result.at("runs").size(); ++i) {
    const auto& run = result.at("runs")[i];
    EXPECT_EQ(run.at("policy"), order[i % order.size()]);
    EXPECT_GE(run.at("utilisation").get<double>(), 0);
    EXPECT_LE(run.at("utilisation").get<double>(), 1 + 1e-9);
    for (const auto& app : run.at("lc")) {
      EXPECT_EQ(app.at("queries"), 200);
      EXPECT_LE(app.at("p50_ns").get<int64_t>(), app.at("p99_ns").get<int64_t>());
      EXPECT_GE(app.at("p50_ns").get<int64_t>(), 500'000);
    }
    for (const auto& app : run.at("be")) {
      EXPECT_GE(app.at("rate_of_solo").get<double>(), 0);
      EXPECT_LE(app.at("rate_of_solo").get<double>(), 1.02);
      // fifo holds nothing; under baymax a query's headroom holds BE, but not longer than the run.
      const auto& held = app.at("held_ns");
      if (run.at("policy") == "fifo") {
        EXPECT_TRUE(held.empty()) << held;
      }
      if (run.at("policy") != "baymax") continue;
      EXPECT_GT(held.at("hold_headroom").get<int64_t>(), 1'000'000);
      EXPECT_LE(held.at("hold_headroom").get<int64_t>(), run.at("span_ns").get<int64_t>());
    }
    if (run.at("policy") == "adaptive") {
      EXPECT_GT(run.at("lc")[0].at("tail_credit"), 0.0);
    }
  }
}

TEST_F(CommandTest, TheGpusScenarioRunsOnTheSimulatedDeviceToo) {
  const Answer answer = RunTool(
      {"colocate", scenarios_ + "/h200_gpu.json", "--device", "sim", "--queries", "20", "--json"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  const auto result = nlohmann::json::parse(answer.out);
  EXPECT_EQ(result.at("runs").size(), 17u * (3 + 1));
  // The simulated device computes nothing, so the output says nothing about results.
  EXPECT_FALSE(result.at("runs")[0].contains("verified"));
  EXPECT_FALSE(result.at("manifest").contains("gpu"));
  // Rows without the library exist on a GPU only.
  const Answer baselines = RunTool({"colocate", scenarios_ + "/h200_gpu_baselines.json", "--device",
                                    "sim", "--queries", "20", "--json"});
  ASSERT_EQ(baselines.code, 0) << baselines.err;
  EXPECT_EQ(nlohmann::json::parse(baselines.out).at("runs").size(), 4u * 3 + 3 + 3 * 2);
}

TEST_F(CommandTest, ValidateAcceptsWhatIsShippedAndRefusesTheRest) {
  for (const char* name :
       {"smoke", "demo", "h200_measured", "h200_gpu", "h200_gpu_baselines", "multi_tenant", "burst",
        "copies", "lc_priority", "azure_code", "papers_smguard", "papers_copies", "papers_many_be",
        "papers_head_of_line", "papers_baymax", "partitions"}) {
    const Answer answer = RunTool({"validate", scenarios_ + "/" + name + ".json"});
    EXPECT_EQ(answer.code, 0) << answer.err;
    EXPECT_THAT(answer.out, HasSubstr("good scenario"));
    EXPECT_THAT(answer.out, Not(HasSubstr(" 1 BE apps")));
  }
  const std::string profile = scenarios_ + "/../../profiles/h200.json";
  EXPECT_EQ(RunTool({"validate", profile}).code, 0);
  const std::string text = Read(profile);
  const std::string cut = folder_ + "/cut.json";
  std::ofstream(cut) << text.substr(0, text.size() / 2);
  ExpectBadInput({"validate", cut}, "cut.json");
}

TEST_F(CommandTest, PeriodicAppsRunInPartitionsWithTheirBounds) {
  const std::string scenario = scenarios_ + "/partitions.json";
  const Answer answer = RunTool({"colocate", scenario, "--device", "sim", "--duration", "0.2",
                                 "--policy", "partitioned,bare", "--json"});
  ASSERT_EQ(answer.code, 0) << answer.err;
  int partitioned = 0;
  int64_t violations = 0;  // without partitions
  const auto result = nlohmann::json::parse(answer.out);
  for (const auto& run : result.at("runs")) {
    for (const auto& app : run.at("lc")) {
      ASSERT_EQ(app.contains("partition"), run.at("policy") == "partitioned");
      if (run.at("policy") == "bare") violations += app.at("violations").get<int64_t>();
      if (run.at("policy") != "partitioned") continue;
      ++partitioned;
      const auto& partition = app.at("partition");
      EXPECT_EQ(partition.at("sms"), app.at("app") == "control" ? 8 : 16);
      EXPECT_GT(partition.at("jobs").get<int64_t>(), 0);
      EXPECT_EQ(partition.at("deadlines_missed"), 0);
      EXPECT_EQ(partition.at("overruns"), 0);
      EXPECT_LE(partition.at("response_ns_max"), partition.at("response_bound_ns"));
      EXPECT_EQ(app.at("violations"), 0);
      EXPECT_LE(app.at("max_ns"), app.at("qos_ns")) << "the deadline is the line";
    }
  }
  EXPECT_EQ(partitioned, 2 * 2);
  EXPECT_GT(violations, 0);
  const Answer table = RunTool({"colocate", scenario, "--device", "sim", "--duration", "0.1",
                                "--policy", "partitioned", "--case", "beside-long"});
  EXPECT_THAT(table.out, HasSubstr("control: 8 SMs, longest response "));
  EXPECT_THAT(table.out, HasSubstr(" 0 of "));
}

TEST_F(CommandTest, AppsThatFitNoPartitionsAreRefusedWithTheCase) {
  auto scenario = nlohmann::json::parse(Read(scenarios_ + "/partitions.json"));
  scenario["profile"] = scenarios_ + "/../../profiles/h200.json";
  for (auto& point : scenario["lc"][1]["worst_cases"]) point["ns"] = 31'000'000;
  const std::string path = folder_ + "/tight.json";
  std::ofstream(path) << scenario;
  ExpectBadInput({"colocate", path, "--device", "sim"},
                 "Case 'beside-long' does not run under 'partitioned': ");
  ExpectBadInput({"validate", path}, "'perception'");
}

TEST_F(CommandTest, PtxSaysWhichFormsAreMadeAndMakesThem) {
  const std::string header = ".version 8.0\n.target sm_90a\n.address_size 64\n";
  const std::string nothing = ".visible .entry nothing()\n{\n  ret;\n}\n";
  const std::string specialised =
      ".visible .entry specialised()\n{\n  setmaxnreg.dec.sync.aligned.u32 40;\n  ret;\n}\n";
  const std::string good = folder_ + "/good.ptx";
  const std::string mixed = folder_ + "/mixed.ptx";
  std::ofstream(good) << header << nothing;
  std::ofstream(mixed) << header << nothing << specialised;
  const Answer made = RunTool({"ptx", "check", good});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_EQ(made.out,
            "kernel   form    verdict   line    reason\nnothing  worker  made\n"
            "nothing  slice   made\n");
  const Answer refused = RunTool({"ptx", "check", mixed, "--form", "worker"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.out, HasSubstr("specialised  worker  refused   10      Kernel 'spec"));
  EXPECT_EQ(refused.err, "gpushare: 1 of 2 forms are refused.\n");
  const nlohmann::json json = nlohmann::json::parse(RunTool({"ptx", "check", mixed, "--json"}).out);
  ASSERT_EQ(json["forms"].size(), 4u);
  EXPECT_EQ(json["forms"][0]["made"], true);
  EXPECT_EQ(json["forms"][2]["line"], 10);
  const Answer module = RunTool({"ptx", "transform", mixed, "--entry", "nothing"});
  EXPECT_EQ(module.code, 0) << module.err;
  EXPECT_THAT(module.out, HasSubstr(nothing));
  EXPECT_GT(module.out.size(), header.size() + nothing.size() + specialised.size());
  EXPECT_EQ(RunTool({"ptx", "transform", good, "--out", folder_ + "/twin.ptx"}).code, 0);
  EXPECT_THAT(Read(folder_ + "/twin.ptx"), HasSubstr(nothing));
  const Answer none = RunTool({"ptx", "transform", mixed, "--entry", "specialised"});
  EXPECT_EQ(none.code, 1);
  EXPECT_EQ(none.out, "");
  EXPECT_THAT(none.err, HasSubstr("line 10"));
  ExpectBadInput({"ptx", "transform", mixed}, "entry is null");
  ExpectBadInput({"ptx", "check", mixed, "--entry", "nothin"}, "'nothin'");
  ExpectBadInput({"ptx", "check", folder_ + "/none.ptx"}, "none.ptx");
  ExpectBadInput({"ptx", "check", good, "--form", "fused"}, "worker, slice");
  ExpectBadInput({"ptx", "make", good}, "check, transform");
  ExpectBadInput({"ptx", "check", good, "--out", "x"}, "--out goes with");
}

TEST_F(CommandTest, PtxFusesTheKernelsOfTwoFiles) {
  const std::string header = ".version 8.0\n.target sm_90a\n.address_size 64\n";
  const std::string first = folder_ + "/first.ptx";
  const std::string second = folder_ + "/second.ptx";
  std::ofstream(first) << header << ".visible .entry gemm()\n.reqntid 128\n{\n  ret;\n}\n";
  std::ofstream(second) << header << ".visible .entry norm()\n{\n  bar.sync 0;\n  ret;\n}\n";
  const std::vector<std::string> pair = {first, "--fused", second, "--threads", "0:64"};
  const auto run = [&](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.insert(words.end(), pair.begin(), pair.end());
    words.insert(words.end(), more.begin(), more.end());
    return RunTool(words);
  };
  const Answer made = run({"ptx", "transform"}, {"--ratio", "1:2"});
  EXPECT_EQ(made.code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("gemm_with_norm_gpushare_fused("));
  EXPECT_THAT(made.out, HasSubstr(".reqntid 256\n"));
  EXPECT_EQ(run({"ptx", "transform"}, {"--out", folder_ + "/fused.ptx"}).code, 0);
  EXPECT_THAT(Read(folder_ + "/fused.ptx"), HasSubstr(".reqntid 192\n"));
  const Answer ratios = run({"ptx", "check"}, {"--registers", "168:40"});
  EXPECT_EQ(ratios.out.find(
                "ratio   threads  barriers  shared_bytes  registers  blocks_per_sm  note\n"
                "1:1     192      2         256           168        1\n"
                "1:2     256      3         384           168        1\n"
                "1:3     320      4         512           168        1\n"
                "1:4     384      5         640           168        1\n"
                "1:5     448      6         768           128        1              may spill\n"),
            0u)
      << ratios.out;
  EXPECT_THAT(ratios.out, HasSubstr("\n2:2     384      4         512           168        1\n"));
  const Answer moved = run({"ptx", "transform"}, {"--setmaxnreg", "4", "--registers", "90:24"});
  EXPECT_THAT(moved.out, HasSubstr("setmaxnreg.inc.sync.aligned.u32 104;"));
  const Answer refused = run({"ptx", "transform"}, {"--ratio", "8:8"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, HasSubstr("1536 threads, and a block has at most 1024"));
  const Answer unknown = RunTool({"ptx", "transform", first, "--fused", second});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_THAT(unknown.err, HasSubstr("second.ptx: The second kernel cannot be fused."));
  ExpectBadInput({"ptx", "transform", first, "--fused", second, "--ratio", "2"},
                 "two whole numbers");
  ExpectBadInput({"ptx", "check", first, "--fused", second, "--registers", "16777216:40"}, "255");
  ExpectBadInput({"ptx", "transform", first, "--ratio", "1:2"}, "go with --fused only");
  ExpectBadInput({"ptx", "check", first, "--fused", second, "--form", "slice"}, "do not go with");
}

TEST_F(CommandTest, InfoSaysWhatRunsHereAndWhatTheEnvironmentSets) {
  setenv("GPUSHARE_DEVICE", "sim", 1);
  setenv("GPUSHARE_POLICY", "fifo", 1);
  const Answer answer = RunTool({"info"});
  setenv("GPUSHARE_POLICY", "fief", 1);
  const Answer refused = RunTool({"info"});
  unsetenv("GPUSHARE_POLICY");
  unsetenv("GPUSHARE_DEVICE");
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("(C ABI 1)\ndevice: sim, 132 SMs, SIMULATED, in virtual time"));
  EXPECT_THAT(answer.out, HasSubstr("profile: h200\npolicy: fifo\n"));
  EXPECT_THAT(answer.out, Not(HasSubstr("warning: ")));  // of virtual time, in which nothing runs
  EXPECT_THAT(answer.out, HasSubstr("environment: GPUSHARE_POLICY=fifo\n"));
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.err, HasSubstr("GPUSHARE_POLICY in the environment"));
}

TEST_F(CommandTest, InfoListsTheTraceAndDoesNotReplaceIt) {
  const std::string trace = folder_ + "/run.pftrace";
  std::ofstream(trace) << "the user's";
  setenv("GPUSHARE_DEVICE", "sim", 1);
  setenv("GPUSHARE_TRACE", trace.c_str(), 1);
  const Answer answer = RunTool({"info"});
  EXPECT_STREQ(std::getenv("GPUSHARE_TRACE"), trace.c_str());
  unsetenv("GPUSHARE_TRACE");
  unsetenv("GPUSHARE_DEVICE");
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("environment: GPUSHARE_TRACE=" + trace + "\n"));
  EXPECT_EQ(Read(trace), "the user's");
}

TEST_F(CommandTest, HelpAndVersionAreNoErrors) {
  EXPECT_EQ(RunTool({"--help"}).code, 0);
  EXPECT_THAT(RunTool({"--version"}).out, HasSubstr("gpushare 0."));
  EXPECT_THAT(RunTool({"colocate", "--help"}).out, HasSubstr("--policy"));
}

// From a folder that a run wrote: its numbers, and its traced run over time.
TEST_F(CommandTest, PlotDrawsWhatARunLeft) {
  const std::string out = folder_ + "/run";
  const std::string plots = folder_ + "/plots";
  ASSERT_EQ(RunTool({"colocate", Smoke(), "--device", "sim", "--queries", "30", "--policy",
                     "adaptive", "--quiet", "--out", out})
                .code,
            0);
  const Answer answer = RunTool({"plot", out, "--out", plots});
  EXPECT_EQ(answer.code, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("-tradeoff.svg"));
  EXPECT_THAT(answer.out, HasSubstr("-guarantee.svg"));
  EXPECT_THAT(answer.out, HasSubstr("-arrangement.svg"));
  EXPECT_THAT(Read(plots + "/plots.html"), HasSubstr("SIMULATED"));
  ExpectBadInput({"plot", folder_ + "/none"}, "cannot be opened");
  ExpectBadInput({"plot", out, "--policy", "fifo", "--out", plots},
                 "no run under the policy 'fifo'");
  ExpectBadInput({"plot"}, "RESULTS");
}

}  // namespace
}  // namespace gpushare::tool
