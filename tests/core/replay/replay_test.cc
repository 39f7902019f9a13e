// Replay: a recorded run comes out the same, decision by decision, and a changed one does not.

#include "src/core/replay/replay.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "src/core/log/events.h"
#include "src/core/policies/registry.h"
#include "src/models/online/online_model.h"

namespace gpushare::core {
namespace {

using ::testing::HasSubstr;

constexpr TimeNs kRunNs = 20 * 1000 * 1000;

// A device with noise: a launch takes its block tasks' time, times a seeded factor; workers leave
// in the middle when they are evicted. Everything else is as simple as the contract allows.
class NoisyDevice final : public Device {
 public:
  explicit NoisyDevice(uint64_t seed) : random_(seed) {
    capabilities_.virtual_time = true;
    capabilities_.partitions = true;
    capabilities_.eviction = true;
    capabilities_.timestamps = true;
    capabilities_.reads_claims = true;
  }
  static DeviceCapabilities Capabilities() { return NoisyDevice(0).capabilities_; }

  TimeNs NowNs() const override { return now_ns_; }
  const DeviceCapabilities& capabilities() const override { return capabilities_; }
  absl::Status PrepareKernel(const KernelDesc&) override { return absl::OkStatus(); }
  absl::Status CreatePlace(PlaceIndex, const PlaceSpec&) override { return absl::OkStatus(); }
  absl::Status DestroyPlace(PlaceIndex) override { return absl::OkStatus(); }
  absl::StatusOr<LaneIndex> CreateLane(const LaneSpec& spec) override {
    if (spec.evictable && blocked_lanes > 0) {
      --blocked_lanes;
      return absl::DeadlineExceededError("The test blocks it.");
    }
    lane_free_ns_.push_back(0);
    return static_cast<LaneIndex>(lane_free_ns_.size()) - 1;
  }
  void AbandonLane(LaneIndex lane) override {
    running_.erase(std::remove_if(running_.begin(), running_.end(),
                                  [lane](const Running& running) {
                                    return running.request.parts[0].lane == lane;
                                  }),
                   running_.end());
  }
  absl::Status ReplaceLane(LaneIndex lane, const LaneSpec&) override {
    lane_free_ns_[static_cast<size_t>(lane)] = now_ns_;
    return absl::OkStatus();
  }
  // No block task is claimed while a launch hangs.
  std::optional<int64_t> ReadClaims(int32_t) override { return 0; }
  void* LaneStream(LaneIndex) override { return nullptr; }
  int64_t BusySmNs() const override { return 0; }

  absl::Status Launch(const LaunchRequest& request) override {
    if (refuse_launch > 0 && --refuse_launch == 0) return absl::InternalError("The test refuses.");
    Running running;
    running.request = request;
    running.blocks = std::max<int64_t>(1, request.parts[0].block_count);
    if (request.form == Form::kWorkers) {
      if (request.parts[0].reset_counter)
        unclaimed_[request.parts[0].counter] = request.parts[0].block_count;
      running.blocks = std::exchange(unclaimed_[request.parts[0].counter], 0);
    }
    const int64_t block_ns = request.parts[0].work.kernel == nullptr
                                 ? 1000
                                 : request.parts[0].work.kernel->simulation.block_task_ns;
    std::uniform_real_distribution<double> noise(0.8, 1.2);
    TimeNs& lane = lane_free_ns_[static_cast<size_t>(request.parts[0].lane)];
    running.start_ns = std::max(now_ns_ + 4500, lane);
    running.end_ns = running.start_ns +
                     static_cast<int64_t>(noise(random_) * static_cast<double>(running.blocks) *
                                          static_cast<double>(block_ns) / 64);
    if (hang_launch > 0 && --hang_launch == 0) running.end_ns = kHungNs;
    lane = running.end_ns;
    running_.push_back(running);
    return absl::OkStatus();
  }

