// An engine whose bound counts tokens, beside BE work: prefills of new requests stand between the
// tokens of others. The whole flow on the simulated device, virtual time, one thread.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "src/core/flow/scheduler.h"
#include "src/core/policies/registry.h"
#include "src/models/online/online_model.h"
#include "src/sim/sim_device.h"

namespace gpushare::core {
namespace {

constexpr int64_t kUs = 1'000;
constexpr int64_t kMs = 1'000'000;

// 0.28 of the time with an active request.
struct Load {
  double requests_per_s = 2.97;
  double tokens_mean = 48;
  int64_t step_ns = 2 * kMs;
  int64_t prefill_ns = 6 * kMs;  // a quarter to twice of it
  uint64_t seed = 1;
};
struct BeWork {
  int64_t duration_ns = 0;
  int32_t nodes = 1;    // of a graph
  bool opaque = false;  // declared to take duration_ns
};
struct Result {
  std::vector<int64_t> distances_ns;
  double busy = 0;  // share of the time
  double be = 0;
  static int64_t P99(std::vector<int64_t> values) {
    std::sort(values.begin(), values.end());
    return values[static_cast<size_t>(0.99 * static_cast<double>(values.size() - 1))];
  }
};

class TokenEngine {
 public:
  TokenEngine(const Load& load, double bound, int64_t p99_alone_ns, bool bounds_tokens)
      : load_(load), random_(load.seed) {
    auto device = sim::MakeSimDevice({});
    const DeviceProfile profile = (*device)->capabilities().profile;
    sms_ = profile.sm_count;
    scheduler_ = *Scheduler::Create(SchedulerOptions(), *std::move(device),
                                    models::MakeOnlineModel(profile), *MakePolicy("adaptive"));
    AppOptions options;
    options.name = "engine";
    options.app_class = AppClass::kLatencyCritical;
    options.promise.p99_bound = bound;
    options.promise.p99_alone_ns = p99_alone_ns;
    options.bounds_tokens = bounds_tokens;
    app_ = *scheduler_->CreateApp(options);
    queue_ = *scheduler_->CreateQueue(app_);
    for (int b = 1; b <= static_cast<int>(kBatchMax); ++b) {
      decode_.push_back(Graph("decode" + std::to_string(b), load.step_ns + b * load.step_ns / 64));
    }
    for (int p = 0; p < 8; ++p) {
      prefill_.push_back(Graph("prefill" + std::to_string(p), load.prefill_ns * (p + 1) / 4));
    }
  }
  ~TokenEngine() { ending_ = true; }

  void AddBe(const BeWork& be) {
    be_ns_ = be.duration_ns;
    AppOptions options;
    options.name = "be";
    be_spec_.queue = *scheduler_->CreateQueue(*scheduler_->CreateApp(options));
    if (be.opaque) {
      be_spec_.work.kind = TaskKind::kOpaque;
      be_spec_.work.host_function = [](void*, void*) {};
      be_spec_.work.declared_ns = be.duration_ns;
    } else {
      be_spec_.kernel = Graph("be", be.duration_ns / be.nodes, be.nodes);
      be_spec_.work.kind = TaskKind::kGraph;
    }
    be_spec_.detached = true;
    be_spec_.callback_user = this;
    be_spec_.callback = [](void* user, const CompletionRecord&) {
      auto* const engine = static_cast<TokenEngine*>(user);
      ++engine->be_done_;
      if (engine->ending_) return;
      EXPECT_TRUE(engine->scheduler_->SubmitBe(engine->be_spec_).ok());
    };
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(scheduler_->SubmitBe(be_spec_).ok());
  }

