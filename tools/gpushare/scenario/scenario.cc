#include "tools/gpushare/scenario/scenario.h"

#include <algorithm>
#include <set>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/files.h"
#include "tools/gpushare/base/json_reader.h"
#include "tools/gpushare/base/limits.h"

namespace gpushare::tool {

namespace {

constexpr int kSchemaVersion = 1;
constexpr int64_t kBlockTasksMax = int64_t{1} << 40;  // the library's own limit
constexpr int64_t kBytesMax = int64_t{1} << 42;

std::string At(const std::string& list, size_t index) {
  return list + "[" + std::to_string(index) + "]";
}

void ReadExplicitTimes(ObjectReader& in, ArrivalSpec& spec) {
  const Json* times = in.Array("times_ns", static_cast<size_t>(kQueriesMax));
  if (times == nullptr || times->empty()) in.Fail("times_ns", "is missing or empty");
  for (const Json& entry : *times) {
    if (!entry.is_number_integer() || entry.get<int64_t>() < 0 ||
        entry.get<int64_t>() > kDurationNsMax) {
      in.Fail("times_ns", "holds an entry that is not a whole number from 0 to " +
                              std::to_string(kDurationNsMax));
    }
    const int64_t time = entry.get<int64_t>();
    if (!spec.times_ns.empty() && time < spec.times_ns.back()) {
      in.Fail("times_ns", "is not in ascending order");
    }
    spec.times_ns.push_back(time);
  }
}

// Bursts and silences in turn.
void ReadOnOff(ObjectReader& in, ArrivalSpec& spec) {
  const int64_t on_ns = in.Integer("on_ns", 0, 1, kDurationNsMax);
  const int64_t off_ns = in.Integer("off_ns", 0, 0, kDurationNsMax);
  if (on_ns == 0) in.Fail("on_ns", "is missing");
  spec.phases = {{on_ns, 1, 1}, {off_ns, 0, 0}};
  spec.random_phases = in.Flag("random", false);
}

void ReadPhases(ObjectReader& in, const std::string& file, ArrivalSpec& spec) {
  const Json* phases = in.Array("phases", kPhasesMax);
  if (phases == nullptr || phases->empty()) in.Fail("phases", "is missing or empty");
  bool silent = true;
  for (size_t i = 0; i < phases->size(); ++i) {
    ObjectReader reader((*phases)[i], file, At(in.Where("phases"), i));
    if (!reader.Has("rate")) reader.Fail("rate", "is missing");
    if (!reader.Has("duration_ns")) reader.Fail("duration_ns", "is missing");
    ArrivalPhase phase;
    phase.duration_ns = reader.Integer("duration_ns", 0, kPhaseNsMin, kDurationNsMax);
    phase.rate = reader.Number("rate", 0, 0, kPhaseRateMax);
    phase.end_rate = reader.Number("end_rate", phase.rate, 0, kPhaseRateMax);
    reader.Finish();
    silent = silent && phase.rate == 0 && phase.end_rate == 0;
    spec.phases.push_back(phase);
  }
  if (silent) in.Fail("phases", "have no rate above 0, and one of them must");
  spec.random_phases = in.Flag("random", false);
  if (spec.random_phases && spec.phases.size() < 2) {
    in.Fail("phases", "has one entry, and with 'random' there must be another to go to");
  }
}

void ReadSteps(ObjectReader& in, StepsSpec& steps) {
  const auto read = [&](const char* least_key, const char* most_key, int64_t least, int64_t most,
                        int64_t& out_least, int64_t& out_most) {
    out_least = in.Integer(least_key, least, 1, kDurationNsMax);
    out_most = in.Integer(most_key, most, 1, kDurationNsMax);
    if (out_most < out_least) in.Fail(most_key, std::string("is below '") + least_key + "'");
  };
  read("gap_ns_min", "gap_ns_max", kStepGapNsMin, kStepGapNsMax, steps.gap_ns_min,
       steps.gap_ns_max);
  read("busy_ns_min", "busy_ns_max", kStepBusyNsMin, kStepBusyNsMax, steps.busy_ns_min,
       steps.busy_ns_max);
  steps.stated = in.Flag("stated", false);
  if (steps.stated && steps.gap_ns_max > kStatedGapNsMax) {
    in.Fail("gap_ns_max", "is above 100 ms, and a gap that is stated must not be");
  }
}

int64_t ReadTimeUnit(ObjectReader& in) {
  const std::string unit = in.Text("time_unit", "s");
  if (unit == "s") return 1'000'000'000;
  if (unit == "ms") return 1'000'000;
  if (unit == "us") return 1'000;
  if (unit == "ns") return 1;
  in.Fail("time_unit",
          "is '" + unit.substr(0, kNameBytesMax) + "', and it must be s, ms, us or ns");
}

ArrivalSpec ReadArrivals(const Json& json, const std::string& file, const std::string& where) {
  ObjectReader in(json, file, where);
  ArrivalSpec spec;
  const std::string type = in.Text("type");
  if (type == "periodic") {
    spec.kind = ArrivalKind::kPeriodic;
  } else if (type == "sporadic") {
    spec.kind = ArrivalKind::kSporadic;
    spec.jitter = in.Number("jitter", 0, 0, kJitterMax);
  } else if (type == "poisson") {
    spec.kind = ArrivalKind::kPoisson;
  } else if (type == "gamma") {
    spec.kind = ArrivalKind::kGamma;
    spec.cv = in.NumberAbove("cv", 1, 0, 100);
  } else if (type == "on_off") {
    spec.kind = ArrivalKind::kPhases;
    ReadOnOff(in, spec);
  } else if (type == "phases") {
    spec.kind = ArrivalKind::kPhases;
    ReadPhases(in, file, spec);
  } else if (type == "batches") {
    spec.kind = ArrivalKind::kBatches;
    spec.batch_size = in.Number("mean_size", 0, 1, kBatchSizeMax);
    if (!in.Has("mean_size")) in.Fail("mean_size", "is missing");
  } else if (type == "closed_loop") {
    spec.kind = ArrivalKind::kClosedLoop;
    spec.clients = static_cast<int>(in.Integer("clients", 1, 1, 1024));
    spec.think_ns = in.Integer("think_ns", 0, 0, kDurationNsMax);
    spec.random_think = in.Flag("random", false);
  } else if (type == "steps") {
    spec.kind = ArrivalKind::kSteps;
    ReadSteps(in, spec.steps);
  } else if (type == "after_be") {
    spec.kind = ArrivalKind::kAfterBe;
    spec.after_ns = in.Integer("after_ns", 0, 0, kDurationNsMax);
    spec.pause_ns = in.Integer("pause_ns", 0, 0, kDurationNsMax);
  } else if (type == "explicit") {
    spec.kind = ArrivalKind::kExplicit;
    ReadExplicitTimes(in, spec);
    spec.scaled = in.Flag("scaled", false);
  } else if (type == "trace") {
    spec.kind = ArrivalKind::kTrace;
    spec.path = in.Text("path");
    if (spec.path.empty()) in.Fail("path", "is empty");
    spec.time_column = in.Text("time_column", "");
    spec.time_unit_ns = ReadTimeUnit(in);
    spec.scaled = in.Flag("scaled", true);
  } else {
    in.Fail("type", "is '" + type.substr(0, kNameBytesMax) +
                        "', and it must be periodic, sporadic, poisson, gamma, on_off, phases, "
                        "batches, closed_loop, steps, after_be, explicit or trace");
  }
  in.Finish();
  return spec;
}

WorkItem ReadWorkItem(ObjectReader& in, const std::string& file, const std::string& where) {
  WorkItem item;
  const bool kernel = in.Has("kernel");
  const bool copy = in.Has("copy");
  if (kernel == copy) {
    throw InputError(file + ": " + where + " must have either a 'kernel' or a 'copy'.");
  }
  if (kernel) {
    item.kernel = in.Name("kernel");
    item.block_tasks = in.Integer("block_tasks", 0, 1, kBlockTasksMax);
    return item;
  }
  const std::string direction = in.Text("copy");
  if (direction == "host_to_device") {
    item.direction = CopyDirection::kHostToDevice;
  } else if (direction == "device_to_host") {
    item.direction = CopyDirection::kDeviceToHost;
  } else {
    in.Fail("copy", "is '" + direction.substr(0, kNameBytesMax) +
                        "', and it must be host_to_device or device_to_host");
  }
  item.bytes = in.Integer("bytes", 0, 1, kBytesMax);
  if (item.bytes == 0) in.Fail("bytes", "is missing");
  item.pinned = in.Flag("pinned", true);
  return item;
}

// One task, or a group of tasks, `repeat` times in a row; a group holds no groups.
void ReadTaskEntry(const Json& json, const std::string& file, const std::string& where,
                   bool in_group, std::vector<WorkItem>& work) {
  ObjectReader in(json, file, where);
  std::vector<WorkItem> once;
  if (!in_group && in.Has("tasks")) {
    const Json* tasks = in.Array("tasks", kTasksPerQueryMax);
    if (tasks->empty()) in.Fail("tasks", "is empty");
    for (size_t i = 0; i < tasks->size(); ++i) {
      ReadTaskEntry((*tasks)[i], file, At(where + ".tasks", i), true, once);
    }
  } else {
    once.push_back(ReadWorkItem(in, file, where));
  }
  const auto repeat =
      static_cast<size_t>(in.Integer("repeat", 1, 1, static_cast<int64_t>(kTasksPerQueryMax)));
  in.Finish();
  if (work.size() + once.size() * repeat > kTasksPerQueryMax) {
    in.Fail("repeat", "makes more than " + std::to_string(kTasksPerQueryMax) + " tasks in a row");
  }
  for (size_t i = 0; i < repeat; ++i) work.insert(work.end(), once.begin(), once.end());
}

// Either "tasks": [...] or the short form of one kernel: "kernel" and "block_tasks".
std::vector<WorkItem> ReadWork(ObjectReader& in, const std::string& file,
                               const std::string& where) {
  std::vector<WorkItem> work;
  if (in.Has("kernel")) {
    if (in.Has("tasks")) in.Fail("tasks", "and 'kernel' cannot both be given");
    WorkItem item;
    item.kernel = in.Name("kernel");
    item.block_tasks = in.Integer("block_tasks", 0, 1, kBlockTasksMax);
    work.push_back(item);
    return work;
  }
  const Json* tasks = in.Array("tasks", kTasksPerQueryMax);
  if (tasks == nullptr || tasks->empty()) {
    in.Fail("tasks", "is missing or empty, and there is no 'kernel'");
  }
  for (size_t i = 0; i < tasks->size(); ++i) {
    ReadTaskEntry((*tasks)[i], file, At(where + ".tasks", i), false, work);
  }
  return work;
}

ModelSwap ReadSwap(const Json& json, const LcApp& app, const std::string& file,
                   const std::string& where) {
  ObjectReader in(json, file, where);
  ModelSwap swap;
  swap.first_query = in.Integer("first_query", 0, 0, kQueriesMax);
  swap.queries = in.Integer("queries", 0, 1, kQueriesMax);
  if (swap.queries == 0) in.Fail("queries", "is missing");
  swap.passes = static_cast<int>(in.Integer("passes", 1, 2, kTasksPerQueryMax));
  if (swap.passes == 1) in.Fail("passes", "is missing");
  if (app.tasks.size() * static_cast<size_t>(swap.passes) > kTasksPerQueryMax) {
    in.Fail("passes", "makes more than " + std::to_string(kTasksPerQueryMax) + " tasks of a query");
  }
  in.Finish();
  return swap;
}

std::vector<JobWorstCase> ReadWorstCases(ObjectReader& in, const std::string& file) {
  std::vector<JobWorstCase> worst_cases;
  const Json* given = in.Array("worst_cases", kWorstCasesMax);
  if (given == nullptr) return worst_cases;
  for (size_t i = 0; i < given->size(); ++i) {
    ObjectReader reader((*given)[i], file, At(in.Where("worst_cases"), i));
    JobWorstCase one;
    one.sms = static_cast<int>(reader.Integer("sms", 0, 1, kPlaceSmsMax));
    one.ns = reader.Integer("ns", 0, 1, kDurationNsMax);
    if (one.sms == 0) reader.Fail("sms", "is missing");
    if (one.ns == 0) reader.Fail("ns", "is missing");
    if (!worst_cases.empty() && one.sms <= worst_cases.back().sms) {
      reader.Fail("sms", "is " + std::to_string(one.sms) + ", and the entry before has " +
                             std::to_string(worst_cases.back().sms) + "; they must ascend");
    }
    reader.Finish();
    worst_cases.push_back(one);
  }
  return worst_cases;
}

// The bounds of a periodic app hold for jobs that arrive at least a period apart and take no longer
// than their worst case, whatever the load is.
void RequirePeriodKept(const ObjectReader& in, const LcApp& app) {
  const int64_t period_ns = app.real_time.period_ns;
  const ArrivalSpec& arrivals = app.arrivals;
  if (arrivals.kind != ArrivalKind::kSporadic && arrivals.kind != ArrivalKind::kExplicit) {
    in.Fail("arrivals",
            "of an app with a period must be sporadic or explicit, so that two jobs "
            "arrive at least a period apart");
  }
  if (arrivals.kind == ArrivalKind::kExplicit && arrivals.scaled) {
    in.Fail("arrivals",
            "of an app with a period must not be scaled: its jobs would arrive closer "
            "than the period at a high load");
  }
  for (size_t i = 1; i < arrivals.times_ns.size(); ++i) {
    const int64_t gap_ns = arrivals.times_ns[i] - arrivals.times_ns[i - 1];
    if (gap_ns >= period_ns) continue;
    in.Fail("arrivals", "have times_ns[" + std::to_string(i) + "] " + std::to_string(gap_ns) +
                            " ns after the time before, and the period is " +
                            std::to_string(period_ns) + "; two jobs arrive at least that apart");
  }
  if (app.swap.queries > 0) {
    in.Fail("swap",
            "and a period cannot both be given: a swapped job takes longer than its "
            "worst case");
  }
}

// The keys of a periodic app, and its arrivals: sporadic ones of its period unless explicit ones
// are given.
void ReadRealTime(ObjectReader& in, const std::string& file, LcApp& app) {
  RealTimeSpec& spec = app.real_time;
  const bool stated = in.Has("arrivals");
  if (!in.Has("period_ns")) {
    if (app.arrivals.kind == ArrivalKind::kSporadic) {
      in.Fail("period_ns", "is missing, and sporadic arrivals need it");
    }
    return;
  }
  spec.period_ns = in.Integer("period_ns", 0, 1, kDurationNsMax);
  spec.deadline_ns = in.Integer("deadline_ns", spec.period_ns, 1, kDurationNsMax);
  if (spec.deadline_ns > spec.period_ns) {
    in.Fail("deadline_ns", "is " + std::to_string(spec.deadline_ns) + ", and the period is " +
                               std::to_string(spec.period_ns) + "; it must not be longer");
  }
  spec.worst_cases = ReadWorstCases(in, file);
  spec.job_eviction_ns = in.Integer("job_eviction_ns", 0, 0, kDurationNsMax);
  spec.neighbour_factor = in.Number("neighbour_factor", 1, 1, kNeighbourFactorMax);
  if (app.target_ns > 0 || app.target_solo_factor > 0) {
    in.Fail("period_ns", "and a target cannot both be given: the deadline is the target");
  }
  if (app.yield_ns_max != 0) in.Fail("yield_ns_max", "must be 0 for an app with a period");
  if (!stated) app.arrivals.kind = ArrivalKind::kSporadic;
  app.arrivals.period_ns = spec.period_ns;
  RequirePeriodKept(in, app);
}

LcApp ReadLcApp(const Json& json, const std::string& file, const std::string& where) {
  ObjectReader in(json, file, where);
  LcApp app;
  app.name = in.Name("name");
  app.tasks = ReadWork(in, file, where);
  if (const Json* arrivals = in.Member("arrivals")) {
    app.arrivals = ReadArrivals(*arrivals, file, where + ".arrivals");
  }
  app.share = in.NumberAbove("share", 1, 0, 1e6);
  app.p99_bound = in.NumberAbove("p99_bound", 0, 1, 1000);
  app.p50_bound = in.NumberAbove("p50_bound", 0, 1, 1000);
  app.target_ns = in.Integer("target_ns", 0, 1, kDurationNsMax);
  app.target_solo_factor = in.NumberAbove("target_solo_factor", 0, 1, 1e6);
  if (app.target_ns > 0 && app.target_solo_factor > 0) {
    in.Fail("target_solo_factor", "and 'target_ns' cannot both be given");
  }
  app.reserve_capsms = static_cast<int>(in.Integer("reserve_capsms", 0, 0, 1 << 20));
  app.packed = in.Flag("packed", false);
  app.solo_ns = in.Integer("solo_ns", 0, 1, kDurationNsMax);
  app.priority = static_cast<int>(in.Integer("priority", 0, -kPriorityMax, kPriorityMax));
  app.yield_ns_max = in.Integer("yield_ns_max", 0, kNoYieldLimit, kDurationNsMax);
  app.queues = static_cast<int>(in.Integer("queues", 1, 1, kQueuesPerAppMax));
  if (const Json* swap = in.Member("swap")) {
    app.swap = ReadSwap(*swap, app, file, where + ".swap");
  }
  ReadRealTime(in, file, app);
  in.Finish();
  return app;
}

BeApp ReadBeApp(const Json& json, const std::string& file, const std::string& where) {
  ObjectReader in(json, file, where);
  BeApp app;
  app.name = in.Name("name");
  app.tasks = ReadWork(in, file, where);
  app.queues = static_cast<int>(in.Integer("queues", 1, 1, kQueuesPerAppMax));
  app.depth = static_cast<int>(in.Integer("depth", 4, 1, kDepthMax));
  app.quota_capsms = static_cast<int>(in.Integer("quota_capsms", 0, 0, 1 << 20));
  app.packed = in.Flag("packed", false);
  app.weight = in.NumberAbove("weight", 1, 0, 1e6);
  in.Finish();
  return app;
}

template <class App>
std::vector<int> Resolve(const std::vector<std::string>& names, const std::vector<App>& apps,
                         const ObjectReader& in, const char* key, const char* list) {
  std::vector<int> indices;
  for (const std::string& name : names) {
    const auto found =
        std::find_if(apps.begin(), apps.end(), [&](const App& app) { return app.name == name; });
    if (found == apps.end()) {
      in.Fail(key, "names '" + name + "', and '" + list + "' has no app of that name");
    }
    indices.push_back(static_cast<int>(found - apps.begin()));
  }
  return indices;
}

// A round begins when all apps of the case are idle, so it has a query of each, and one pause
// follows it. The number of rounds is that of the case for each of them.
void RequireRoundsOfAll(const Scenario& scenario, const Case& one, const ObjectReader& in) {
  const auto in_rounds = [&](int index) {
    return scenario.lc[static_cast<size_t>(index)].arrivals.kind == ArrivalKind::kAfterBe;
  };
  const auto count = std::count_if(one.lc.begin(), one.lc.end(), in_rounds);
  if (count != 0 && count != static_cast<std::ptrdiff_t>(one.lc.size())) {
    in.Fail("lc", "mixes apps whose arrivals are after_be with others");
  }
  if (count == 0) return;
  const LcApp& first = scenario.lc[static_cast<size_t>(one.lc.front())];
  for (const int index : one.lc) {
    const LcApp& app = scenario.lc[static_cast<size_t>(index)];
    if (app.arrivals.pause_ns == first.arrivals.pause_ns) continue;
    in.Fail("lc", "has app '" + first.name + "' with the pause_ns " +
                      std::to_string(first.arrivals.pause_ns) + " and app '" + app.name +
                      "' with " + std::to_string(app.arrivals.pause_ns) +
                      ", and all apps of a round have the same");
  }
}

Case ReadCase(const Json& json, const Scenario& scenario, const std::string& where) {
  ObjectReader in(json, scenario.file, where);
  Case one;
  one.name = in.Name("name");
  one.lc = Resolve(in.Names("lc"), scenario.lc, in, "lc", "lc");
  one.be = Resolve(in.Names("be"), scenario.be, in, "be", "be");
  if (one.lc.empty()) in.Fail("lc", "is missing or empty, and a case has at least one LC app");
  one.load = in.NumberAbove("load", 0, 0, 1);
  for (const int index : one.lc) {
    const LcApp& app = scenario.lc[static_cast<size_t>(index)];
    if (one.load == 0 && FollowsLoad(app.arrivals)) {
      in.Fail("load", "is missing, and the arrivals of '" + app.name + "' need it");
    }
  }
  RequireRoundsOfAll(scenario, one, in);
  one.p99_bound = in.NumberAbove("p99_bound", 0, 1, 1000);
  one.p50_bound = in.NumberAbove("p50_bound", 0, 1, 1000);
  one.queries = in.Integer("queries", 0, 1, kQueriesMax);
  one.policies = in.Names("policies");
  in.Finish();
  return one;
}

void RequireUniqueAppNames(const Scenario& scenario) {
  std::set<std::string> apps;
  for (const LcApp& app : scenario.lc) apps.insert(app.name);
  for (const BeApp& app : scenario.be) apps.insert(app.name);
  if (apps.size() != scenario.lc.size() + scenario.be.size()) {
    throw InputError(scenario.file + ": two apps have the same name.");
  }
}

void RequireUniqueCaseNames(const Scenario& scenario) {
  std::set<std::string> cases;
  for (const Case& one : scenario.cases) {
    if (!cases.insert(one.name).second) {
      throw InputError(scenario.file + ": two cases have the name '" + one.name + "'.");
    }
  }
}

void ReadApps(ObjectReader& in, Scenario& scenario) {
  const Json* lc = in.Array("lc", kAppsMax);
  if (lc == nullptr || lc->empty()) in.Fail("lc", "is missing or empty");
  for (size_t i = 0; i < lc->size(); ++i) {
    scenario.lc.push_back(ReadLcApp((*lc)[i], scenario.file, At("lc", i)));
  }
  if (const Json* be = in.Array("be", kAppsMax)) {
    for (size_t i = 0; i < be->size(); ++i) {
      scenario.be.push_back(ReadBeApp((*be)[i], scenario.file, At("be", i)));
    }
  }
  RequireUniqueAppNames(scenario);
  const Json* cases = in.Array("cases", kCasesMax);
  if (cases == nullptr || cases->empty()) in.Fail("cases", "is missing or empty");
  for (size_t i = 0; i < cases->size(); ++i) {
    scenario.cases.push_back(ReadCase((*cases)[i], scenario, At("cases", i)));
  }
  RequireUniqueCaseNames(scenario);
}

void ReadFused(ObjectReader& in, Scenario& scenario) {
  const Json* fused = in.Array("fused", kFusedPairsMax);
  if (fused == nullptr) return;
  for (size_t i = 0; i < fused->size(); ++i) {
    ObjectReader reader((*fused)[i], scenario.file, At("fused", i));
    FusedPair pair;
    pair.name = reader.Name("name");
    pair.tensor = reader.Name("tensor");
    pair.cuda = reader.Name("cuda");
    pair.tensor_blocks = static_cast<int>(reader.Integer("tensor_blocks", 1, 1, kFusedBlocksMax));
    pair.cuda_blocks = static_cast<int>(reader.Integer("cuda_blocks", 1, 1, kFusedBlocksMax));
    pair.load_ratio = reader.NumberAbove("load_ratio", 0, 0, 1000);
    pair.duration_ratio = reader.NumberAbove("duration_ratio", 0, 0, 1000);
    reader.Finish();
    scenario.fused.push_back(pair);
  }
}

void ReadPartitions(ObjectReader& in, Scenario& scenario) {
  const Json* partitions = in.Member("partitions");
  if (partitions == nullptr) return;
  ObjectReader reader(*partitions, scenario.file, "partitions");
  scenario.partitions.share = reader.Flag("share", false);
  scenario.partitions.slack_eviction_ns = reader.Integer("slack_eviction_ns", 0, 0, kDurationNsMax);
  scenario.partitions.reserved_sms =
      static_cast<int>(reader.Integer("reserved_sms", 0, 0, kPlaceSmsMax));
  reader.Finish();
}

void ReadTraced(ObjectReader& in, Scenario& scenario) {
  const Json* traced = in.Member("traced");
  if (traced == nullptr) return;
  ObjectReader reader(*traced, scenario.file, "traced");
  scenario.traced_case = reader.Text("case", "");
  scenario.traced_policy = reader.Text("policy", "");
  reader.Finish();
  const bool known = std::any_of(scenario.cases.begin(), scenario.cases.end(),
                                 [&](const Case& one) { return one.name == scenario.traced_case; });
  if (!scenario.traced_case.empty() && !known) {
    reader.Fail("case", "names '" + scenario.traced_case.substr(0, kNameBytesMax) +
                            "', and there is no case of that name");
  }
}

}  // namespace

bool HasPartitions(const Scenario& scenario, const std::vector<int>& lc,
                   const std::string& policy) {
  return policy == "partitioned" && std::any_of(lc.begin(), lc.end(), [&](int index) {
           return scenario.lc[static_cast<size_t>(index)].real_time.IsPeriodic();
         });
}

bool FollowsAnswers(const ArrivalSpec& spec) {
  return spec.kind == ArrivalKind::kClosedLoop || spec.kind == ArrivalKind::kSteps ||
         spec.kind == ArrivalKind::kAfterBe;
}

bool FollowsLoad(const ArrivalSpec& spec) {
  if (spec.kind == ArrivalKind::kClosedLoop || spec.kind == ArrivalKind::kAfterBe ||
      spec.kind == ArrivalKind::kSporadic) {
    return false;
  }
  return spec.scaled || (spec.kind != ArrivalKind::kExplicit && spec.kind != ArrivalKind::kTrace);
}

uint64_t Fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3u;
  }
  return hash;
}