  absl::Status Evict(LaneIndex lane, uint64_t epoch, int32_t) override {
    for (Running& running : running_) {
      const bool evicted = static_cast<int64_t>(epoch - running.request.parts[0].epoch) >= 0;
      if (running.request.parts[0].lane != lane || running.request.parts[0].epoch == 0 || !evicted)
        continue;
      if (running.end_ns == kHungNs) continue;
      const TimeNs leaves = std::max(now_ns_, running.start_ns) + 27000;
      if (leaves >= running.end_ns) continue;
      const double share = static_cast<double>(leaves - running.start_ns) /
                           static_cast<double>(running.end_ns - running.start_ns);
      const auto done = static_cast<int64_t>(share * static_cast<double>(running.blocks));
      unclaimed_[running.request.parts[0].counter] += running.blocks - done;
      running.blocks = done;
      running.end_ns = leaves;
      running.outcome = Outcome::kEvicted;
      lane_free_ns_[static_cast<size_t>(lane)] = leaves;
    }
    return absl::OkStatus();
  }

  size_t PollCompletions(absl::Span<DeviceCompletion> out) override {
    size_t count = 0;
    while (count < out.size() && !running_.empty()) {
      const auto first = First();
      if (first->end_ns + kCompletionNs > now_ns_) break;
      out[count++] = {first->request.parts[0].launch,
                      first->outcome,
                      first->start_ns,
                      first->end_ns,
                      first->blocks,
                      0};
      running_.erase(first);
    }
    return count;
  }

  TimeNs NextEventNs() const override {
    return running_.empty() ? kNever : std::max(now_ns_, First()->end_ns + kCompletionNs);
  }
  void AdvanceTo(TimeNs time) override { now_ns_ = std::max(now_ns_, time); }

  int refuse_launch = 0;  // counts down; the launch that reaches 0 is refused
  int hang_launch = 0;    // the same, and it never ends
  int blocked_lanes = 0;  // evictable lanes, from the first, on which evictions do not arrive

 private:
  static constexpr TimeNs kCompletionNs = 2000;
  static constexpr TimeNs kHungNs = kNever / 2;
  struct Running {
    LaunchRequest request;
    int64_t blocks = 0;
    TimeNs start_ns = 0;
    TimeNs end_ns = 0;
    Outcome outcome = Outcome::kFinished;
  };
  std::vector<Running>::const_iterator First() const {
    return std::min_element(running_.begin(), running_.end(),
                            [](const auto& a, const auto& b) { return a.end_ns < b.end_ns; });
  }

  DeviceCapabilities capabilities_;
  std::mt19937_64 random_;
  TimeNs now_ns_ = 0;
  std::vector<TimeNs> lane_free_ns_;
  std::map<int32_t, int64_t> unclaimed_;
  std::vector<Running> running_;
};

KernelDesc MakeKernel(const std::string& name, int64_t block_task_ns) {
  KernelDesc kernel;
  kernel.name = name;
  kernel.evictable = true;
  kernel.simulation.present = true;
  kernel.simulation.block_task_ns = block_task_ns;
  return kernel;
}

// Two LC apps with Poisson arrivals beside two BE apps that submit again when a task completes.
struct Scenario {
  std::array<AppId, 4> apps;
  std::array<QueueId, 4> queues;
  std::array<KernelId, 2> kernels;
  bool tokens = false;  // the bound of the first app counts them

