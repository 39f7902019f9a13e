// The scenario parser: what it reads, and the one sentence that each bad input gets.

#include "tools/gpushare/scenario/scenario.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/limits.h"

namespace gpushare::tool {
namespace {

using ::testing::HasSubstr;

constexpr char kGood[] = R"({
  "schema_version": 1, "name": "good", "profile": "p.json", "seed": 7, "queries": 100,
  "policies": ["fifo", "adaptive:evict"],
  "lc": [{"name": "a", "kernel": "k", "p99_bound": 1.05, "p50_bound": 1.2, "target_solo_factor": 10},
         {"name": "b", "tasks": [{"copy": "host_to_device", "bytes": 4096}, {"kernel": "k"}],
          "arrivals": {"type": "gamma", "cv": 2.5}}],
  "be": [{"name": "c", "kernel": "w", "block_tasks": 1056, "queues": 2, "depth": 3}],
  "cases": [{"name": "one", "lc": ["a", "b"], "be": ["c"], "load": 0.3, "p99_bound": 1.1, "p50_bound": 1.3}]
})";

// `kGood` with one text replaced.
std::string Changed(const std::string& from, const std::string& to) {
  std::string text = kGood;
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

std::string ErrorOf(const std::string& text) {
  try {
    ParseScenario(text, "folder/s.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

void ExpectSentence(const std::string& text, const std::string& part) {
  const std::string error = ErrorOf(text);
  EXPECT_THAT(error, HasSubstr(part));
  EXPECT_THAT(error, ::testing::EndsWith("."));
  EXPECT_EQ(error.find('\n'), std::string::npos);
}

// The good scenario with keys of a periodic app at its first LC app, in the place of its target.
std::string Periodic(const std::string& keys) {
  return Changed(R"("target_solo_factor": 10)", keys);
}

TEST(ScenarioTest, APeriodicAppStatesItsDeadlineAndItsWorstCases) {
  const Scenario scenario = ParseScenario(
      Periodic(R"("period_ns": 1000000, "deadline_ns": 800000, "job_eviction_ns": 60000,
        "neighbour_factor": 1.25, "worst_cases": [{"sms": 8, "ns": 500000}, {"sms": 16, "ns": 300000}])"),
      "s.json");
  const RealTimeSpec& spec = scenario.lc[0].real_time;
  EXPECT_TRUE(spec.IsPeriodic());
  EXPECT_EQ(spec.period_ns, 1'000'000);
  EXPECT_EQ(spec.deadline_ns, 800'000);
  EXPECT_EQ(spec.job_eviction_ns, 60'000);
  EXPECT_EQ(spec.neighbour_factor, 1.25);
  ASSERT_EQ(spec.worst_cases.size(), 2u);
  EXPECT_EQ(spec.worst_cases[1].sms, 16);
  EXPECT_EQ(spec.worst_cases[1].ns, 300'000);
  // Its jobs come by its period, whatever the load of the case is.
  EXPECT_EQ(scenario.lc[0].arrivals.kind, ArrivalKind::kSporadic);
  EXPECT_EQ(scenario.lc[0].arrivals.period_ns, 1'000'000);
  EXPECT_FALSE(FollowsLoad(scenario.lc[0].arrivals));
  EXPECT_FALSE(scenario.lc[1].real_time.IsPeriodic());
  EXPECT_TRUE(HasPartitions(scenario, {0, 1}, "partitioned"));
  EXPECT_FALSE(HasPartitions(scenario, {1}, "partitioned"));
  EXPECT_FALSE(HasPartitions(scenario, {0, 1}, "adaptive"));
}

TEST(ScenarioTest, TheDeadlineIsThePeriodUnlessItIsStated) {
  const Scenario scenario = ParseScenario(
      Periodic(R"("period_ns": 1000000, "arrivals": {"type": "sporadic", "jitter": 0.5})"),
      "s.json");
  EXPECT_EQ(scenario.lc[0].real_time.deadline_ns, 1'000'000);
  EXPECT_EQ(scenario.lc[0].arrivals.jitter, 0.5);
  EXPECT_FALSE(scenario.partitions.share);
  const PartitionSpec spec =
      ParseScenario(
          Changed(R"("seed": 7)",
                  R"("partitions": {"share": true, "slack_eviction_ns": 5, "reserved_sms": 8})"),
          "s.json")
          .partitions;
  EXPECT_TRUE(spec.share);
  EXPECT_EQ(spec.slack_eviction_ns, 5);
  EXPECT_EQ(spec.reserved_sms, 8);
}

TEST(ScenarioTest, BadKeysOfPeriodicAppsAreNamed) {
  ExpectSentence(Periodic(R"("period_ns": 0)"), "lc[0].period_ns");
  ExpectSentence(Periodic(R"("period_ns": 10, "deadline_ns": 11)"),
                 "deadline_ns is 11, and the period is 10; it must not be longer");
  ExpectSentence(Periodic(R"("deadline_ns": 11)"), "deadline_ns");
  ExpectSentence(Periodic(R"("period_ns": 10, "target_ns": 5)"), "the deadline is the target");
  ExpectSentence(Periodic(R"("period_ns": 10, "yield_ns_max": 5)"), "yield_ns_max");
  ExpectSentence(Periodic(R"("period_ns": 10, "neighbour_factor": 0.5)"), "neighbour_factor");
  ExpectSentence(Periodic(R"("arrivals": {"type": "sporadic"})"),
                 "period_ns is missing, and sporadic arrivals need it");
  const auto arrivals = [](const std::string& keys) {
    return Periodic(R"("period_ns": 10, "arrivals": {"type": )" + keys + "}");
  };
  for (const char* keys : {R"("poisson")", R"("gamma", "cv": 2)", R"("batches", "mean_size": 2)",
                           R"("closed_loop")", R"("periodic")", R"("after_be")", R"("steps")",
                           R"("trace", "path": "t.csv")", R"("on_off", "on_ns": 5, "off_ns": 5)"}) {
    ExpectSentence(arrivals(keys), "lc[0].arrivals of an app with a period must be sporadic or");
  }
  ExpectSentence(arrivals(R"("explicit", "times_ns": [0, 10], "scaled": true)"), "scaled");
  ExpectSentence(
      arrivals(R"("explicit", "times_ns": [0, 10, 19])"),
      "lc[0].arrivals have times_ns[2] 9 ns after the time before, and the period is 10");
  EXPECT_EQ(ErrorOf(arrivals(R"("explicit", "times_ns": [3, 13, 24])")), "");
  ExpectSentence(Periodic(R"("period_ns": 10, "swap": {"queries": 5, "passes": 2})"),
                 "lc[0].swap and a period cannot both be given");
  const auto worst = [](const std::string& list) {
    return Periodic(R"("period_ns": 10, "worst_cases": )" + list);
  };
  ExpectSentence(worst(R"([{"sms": 8}])"), "lc[0].worst_cases[0].ns is missing");
  ExpectSentence(worst(R"([{"ns": 8}])"), "lc[0].worst_cases[0].sms is missing");
  ExpectSentence(worst(R"([{"sms": 8, "ns": 3}, {"sms": 8, "ns": 2}])"),
                 "worst_cases[1].sms is 8, and the entry before has 8; they must ascend");
  ExpectSentence(worst(R"([{"sms": 2000, "ns": 3}])"), "sms");
  ExpectSentence(Changed(R"("seed": 7)", R"("partitions": {"shares": true})"), "shares");
}

TEST(ScenarioTest, AQueryMayComeAfterTheBeTasksOfARound) {
  const std::string poisson = R"({"type": "gamma", "cv": 2.5})";
  const std::string after = R"({"type": "after_be", "after_ns": 1000000, "pause_ns": 5})";
  // The good scenario has a case of both its LC apps.
  ExpectSentence(Changed(poisson, after), "lc mixes apps whose arrivals are after_be with others");
  ExpectSentence(Changed(poisson, R"({"type": "after_be", "after_ns": -1})"), "after_ns");
  const auto both = [&](const std::string& first) {
    std::string text = Changed(poisson, after);
    const std::string last_key = R"("target_solo_factor": 10)";
    return text.replace(
        text.find(last_key), last_key.size(),
        last_key + R"(, "arrivals": {"type": "after_be", "pause_ns": )" + first + "}");
  };
  EXPECT_EQ(ErrorOf(both("5")), "");
  ExpectSentence(both("7"),
                 "lc has app 'a' with the pause_ns 7 and app 'b' with 5, and all apps of a round "
                 "have the same");
  ExpectSentence(Changed(poisson, R"({"type": "after_be", "clients": 2})"), "clients");
  ArrivalSpec spec;
  spec.kind = ArrivalKind::kAfterBe;
  EXPECT_FALSE(FollowsLoad(spec));
  EXPECT_TRUE(FollowsAnswers(spec));
}

TEST(ScenarioTest, AnEngineHasStepsInBusyPeriods) {
  const std::string poisson = R"({"type": "gamma", "cv": 2.5})";
  ArrivalSpec spec =
      ParseScenario(Changed(poisson, R"({"type": "steps"})"), "s.json").lc[1].arrivals;
  EXPECT_EQ(spec.kind, ArrivalKind::kSteps);
  EXPECT_EQ(spec.steps.gap_ns_min, kStepGapNsMin);
  EXPECT_EQ(spec.steps.busy_ns_max, kStepBusyNsMax);
  EXPECT_FALSE(spec.steps.stated);
  EXPECT_TRUE(FollowsLoad(spec));
  EXPECT_TRUE(FollowsAnswers(spec));
  spec = ParseScenario(Changed(poisson, R"({"type": "steps", "gap_ns_min": 5, "gap_ns_max": 5,
      "busy_ns_min": 7, "busy_ns_max": 8, "stated": true})"),
                       "s.json")
             .lc[1]
             .arrivals;
  EXPECT_EQ(spec.steps.gap_ns_max, 5);
  EXPECT_EQ(spec.steps.busy_ns_min, 7);
  EXPECT_TRUE(spec.steps.stated);
  ExpectSentence(Changed(poisson, R"({"type": "steps", "gap_ns_min": 6, "gap_ns_max": 5})"),
                 "gap_ns_max is below 'gap_ns_min'");
  ExpectSentence(Changed(poisson, R"({"type": "steps", "gap_ns_max": 100000001, "stated": true})"),
                 "gap_ns_max is above 100 ms");
  ExpectSentence(Changed(poisson, R"({"type": "steps", "gap_ns": 6})"), "gap_ns");
}

TEST(ScenarioTest, ReadsWhatIsWritten) {
  const Scenario scenario = ParseScenario(kGood, "folder/s.json");
  EXPECT_EQ(scenario.name, "good");
  EXPECT_EQ(scenario.profile, "folder/p.json");
  EXPECT_EQ(scenario.seed, 7u);
  ASSERT_EQ(scenario.lc.size(), 2u);
  EXPECT_DOUBLE_EQ(scenario.lc[0].p99_bound, 1.05);
  EXPECT_DOUBLE_EQ(scenario.lc[0].p50_bound, 1.2);
  ASSERT_EQ(scenario.lc[1].tasks.size(), 2u);
  EXPECT_EQ(scenario.lc[1].tasks[0].direction, CopyDirection::kHostToDevice);
  EXPECT_TRUE(scenario.lc[1].tasks[0].pinned);
  EXPECT_EQ(scenario.lc[1].arrivals.kind, ArrivalKind::kGamma);
  ASSERT_EQ(scenario.be.size(), 1u);
  EXPECT_EQ(scenario.be[0].depth, 3);
  ASSERT_EQ(scenario.cases.size(), 1u);
  EXPECT_EQ(scenario.cases[0].lc, (std::vector<int>{0, 1}));
  EXPECT_DOUBLE_EQ(scenario.cases[0].p99_bound, 1.1);
  EXPECT_DOUBLE_EQ(scenario.cases[0].p50_bound, 1.3);
}

TEST(ScenarioTest, AnLcAppHasAPriorityAndMayYield) {
  EXPECT_EQ(ParseScenario(kGood, "s.json").lc[0].priority, 0);
  EXPECT_EQ(ParseScenario(kGood, "s.json").lc[0].yield_ns_max, 0);
  const auto with = [](const std::string& keys) {
    return Changed(R"("p50_bound": 1.2,)", R"("p50_bound": 1.2, )" + keys + ",");
  };
  const Scenario scenario =
      ParseScenario(with(R"("priority": -3, "yield_ns_max": 20000000)"), "s.json");
  EXPECT_EQ(scenario.lc[0].priority, -3);
  EXPECT_EQ(scenario.lc[0].yield_ns_max, 20'000'000);
  EXPECT_EQ(ParseScenario(with(R"("yield_ns_max": -1)"), "s.json").lc[0].yield_ns_max,
            kNoYieldLimit);
  ExpectSentence(with(R"("priority": 101)"), "lc[0].priority is 101");
  ExpectSentence(with(R"("yield_ns_max": -2)"), "lc[0].yield_ns_max is -2");
}

TEST(ScenarioTest, AnLcAppHasQueuesAndMaySwapItsModel) {
  const LcApp plain = ParseScenario(kGood, "s.json").lc[0];
  EXPECT_EQ(plain.queues, 1);
  EXPECT_EQ(plain.swap.PassesOf(0), 1);
  const auto with = [](const std::string& keys) {
    return Changed(R"("p50_bound": 1.2,)", R"("p50_bound": 1.2, )" + keys + ",");
  };
  const LcApp app =
      ParseScenario(with(R"("queues": 4, "swap": {"first_query": 10, "queries": 5, "passes": 3})"),
                    "s.json")
          .lc[0];
  EXPECT_EQ(app.queues, 4);
  EXPECT_EQ(app.swap.PassesOf(9), 1);
  EXPECT_EQ(app.swap.PassesOf(10), 3);
  EXPECT_EQ(app.swap.PassesOf(14), 3);
  EXPECT_EQ(app.swap.PassesOf(15), 1);
  ExpectSentence(with(R"("queues": 17)"), "lc[0].queues is 17");
  ExpectSentence(with(R"("swap": {"queries": 5})"), "lc[0].swap.passes is missing");
  ExpectSentence(with(R"("swap": {"passes": 3})"), "lc[0].swap.queries is missing");
  const std::string tasks =
      R"("tasks": [{"copy": "host_to_device", "bytes": 4096}, {"kernel": "k"}])";
  ExpectSentence(Changed(tasks, tasks + R"(, "swap": {"queries": 5, "passes": 129})"),
                 "lc[1].swap.passes makes more than 256 tasks of a query");
  ExpectSentence(with(R"("swap": {"queries": 5, "passes": 257})"), "lc[0].swap.passes is 257");
}

TEST(ScenarioTest, TasksAndGroupsRepeat) {
  const std::string tasks = R"([{"copy": "host_to_device", "bytes": 4096}, {"kernel": "k"}])";
  const auto with = [&](const std::string& list) { return Changed(tasks, list); };
  const Scenario scenario = ParseScenario(with(R"([{"kernel": "a", "repeat": 2},
               {"tasks": [{"kernel": "b"}, {"kernel": "c", "repeat": 2}], "repeat": 2}])"),
                                          "s.json");
  std::string order;
  for (const WorkItem& item : scenario.lc[1].tasks) order += item.kernel;
  EXPECT_EQ(order, "aabccbcc");
  const Scenario long_chain = ParseScenario(
      with(R"([{"tasks": [{"kernel": "b"}, {"kernel": "c"}, {"kernel": "d"}], "repeat": 24}])"),
      "s.json");
  EXPECT_EQ(long_chain.lc[1].tasks.size(), 72u);
  ExpectSentence(with(R"([{"kernel": "a", "repeat": 0}])"), "lc[1].tasks[0].repeat is 0");
  ExpectSentence(with(R"([{"kernel": "a", "repeat": 257}])"), "repeat is 257");
  ExpectSentence(with(R"([{"kernel": "a", "repeat": 200}, {"kernel": "b", "repeat": 100}])"),
                 "lc[1].tasks[1].repeat makes more than 256 tasks");
  ExpectSentence(with(R"([{"tasks": [], "repeat": 2}])"), "lc[1].tasks[0].tasks is empty");
  ExpectSentence(with(R"([{"tasks": [{"tasks": [{"kernel": "a"}]}]}])"),
                 "either a 'kernel' or a 'copy'");
  ExpectSentence(with(R"([{"tasks": [{"kernel": "a"}], "kernel": "b"}])"), "kernel");
}

TEST(ScenarioTest, MalformedJsonNamesItsPlace) {
  ExpectSentence("{\n  \"schema_version\": 1,,\n}", "line 2");
  ExpectSentence("", "not valid JSON");
  ExpectSentence("[1, 2]", "is not a JSON object");
  ExpectSentence("\xff\xfe", "not valid JSON");
}

TEST(ScenarioTest, NotANumberIsNoJsonAndInfinityIsOutOfRange) {
  ExpectSentence(Changed("\"load\": 0.3", "\"load\": NaN"), "not valid JSON");
  ExpectSentence(Changed("\"load\": 0.3", "\"load\": 1e999"), "out of range");
}

TEST(ScenarioTest, NegativeAndAbsurdNumbersAreRefused) {
  ExpectSentence(Changed("\"load\": 0.3", "\"load\": -0.3"), "cases[0].load is -0.3");
  ExpectSentence(Changed("\"load\": 0.3", "\"load\": 1.5"), "at most 1");
  ExpectSentence(Changed("\"queries\": 100", "\"queries\": -1"), "queries is -1");
  ExpectSentence(Changed("\"queries\": 100", "\"duration_ns\": -5"), "duration_ns is -5");
  ExpectSentence(Changed("\"queries\": 100", "\"duration_ns\": 1.5"), "not a whole number");
  ExpectSentence(Changed("\"block_tasks\": 1056", "\"block_tasks\": 0"), "block_tasks is 0");
  ExpectSentence(Changed("\"seed\": 7", "\"seed\": 18446744073709551615"),
                 "seed is 18446744073709551615");
  ExpectSentence(Changed("1.05", "0.9"), "must be above 1");
  ExpectSentence(Changed("\"cv\": 2.5", "\"cv\": 0"), "arrivals.cv is 0");
}

TEST(ScenarioTest, UnknownAndDoubledKeysAreRefused) {
  ExpectSentence(Changed("\"seed\": 7", "\"sead\": 7"), "unknown key 'sead'");
  ExpectSentence(Changed("\"seed\": 7", "\"seed\": 7, \"seed\": 8"), "twice");
  ExpectSentence(Changed("\"depth\": 3", "\"depht\": 3"), "be[0] has the unknown key 'depht'");
}

TEST(ScenarioTest, NamesMustResolveAndBeUnique) {
  ExpectSentence(Changed("\"be\": [\"c\"]", "\"be\": [\"d\"]"), "names 'd'");
  ExpectSentence(Changed("\"lc\": [\"a\", \"b\"]", "\"lc\": []"), "at least one LC app");
  ExpectSentence(Changed("\"name\": \"c\"", "\"name\": \"a\""), "two apps have the same name");
  ExpectSentence(Changed("\"name\": \"c\"", "\"name\": \"..c\""), "begins with a dot");
  ExpectSentence(Changed("\"name\": \"c\"", "\"name\": \"c/d\""), "holds a character");
}

TEST(ScenarioTest, MissingPartsAreNamed) {
  ExpectSentence(Changed("\"schema_version\": 1, ", ""), "schema_version is missing");
  ExpectSentence(Changed("\"schema_version\": 1", "\"schema_version\": 9"), "reads version 1");
  ExpectSentence(Changed(", \"load\": 0.3", ""), "the arrivals of 'a' need it");
  ExpectSentence(Changed("\"bytes\": 4096", "\"pinned\": true"), "bytes is missing");
  ExpectSentence(Changed("\"lc\": [", "\"lcs\": ["),
                 "lc is missing or empty; there is a key 'lcs'.");
  ExpectSentence(Changed("\"type\": \"gamma\", \"cv\": 2.5", "\"type\": \"weibull\""), "weibull");
}

std::string WithArrivals(const std::string& members) {
  return Changed("\"type\": \"gamma\", \"cv\": 2.5", members);
}

TEST(ScenarioTest, PhasesAndBatchesAreRead) {
  const Scenario scenario =
      ParseScenario(WithArrivals(R"("type": "phases", "random": true, "phases": [
          {"duration_ns": 5000, "rate": 1}, {"duration_ns": 7000, "rate": 0, "end_rate": 2.5}])"),
                    "s.json");
  const ArrivalSpec& phases = scenario.lc[1].arrivals;
  EXPECT_EQ(phases.kind, ArrivalKind::kPhases);
  EXPECT_TRUE(phases.random_phases);
  ASSERT_EQ(phases.phases.size(), 2u);
  EXPECT_DOUBLE_EQ(phases.phases[0].end_rate, 1);
  EXPECT_EQ(phases.phases[1].duration_ns, 7000);
  EXPECT_DOUBLE_EQ(phases.phases[1].rate, 0);
  EXPECT_DOUBLE_EQ(phases.phases[1].end_rate, 2.5);
  const Scenario batches =
      ParseScenario(WithArrivals(R"("type": "batches", "mean_size": 2.5)"), "s.json");
  EXPECT_EQ(batches.lc[1].arrivals.kind, ArrivalKind::kBatches);
  EXPECT_DOUBLE_EQ(batches.lc[1].arrivals.batch_size, 2.5);
}

TEST(ScenarioTest, BadPhasesAndBatchesAreNamed) {
  const auto with = [](const std::string& phases) {
    return WithArrivals(R"("type": "phases", "phases": )" + phases);
  };
  ExpectSentence(WithArrivals(R"("type": "phases")"), "lc[1].arrivals.phases is missing or empty");
  ExpectSentence(with("[]"), "phases is missing or empty");
  ExpectSentence(with(R"([{"rate": 1}])"), "phases[0].duration_ns is missing");
  ExpectSentence(with(R"([{"duration_ns": 5000}])"), "phases[0].rate is missing");
  ExpectSentence(with(R"([{"duration_ns": 999, "rate": 1}])"), "duration_ns is 999");
  ExpectSentence(with(R"([{"duration_ns": 5000, "rate": -1}])"), "phases[0].rate is -1");
  ExpectSentence(with(R"([{"duration_ns": 5000, "rate": 1, "end_rate": 1e7}])"), "end_rate is");
  ExpectSentence(with(R"([{"duration_ns": 5000, "rate": 1, "end": 2}])"), "unknown key 'end'");
  ExpectSentence(with(R"([{"duration_ns": 5000, "rate": 0}])"), "phases have no rate above 0");
  ExpectSentence(with(R"([{"duration_ns": 5000, "rate": 1}], "random": true)"), "another to go to");
  ExpectSentence(WithArrivals(R"("type": "batches")"), "arrivals.mean_size is missing");
  ExpectSentence(WithArrivals(R"("type": "batches", "mean_size": 0.5)"), "mean_size is 0.5");
  ExpectSentence(WithArrivals(R"("type": "on_off", "off_ns": 5)"), "arrivals.on_ns is missing");
}

TEST(ScenarioTest, OversizedInputIsRefusedBeforeItIsRead) {
  const std::string huge(kScenarioBytesMax + 1, ' ');
  ExpectSentence(huge, "the limit is 16777216");
  std::string deep = "{\"schema_version\":";
  deep.append(100, '[');
  ExpectSentence(deep, "nests deeper");
  std::string many = "\"lc\": [";
  for (int i = 0; i < 65; ++i) many += "{\"name\": \"a\", \"kernel\": \"k\"},";
  ExpectSentence(Changed("\"lc\": [{\"name\": \"a\"", many + "{\"name\": \"a\""),
                 "the limit is 64");
}

TEST(ScenarioTest, APolicyFamilyNamesItsVariants) {
  EXPECT_TRUE(ListNamesPolicy({"adaptive"}, "adaptive:evict"));
  EXPECT_TRUE(ListNamesPolicy({"adaptive:evict"}, "adaptive:evict"));
  EXPECT_FALSE(ListNamesPolicy({"adaptive:evict"}, "adaptive"));
}

}  // namespace
}  // namespace gpushare::tool