bool ListNamesPolicy(const std::vector<std::string>& list, const std::string& policy) {
  const std::string family = policy.substr(0, policy.find(':'));
  return std::any_of(list.begin(), list.end(),
                     [&](const std::string& entry) { return entry == policy || entry == family; });
}

Scenario ParseScenario(std::string_view text, const std::string& file) {
  if (text.size() > kScenarioBytesMax) {
    throw InputError("The scenario '" + file + "' has " + std::to_string(text.size()) +
                     " bytes, and the limit is " + std::to_string(kScenarioBytesMax) + ".");
  }
  const Json document = ParseJson(text, file);
  ObjectReader in(document, file, "");
  const int64_t version = in.Integer("schema_version", 0, 0, INT32_MAX);
  if (version != kSchemaVersion) {
    in.Fail("schema_version",
            "is " + (in.Has("schema_version") ? std::to_string(version) : "missing") +
                ", and this program reads version " + std::to_string(kSchemaVersion));
  }
  Scenario scenario;
  scenario.file = file;
  scenario.digest = Fnv1a(text);
  scenario.name = in.Name("name");
  scenario.description = in.Text("description", "");
  const std::string profile = in.Text("profile", "");
  if (!profile.empty()) {
    scenario.profile_places = ProfilePlaces(ExpandVariables(profile), file);
    scenario.profile = FirstExisting(scenario.profile_places);
    if (scenario.profile.empty()) scenario.profile = scenario.profile_places[0];
  }
  scenario.seed = static_cast<uint64_t>(in.Integer("seed", 1, 0, INT64_MAX));
  scenario.queries = in.Integer("queries", 0, 1, kQueriesMax);
  scenario.duration_ns = in.Integer("duration_ns", 0, 1, kDurationNsMax);
  scenario.be_alone_ns = in.Integer("be_alone_ns", 1'000'000'000, 1'000'000, kDurationNsMax);
  scenario.policies = in.Names("policies", {"fifo", "priority", "baymax", "smguard", "adaptive"});
  if (scenario.policies.empty()) in.Fail("policies", "is empty");
  scenario.target_policies = in.Names("target_policies");
  scenario.reservation_policies = in.Names("reservation_policies", {"smguard"});
  ReadApps(in, scenario);
  ReadFused(in, scenario);
  ReadPartitions(in, scenario);
  ReadTraced(in, scenario);
  in.Finish();
  return scenario;
}

Scenario LoadScenario(const std::string& file) {
  Scenario scenario = ParseScenario(ReadFile(file, kScenarioBytesMax), file);
  RequireProfile(scenario);
  return scenario;
}

void RequireProfile(const Scenario& scenario) {
  if (scenario.profile.empty() || !FirstExisting({scenario.profile}).empty()) return;
  throw InputError("The profile of the scenario '" + scenario.name +
                   "' does not exist; the places searched are " +
                   QuotedList(scenario.profile_places) + ".");
}

}  // namespace gpushare::tool