  absl::Status Prepare(Scheduler& scheduler) {
    for (size_t i = 0; i < apps.size(); ++i) {
      AppOptions options;
      options.name = "app" + std::to_string(i);
      const bool critical = i < 2;
      options.app_class = critical ? AppClass::kLatencyCritical : AppClass::kBestEffort;
      if (critical) {
        options.promise.target_ns = 2000000;
        options.promise.p99_bound = 1.05;
        options.promise.p99_alone_ns = 1500000;
        options.solo_ns = 200000;
        options.yield_ns_max = i == 0 ? 500000 : 0;  // once the other has a higher priority
      }
      if (tokens && i == 0) {
        options.promise.target_ns = 0;
        options.bounds_tokens = true;
      }
      absl::StatusOr<AppId> app = scheduler.CreateApp(options);
      if (!app.ok()) return app.status();
      apps[i] = *app;
      absl::StatusOr<QueueId> queue = scheduler.CreateQueue(*app);
      if (!queue.ok()) return queue.status();
      queues[i] = *queue;
    }
    for (size_t i = 0; i < kernels.size(); ++i) {
      absl::StatusOr<KernelId> kernel = scheduler.RegisterKernel(
          MakeKernel(i == 0 ? "decode" : "sincos", i == 0 ? 20000 : 27000));
      if (!kernel.ok()) return kernel.status();
      kernels[i] = *kernel;
    }
    return absl::OkStatus();
  }
};

// The recorded side: callbacks, tickets that are kept and released late, so that their numbers
// differ from those of the replay.
class Recording {
 public:
  struct Faults {
    int refuse_launch = 0;
    int blocked_lanes = 0;
    int hang_launch = 0;
    bool updates = false;   // apps state something else in the middle
    bool lc_alone = false;  // no BE app submits
    bool steps = false;     // queries state what follows them
    bool tokens = false;    // and get tokens, and state the sizes of their inputs
  };
  Recording(uint64_t seed, const std::string& policy) : Recording(seed, policy, Faults()) {}
  Recording(uint64_t seed, const std::string& policy, const Faults& faults)
      : log_(1 << 18),
        hangs_(faults.hang_launch > 0),
        updates_(faults.updates),
        steps_(faults.steps) {
    scenario_.tokens = faults.tokens;
    auto device = std::make_unique<NoisyDevice>(seed);
    device->refuse_launch = faults.refuse_launch;
    device->blocked_lanes = faults.blocked_lanes;
    device->hang_launch = faults.hang_launch;
    SchedulerOptions options;
    options.events = &log_;
    scheduler_ = *Scheduler::Create(options, std::move(device),
                                    models::MakeOnlineModel(DeviceProfile()), *MakePolicy(policy));
    EXPECT_TRUE(scenario_.Prepare(*scheduler_).ok());
    if (!faults.lc_alone) {
      for (size_t be : {2u, 3u}) SubmitBe(be);
    }
    Run(seed);
    log_file_.header.seed = seed;
    log_file_.header.blocked_lanes = scheduler_->BlockedLanes();
    log_file_.records.assign(log_.records().begin(), log_.records().end());
    EXPECT_EQ(log_.dropped(), 0);
  }

  const EventLogFile& log() const { return log_file_; }
  AppGuarantee GuaranteeOf(size_t app) const {
    return *scheduler_->GuaranteeOf(scenario_.apps[app]);
  }
  int CountOf(EventType type) const {
    return static_cast<int>(std::count_if(
        log_file_.records.begin(), log_file_.records.end(),
        [type](const EventRecord& record) { return record.type == static_cast<uint8_t>(type); }));
  }