  // The first `warm` requests do not count.
  Result Run(int requests, int warm) {
    std::exponential_distribution<double> gap(load_.requests_per_s / 1e9);
    std::geometric_distribution<int> tokens(1 / load_.tokens_mean);
    std::uniform_int_distribution<int> prompt(0, 7);
    std::vector<Arrival> arrivals;
    double at_ns = 0;
    for (int r = 0; r < requests; ++r) {
      at_ns += gap(random_);
      arrivals.push_back({static_cast<TimeNs>(at_ns), 2 + tokens(random_), prompt(random_)});
    }
    std::uniform_int_distribution<int64_t> host_ns(50 * kUs, 300 * kUs);
    std::vector<Active> active;
    size_t next = 0;
    Result result;
    TimeNs begin_ns = 0;
    int64_t before = 0;
    int64_t busy_ns = 0;
    while (next < arrivals.size() || !active.empty()) {
      if (active.empty() && scheduler_->NowNs() < arrivals[next].at_ns) {
        EXPECT_TRUE(scheduler_->PollUntil(arrivals[next].at_ns).ok());
      }
      if (begin_ns == 0 && next >= static_cast<size_t>(warm)) {
        begin_ns = scheduler_->NowNs();
        before = be_done_;
      }
      const TimeNs from_ns = scheduler_->NowNs();
      const bool fill =
          next < arrivals.size() && arrivals[next].at_ns <= from_ns && active.size() < kBatchMax;
      TaskSpec spec;
      spec.queue = queue_;
      spec.work.kind = TaskKind::kGraph;
      std::vector<TokenStreamId> streams;
      if (fill) {
        const Arrival& arrival = arrivals[next++];
        spec.kernel = prefill_[static_cast<size_t>(arrival.prompt)];
        active.push_back({*scheduler_->BeginTokenStream(app_, arrival.at_ns), arrival.tokens, 0});
        streams.push_back(active.back().stream);
      } else {
        spec.kernel = decode_[active.size() - 1];
        for (const Active& each : active) streams.push_back(each.stream);
      }
      const TicketId ticket = *scheduler_->SubmitLc(spec);
      EXPECT_TRUE(scheduler_->MarkTokens(streams, ticket).ok());
      EXPECT_TRUE(scheduler_->Wait(ticket, kNever).ok());
      const TimeNs end_ns = scheduler_->Record(ticket)->complete_ns;
      EXPECT_TRUE(scheduler_->ReleaseTicket(ticket).ok());
      for (size_t i = fill ? active.size() - 1 : 0; i < active.size(); ++i) {
        Active& each = active[i];
        if (begin_ns > 0 && each.marked_ns > 0) {
          result.distances_ns.push_back(end_ns - each.marked_ns);
        }
        each.marked_ns = end_ns;
        --each.left;
      }
      for (size_t i = 0; i < active.size();) {
        if (active[i].left > 0) {
          ++i;
          continue;
        }
        EXPECT_TRUE(scheduler_->EndTokenStream(active[i].stream).ok());
        active.erase(active.begin() + static_cast<int64_t>(i));
      }
      if (!active.empty()) {
        EXPECT_TRUE(scheduler_->PollUntil(scheduler_->NowNs() + host_ns(random_)).ok());
      }
      if (begin_ns > 0) busy_ns += scheduler_->NowNs() - from_ns;
    }
    const auto time_ns = static_cast<double>(scheduler_->NowNs() - begin_ns);
    result.busy = static_cast<double>(busy_ns) / time_ns;
    result.be = static_cast<double>((be_done_ - before) * be_ns_) / time_ns;
    return result;
  }

 private:
  static constexpr size_t kBatchMax = 32;
  struct Arrival {
    TimeNs at_ns;
    int tokens;
    int prompt;
  };
  struct Active {
    TokenStreamId stream;
    int left;
    TimeNs marked_ns;
  };
  KernelId Graph(const std::string& name, int64_t node_ns, int32_t nodes = 1) {
    KernelDesc graph;
    graph.name = name;
    graph.code = GraphCode();
    graph.simulation.present = true;
    graph.simulation.nodes = {{node_ns, sms_, nodes, true, {}}};
    return *scheduler_->RegisterKernel(graph);
  }

  Load load_;
  std::mt19937_64 random_;
  int32_t sms_ = 0;
  AppId app_;
  QueueId queue_;
  std::vector<KernelId> decode_;
  std::vector<KernelId> prefill_;
  TaskSpec be_spec_;
  int64_t be_ns_ = 0;
  int64_t be_done_ = 0;
  bool ending_ = false;
  std::unique_ptr<Scheduler> scheduler_;
};

// The p99 of distances with BE work, over the p99 without, and what BE work has of the time.
struct Shared {
  double p99 = 0;
  double be = 0;
  double idle = 0;
};
Shared Beside(const BeWork& work, double bound) {
  constexpr int kRequests = 200;
  constexpr int kWarm = 50;
  const Result alone = TokenEngine({}, 0, 0, false).Run(kRequests, kWarm);
  const int64_t p99_ns = Result::P99(alone.distances_ns);
  TokenEngine engine({}, bound, p99_ns, true);
  engine.AddBe(work);
  const Result shared = engine.Run(kRequests, kWarm);
  return {
      .p99 = static_cast<double>(Result::P99(shared.distances_ns)) / static_cast<double>(p99_ns),
      .be = shared.be,
      .idle = 1 - alone.busy};
}

TEST(TokenBoundTest, AGraphInSegmentsHasTheSilencesAndKeepsTheBound) {
  const Shared shared = Beside({.duration_ns = 20 * kMs, .nodes = 200}, 1.05);
  EXPECT_LE(shared.p99, 1.05);
  EXPECT_GE(shared.be, 0.9 * shared.idle) << "of " << shared.idle;
}

TEST(TokenBoundTest, WorkThatIsLongerThanABudgetHasTheSilencesAndKeepsTheBound) {
  const Shared shared = Beside({.duration_ns = 2 * kMs, .opaque = true}, 1.05);
  EXPECT_LE(shared.p99, 1.05);
  EXPECT_GE(shared.be, 0.9 * shared.idle) << "of " << shared.idle;
}

}  // namespace
}  // namespace gpushare::core