 private:
  void Run(uint64_t seed) {
    std::mt19937_64 random(seed);
    std::exponential_distribution<double> gap(1.0 / 400000);
    for (double at = gap(random); at < kRunNs; at += gap(random)) {
      ASSERT_TRUE(scheduler_->PollUntil(static_cast<TimeNs>(at)).ok());
      if (updates_ && at > kRunNs / 2) Update();
      TaskSpec spec;
      const size_t app = random() % 2;
      spec.queue = scenario_.queues[app];
      spec.kernel = scenario_.kernels[0];
      spec.work.block_tasks = 200 + static_cast<int64_t>(random() % 400);
      spec.detached = random() % 3 == 0;
      if (steps_) spec.next_within_ns = random() % 3 == 0 ? kNoNextQuery : 300'000;
      // The oldest ticket is complete, as a rule.
      const size_t waits = random() % 4 == 0 && !kept_.empty() ? 1 : 0;
      spec.wait_tickets = absl::MakeConstSpan(kept_.data(), waits);
      if (scenario_.tokens) SetSize(random, app, spec);
      const TicketId ticket = scheduler_->SubmitLc(spec).value();
      if (spec.query) {
        EXPECT_TRUE(scheduler_->EndQuery(spec.query).ok());
      }
      if (scenario_.tokens) GiveTokens(random, ticket);
      if (!spec.detached) kept_.push_back(ticket);
      if (kept_.size() > 5) {
        EXPECT_TRUE(scheduler_->ReleaseTicket(kept_.front()).ok());
        kept_.erase(kept_.begin());
      }
    }
    stop_ = true;
    // Where nothing can be evicted, BE tasks this long may never fit before a query.
    const bool drained = scheduler_->Drain(kRunNs * (hangs_ ? 10'000 : 10)).ok();
    ASSERT_TRUE(drained || scheduler_->BlockedLanes() != 0);
    if (!hangs_) return;
    // On the lane that took the place of the hung one, too.
    for (size_t be : {2u, 3u, 2u, 3u}) SubmitBe(be);
    ASSERT_TRUE(scheduler_->Drain(scheduler_->NowNs() + kRunNs * 10'000).ok());
  }

  // Of a task's own query, or of one with a begin and an end.
  void SetSize(std::mt19937_64& random, size_t app, TaskSpec& spec) {
    const double size = static_cast<double>(spec.work.block_tasks) / 3;
    if (random() % 2 == 0) {
      spec.input_size = size;
    } else {
      spec.query = scheduler_->BeginQuery(scenario_.queues[app], 0, size).value();
    }
  }

  // As an engine does: requests come, get a token of each step, and end. Now and then a step before
  // gives them one that is marked late.
  void GiveTokens(std::mt19937_64& random, TicketId ticket) {
    while (streams_.size() < 2 || (streams_.size() < 9 && random() % 2 == 0)) {
      const AppId app = scenario_.apps[random() % 8 == 0 ? 1 : 0];
      streams_.push_back(scheduler_->BeginTokenStream(app, 0).value());
    }
    EXPECT_TRUE(scheduler_->MarkTokens(streams_, ticket).ok());
    if (random() % 4 == 0) {
      EXPECT_TRUE(scheduler_->MarkTokens({&streams_[0], 1}, ticket).ok());
    }
    if (random() % 8 == 0 && kept_.size() > 2) {
      EXPECT_TRUE(scheduler_->MarkTokens({&streams_[1], 1}, kept_[1]).ok());
    }
    if (random() % 4 != 0) return;
    EXPECT_TRUE(scheduler_->EndTokenStream(streams_.front()).ok());
    streams_.erase(streams_.begin());
  }

  void Update() {
    updates_ = false;
    const AppUpdate lc = {.promise = {.p99_bound = 1.123456789, .p99_alone_ns = 700'000}};
    EXPECT_TRUE(scheduler_->UpdateApp(scenario_.apps[0], lc).ok());
    EXPECT_TRUE(
        scheduler_->UpdateApp(scenario_.apps[1], {.promise = {.target_ns = 400'000}, .priority = 7})
            .ok());
    EXPECT_TRUE(scheduler_->UpdateApp(scenario_.apps[2], {.weight = 7.3}).ok());
  }

  struct Again {
    Recording* recording;
    size_t app;
  };
  void SubmitBe(size_t app) {
    TaskSpec spec;
    spec.queue = scenario_.queues[app];
    spec.kernel = scenario_.kernels[1];
    spec.work.block_tasks = app == 2 ? 4000 : 1500;
    spec.detached = true;
    again_[app] = {this, app};
    spec.callback_user = &again_[app];
    spec.callback = [](void* user, const CompletionRecord&) {
      Again* again = static_cast<Again*>(user);
      if (!again->recording->stop_) again->recording->SubmitBe(again->app);
    };
    EXPECT_TRUE(scheduler_->SubmitBe(spec).ok());
  }

  EventLog log_;
  bool hangs_;
  bool updates_;
  bool steps_;
  Scenario scenario_;
  EventLogFile log_file_;
  bool stop_ = false;
  std::array<Again, 4> again_;
  std::vector<TicketId> kept_;
  std::vector<TokenStreamId> streams_;
  std::unique_ptr<Scheduler> scheduler_;
};

// `replayed`: gets the guarantee of the first app; its bound then counts tokens.
ReplayResult ReplayWith(const EventLogFile& log, const std::string& policy,
                        AppGuarantee* replayed = nullptr) {
  absl::StatusOr<std::unique_ptr<Replayer>> replayer = Replayer::Create(log);
  EXPECT_TRUE(replayer.ok()) << replayer.status();
  if (!replayer.ok()) return ReplayResult();
  SchedulerOptions options;
  options.events = &(*replayer)->events();
  auto scheduler =
      *Scheduler::Create(options, (*replayer)->MakeDevice(NoisyDevice::Capabilities()),
                         models::MakeOnlineModel(DeviceProfile()), *MakePolicy(policy));
  Scenario scenario;
  scenario.tokens = replayed != nullptr;
  EXPECT_TRUE(scenario.Prepare(*scheduler).ok());
  const ReplayResult result = (*replayer)->Run(*scheduler);
  if (replayed != nullptr) *replayed = *scheduler->GuaranteeOf(scenario.apps[0]);
  return result;
}

std::string Refusal(const EventLogFile& log) {
  return std::string(Replayer::Create(log).status().message());
}

class ReplayTest : public ::testing::TestWithParam<const char*> {};

TEST_P(ReplayTest, TheSameSeedDecidesTheSame) {
  const uint64_t digest = DecisionDigest(Recording(7, GetParam()).log().records);
  EXPECT_EQ(DecisionDigest(Recording(7, GetParam()).log().records), digest);
  EXPECT_NE(DecisionDigest(Recording(8, GetParam()).log().records), digest);
}

TEST_P(ReplayTest, ARecordedRunComesOutTheSame) {
  for (uint64_t seed : {1u, 2u, 3u, 4u, 5u}) {
    const Recording recording(seed, GetParam());
    EXPECT_GT(recording.CountOf(EventType::kSubmitted), 20);
    const ReplayResult result = ReplayWith(recording.log(), GetParam());
    EXPECT_TRUE(result.matches) << "seed " << seed << ": " << result.difference;
    EXPECT_EQ(result.records, static_cast<int64_t>(recording.log().records.size()));
    EXPECT_EQ(result.records_equal, result.records);
    EXPECT_GT(result.decisions, 20);
    EXPECT_EQ(result.decisions_equal, result.decisions);
  }
}

// A completion that came later must change what follows, and be found at the first consequence.
TEST_P(ReplayTest, AChangedCompletionIsFound) {
  const Recording recording(1, GetParam());
  EventLogFile log = recording.log();
  for (size_t i = log.records.size() / 2; i < log.records.size(); ++i) {
    EventRecord& record = log.records[i];
    if (record.type != static_cast<uint8_t>(EventType::kCompleted)) continue;
    record.b += 1;  // the recorded measurement no longer follows from the recorded times
    const ReplayResult result = ReplayWith(log, GetParam());
    EXPECT_FALSE(result.matches);
    EXPECT_EQ(result.records_equal, static_cast<int64_t>(i));
    EXPECT_LT(result.decisions_equal, result.decisions);
    EXPECT_THAT(result.difference, HasSubstr("Event " + std::to_string(i)));
    return;
  }
  FAIL() << "no completion";
}

// A damaged completion makes the replayed scheduler act where nothing was recorded; it must end.
TEST_P(ReplayTest, ADamagedCompletionIsFoundAndTheReplayEnds) {
  EventLogFile log = Recording(1, GetParam()).log();
  for (size_t i = log.records.size() / 2; i < log.records.size(); ++i) {
    EventRecord& record = log.records[i];
    if (record.type != static_cast<uint8_t>(EventType::kPartDone)) continue;
    record.a = 12345678;  // a launch that nobody made
    EXPECT_FALSE(ReplayWith(log, GetParam()).matches);
    return;
  }
  FAIL() << "no part";
}

TEST_P(ReplayTest, AMissingSubmissionIsFound) {
  EventLogFile log = Recording(1, GetParam()).log();
  for (size_t i = log.records.size() / 2; i < log.records.size(); ++i) {
    if (log.records[i].type != static_cast<uint8_t>(EventType::kSubmitted)) continue;
    log.records.erase(log.records.begin() + static_cast<int64_t>(i));
    EXPECT_THAT(Refusal(log), HasSubstr("lacks events"));
    return;
  }
  FAIL() << "no submission";
}

TEST_P(ReplayTest, ARefusedLaunchIsRefusedAgain) {
  const Recording recording(3, GetParam(), {.refuse_launch = 11});
  const ReplayResult result = ReplayWith(recording.log(), GetParam());
  EXPECT_TRUE(result.matches) << result.difference;
}

TEST_P(ReplayTest, LanesOnWhichEvictionsWereBlockedAreBlockedAgain) {
  const Recording recording(3, GetParam(), {.blocked_lanes = 1});
  ASSERT_EQ(std::popcount(recording.log().header.blocked_lanes), 1);
  const ReplayResult result = ReplayWith(recording.log(), GetParam());
  EXPECT_TRUE(result.matches) << result.difference;
}

TEST_P(ReplayTest, ALaunchThatHangsHangsAgain) {
  for (const int launch : {1, 3, 10, 20}) {
    const Recording recording(3, GetParam(), {.hang_launch = launch});
    ASSERT_EQ(recording.CountOf(EventType::kLaneAbandoned), 1) << launch;
    const ReplayResult result = ReplayWith(recording.log(), GetParam());
    EXPECT_TRUE(result.matches) << launch << ": " << result.difference;
  }
}

TEST_P(ReplayTest, AnUpdateOfAnAppIsMadeAgain) {
  for (uint64_t seed : {1u, 2u, 3u}) {
    const Recording recording(seed, GetParam(), {.updates = true});
    ASSERT_EQ(recording.CountOf(EventType::kAppUpdated), 3);
    const ReplayResult result = ReplayWith(recording.log(), GetParam());
    EXPECT_TRUE(result.matches) << "seed " << seed << ": " << result.difference;
  }
}

// What queries state holds BE work, so the replay must hear it too.
TEST_P(ReplayTest, StatementsOfANextQueryAreMadeAgain) {
  for (uint64_t seed : {1u, 2u, 3u}) {
    const Recording recording(seed, GetParam(), {.steps = true});
    ASSERT_GT(recording.CountOf(EventType::kNextStated), 10);
    const ReplayResult result = ReplayWith(recording.log(), GetParam());
    EXPECT_TRUE(result.matches) << "seed " << seed << ": " << result.difference;
  }
}

// What tokens and sizes show is in the promises that BE work is planned by.
TEST_P(ReplayTest, TokensAndSizesAreRecordedAndReplayed) {
  for (uint64_t seed : {1u, 2u, 3u, 4u, 5u}) {
    const Recording recording(seed, GetParam(), {.tokens = true});
    const AppGuarantee recorded = recording.GuaranteeOf(0);
    ASSERT_GT(recorded.first_tokens, 10);
    ASSERT_GT(recorded.token_distances, 50);
    AppGuarantee replayed;
    const ReplayResult result = ReplayWith(recording.log(), GetParam(), &replayed);
    EXPECT_TRUE(result.matches) << "seed " << seed << ": " << result.difference;
    EXPECT_EQ(replayed.first_tokens, recorded.first_tokens);
    EXPECT_EQ(replayed.ttft_p99_ns, recorded.ttft_p99_ns);
    EXPECT_EQ(replayed.token_distances, recorded.token_distances);
    EXPECT_EQ(replayed.tbt_p99_ns, recorded.tbt_p99_ns);
    EXPECT_EQ(replayed.token_streams, recorded.token_streams);
    EXPECT_EQ(replayed.tail_credit, recorded.tail_credit);
    EXPECT_EQ(replayed.queries_late_for_be, recorded.queries_late_for_be);
  }
}

// Without BE work plans leave no events, and their routes decide what the fast path launches.
TEST_P(ReplayTest, LcWorkAloneTakesTheSamePathAgain) {
  const bool has_fast_path = std::string(GetParam()) != "fifo";
  for (uint64_t seed : {1u, 2u, 3u, 4u, 5u}) {  // the first query may be of the app that yields
    const Recording recording(seed, GetParam(), {.lc_alone = true});
    ASSERT_EQ(recording.CountOf(EventType::kFastPathLaunched) > 10, has_fast_path);
    const ReplayResult result = ReplayWith(recording.log(), GetParam());
    EXPECT_TRUE(result.matches) << "seed " << seed << ": " << result.difference;
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, ReplayTest,
                         ::testing::Values("fifo", "priority", "baymax", "smguard", "adaptive",
                                           "adaptive:evict"),
                         [](const auto& param) {
                           std::string name = param.param;
                           std::replace(name.begin(), name.end(), ':', '_');
                           return name;
                         });

TEST(ReplayErrorsTest, AnotherPolicyIsFound) {
  const Recording recording(1, "adaptive");
  const ReplayResult result = ReplayWith(recording.log(), "fifo");
  EXPECT_FALSE(result.matches);
  EXPECT_LT(result.decisions_equal, result.decisions);
  EXPECT_EQ(result.difference.back(), '.');
}

TEST(ReplayErrorsTest, EvictionsAreAmongWhatIsReplayed) {
  EXPECT_GT(Recording(1, "adaptive:evict").CountOf(EventType::kEvicted), 5);
}

TEST(ReplayErrorsTest, AnUntoldBlockedLaneIsFound) {
  EventLogFile log = Recording(1, "adaptive:evict", {.blocked_lanes = 1}).log();
  log.header.blocked_lanes = 0;
  EXPECT_FALSE(ReplayWith(log, "adaptive:evict").matches);
}

TEST(ReplayErrorsTest, LogsThatCannotBeReplayedAreRefused) {
  EventLogFile log;
  EXPECT_EQ(Refusal(log), "The event log is empty.");
  const EventLogFile good = Recording(1, "fifo").log();
  log = good;
  log.header.dropped = 3;
  EXPECT_THAT(Refusal(log), HasSubstr("dropped 3 records"));
  log = good;
  std::swap(log.records.front().time_ns, log.records.back().time_ns);
  EXPECT_THAT(Refusal(log), HasSubstr("Event 1 of the log is at"));
  log = good;
  log.records.back().time_ns = kNever;
  EXPECT_THAT(Refusal(log), HasSubstr("needs times between"));
  const auto part = [](const EventRecord& record) {
    return record.type == static_cast<uint8_t>(EventType::kPartDone);
  };
  for (int64_t EventRecord::*field : {&EventRecord::b, &EventRecord::d}) {
    log = good;
    (*std::find_if(log.records.begin(), log.records.end(), part)).*field = -1;
    EXPECT_THAT(Refusal(log), HasSubstr("no device can have done"));
  }
}

// A log says after which time an app's idle queries count as no load; those before that said
// nothing.
TEST(ReplayErrorsTest, AnotherIdleTimeoutIsADifferenceUnlessTheLogHasNone) {
  EventLogFile log = Recording(1, "adaptive").log();
  EventRecord& created = log.records.front();
  ASSERT_EQ(created.type, static_cast<uint8_t>(EventType::kAppCreated));
  EXPECT_EQ(created.d, kDefaultIdleTimeoutNs);
  created.d = 5 * kDefaultIdleTimeoutNs;
  EXPECT_THAT(ReplayWith(log, "adaptive").difference, HasSubstr("Event 0 was recorded as"));
  for (EventRecord& record : log.records) {
    if (record.type == static_cast<uint8_t>(EventType::kAppCreated)) record.d = 0;
  }
  const ReplayResult result = ReplayWith(log, "adaptive");
  EXPECT_TRUE(result.matches) << result.difference;
}

// What its queries show is of marks, which no event of such a log has.
TEST(ReplayErrorsTest, ALogWithoutMarksOfAnAppWhoseBoundCountsTokensIsRefused) {
  EventLog events(100);
  SchedulerOptions options;
  options.events = &events;
  const auto scheduler =
      *Scheduler::Create(options, std::make_unique<NoisyDevice>(1),
                         models::MakeOnlineModel(DeviceProfile()), *MakePolicy("adaptive"));
  AppOptions app;
  app.name = "engine";
  app.app_class = AppClass::kLatencyCritical;
  app.promise = {.p99_bound = 1.2, .p99_alone_ns = 1'000'000};
  ASSERT_TRUE(scheduler->CreateApp(app).ok());
  EventLogFile log;
  log.header.version = 1;
  log.records.assign(events.records().begin(), events.records().end());
  EXPECT_EQ(Refusal(log), "");
  app.name = "other engine";
  app.bounds_tokens = true;
  ASSERT_TRUE(scheduler->CreateApp(app).ok());
  log.records.assign(events.records().begin(), events.records().end());
  EXPECT_THAT(Refusal(log), HasSubstr("Event 1 of the log creates an app whose bound counts"));
  log.header.version = 2;
  EXPECT_EQ(Refusal(log), "");
}

TEST(ReplayErrorsTest, ALogThatLacksTheBeginOfATokenStreamIsRefused) {
  const EventLogFile good = Recording(1, "adaptive", {.tokens = true}).log();
  EXPECT_EQ(Refusal(good), "");
  const auto first = [](EventLogFile& log, EventType type) {
    return std::find_if(log.records.begin(), log.records.end(), [type](const EventRecord& record) {
      return record.type == static_cast<uint8_t>(type) && IsOfTokens(record);
    });
  };
  for (const EventType user : {EventType::kWaits, EventType::kQueryEndCalled}) {
    EventLogFile log = good;
    first(log, user)->id = first(log, user)->a = 12345;
    EXPECT_THAT(Refusal(log), HasSubstr("lacks events"));
    log = good;
    first(log, user)->detail = 2;
    EXPECT_THAT(Refusal(log), HasSubstr("about something of the kind 2, and the last known"));
  }
  EventLogFile log = good;
  first(log, EventType::kWaits)->a = 12345;
  EXPECT_THAT(Refusal(log), HasSubstr("is of token stream 12345, and no event before it begins"));
}

TEST(ReplayErrorsTest, ALogThatBeginsInsideARunIsRefused) {
  EventLogFile log = Recording(1, "fifo").log();
  const auto first_part = std::find_if(log.records.begin(), log.records.end(), [](const auto& r) {
    return r.type == static_cast<uint8_t>(EventType::kPartDone);
  });
  const uint64_t task = first_part->id;
  log.records.erase(log.records.begin(), first_part);
  EXPECT_THAT(Refusal(log), HasSubstr("begins inside a run, or lacks events: event 0 is of task " +
                                      std::to_string(task)));
}

TEST(ReplayErrorsTest, ALogThatBeginsAfterTheSetupComesOutTheSame) {
  EventLogFile log = Recording(2, "adaptive").log();
  log.records.erase(log.records.begin(),
                    std::find_if(log.records.begin(), log.records.end(), [](const auto& r) {
                      return r.type != static_cast<uint8_t>(EventType::kAppCreated);
                    }));
  const ReplayResult result = ReplayWith(log, "adaptive");
  EXPECT_TRUE(result.matches) << result.difference;
  EXPECT_EQ(result.records_equal, static_cast<int64_t>(log.records.size()));
}

}  // namespace
}  // namespace gpushare::core
