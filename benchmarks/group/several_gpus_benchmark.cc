// One LC service and eight BE jobs on one GPU and on several GPUs of one host, and steps that start
// on all of them. Prints JSON, a row for each phase.
//
//   several_gpus_benchmark --device cuda --gpus 1,2 --seconds 10       two GPUs; about 100 s
//   several_gpus_benchmark --device sim --gpus 1,2 --seconds 0.3       no GPU; virtual time
//
// Phases of each number of GPUs: the service alone and beside the jobs, at the same arrivals, whose
// rate grows with the number of GPUs; then steps alone and beside the jobs. Latencies count from
// the intended arrival. be_share: predicted time of the BE work that ended, over the time of all
// GPUs. failed: queries, steps and BE items that were refused or did not end OK. The tail has the
// cost of a submit: the median of single calls, of an LC task to a runtime and to a group of the
// largest number of GPUs, on devices that complete at once. --limits: exit code 1 where the largest
// number of GPUs is worse than 1 GPU.

#include <gpushare/gpushare.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "benchmarks/group/group_work.h"
#include "benchmarks/harness/arguments.h"
#include "benchmarks/harness/json.h"
#include "benchmarks/harness/quantiles.h"
#include "benchmarks/harness/random.h"

namespace gpushare::benchmarks {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
// Until everything has ended after a phase.
constexpr int64_t kDrainNs = 30 * kSecondNs;
// Between the end of a step and the next one.
constexpr int64_t kStepGapNs = 100'000;
constexpr double kServiceBound = 1.05;
// Above an eviction, so that BE work may run in the gaps between steps.
constexpr double kStepsBound = 1.2;
// What a step's region may take: its part and a launch.
constexpr int64_t kStepBoundNs = kPartNs + 50'000;

struct Options {
  std::string device;
  double seconds = 0;
  double load = 0;
  int jobs = 0;
  uint64_t seed = 0;
};

struct Figures {
  int64_t ended = 0;
  int64_t failed = 0;
  double p50_us = 0;
  double p99_us = 0;
  double be_share = 0;
};

void Check(const Status& status) {
  if (!status.ok()) Fail(status.ToString());
}

// Where callbacks of all GPUs note how the work of a phase ended.
class Outcome {
 public:
  void Clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    latencies_us_.clear();
    failed_ = 0;
  }
  void Add(int64_t latency_ns, bool ok) {
    const std::lock_guard<std::mutex> lock(mutex_);
    ok ? latencies_us_.push_back(static_cast<double>(latency_ns) / 1e3) : void(++failed_);
  }
  void Fail() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++failed_;
  }
  void FillIn(Figures* figures) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    figures->ended = static_cast<int64_t>(latencies_us_.size());
    figures->failed = failed_;
    figures->p50_us = Quantile(latencies_us_, 0.5);
    figures->p99_us = Quantile(latencies_us_, 0.99);
  }

 private:
  mutable std::mutex mutex_;
  std::vector<double> latencies_us_;
  int64_t failed_ = 0;
};

class Bench {
 public:
  Bench(const Options& options, int gpus)
      : options_(options),
        polled_(options.device == "sim"),
        group_(Open(gpus)),
        work_(options.device == "cuda" ? MakeCudaWork(*group_) : MakeSimulatedWork(*group_)),
        service_(Take(group_->CreateLcQueue(AppOf("service", kServiceBound)))),
        training_(Take(group_->CreateBeQueue(AppOf("training", 0)))),
        steps_(Take(group_->CreateSteps(AppOf("decode", kStepsBound)))) {}
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;
  // Callbacks use the other members, so the group ends first, also after a failure.
  ~Bench() {
    jobs_run_ = false;
    static_cast<void>(group_->Shutdown(group_->NowNs() + kDrainNs));
  }

  // Queries at random times for as long as the options say.
  Figures Serve(bool beside) {
    Random random(options_.seed);
    const double gap_ns =
        static_cast<double>(kQueryNs) / (options_.load * static_cast<double>(group_->size()));
    const int64_t begin_ns = Begin(beside);
    for (int64_t at_ns = begin_ns; at_ns < begin_ns + LengthNs();) {
      at_ns += random.Exponential(gap_ns);
      SleepUntil(at_ns);
      Submit(at_ns);
    }
    return End(begin_ns);
  }

  // Steps one after another on all GPUs.
  Figures Step(bool beside) {
    const int64_t begin_ns = Begin(beside);
    while (group_->NowNs() < begin_ns + LengthNs()) {
      StepOptions options;
      options.bound_ns = kStepBoundNs;
      options.next_within_ns = 2 * kStepGapNs;
      const int64_t at_ns = group_->NowNs();
      options.deadline_ns = at_ns + kSecondNs;
      GroupStep step = Take(steps_.Begin(options));
      for (int gpu = 0; gpu < group_->size(); ++gpu) work_->EnqueuePart(gpu, step.stream(gpu));
      Check(step.End());
      const Status status = step.Wait(at_ns + kDrainNs);
      outcome_.Add(group_->NowNs() - at_ns, status.ok());
      SleepUntil(group_->NowNs() + kStepGapNs);
    }
    return End(begin_ns);
  }

  void Verify() const { work_->Verify(); }

 private:
  struct Query {
    Bench* bench;
    int64_t arrival_ns;
  };

  std::unique_ptr<Group> Open(int gpus) const {
    RuntimeOptions each;
    each.device = options_.device.c_str();
    each.drive = polled_ ? GPUSHARE_DRIVE_POLL : GPUSHARE_DRIVE_THREAD;
    each.seed = options_.seed;
    Result<std::unique_ptr<Group>> group = Group::OfGpus(gpus, each);
    if (!group.ok()) {
      throw Failure(group.status().ToString(),
                    group.status().code() == GPUSHARE_UNAVAILABLE ? kNoGpu : kFailed);
    }
    return std::move(group).value();
  }
  // p99_bound 0: a BE app.
  static AppOptions AppOf(const char* name, double p99_bound) {
    AppOptions options;
    options.name = name;
    options.app_class =
        p99_bound > 0 ? GPUSHARE_CLASS_LATENCY_CRITICAL : GPUSHARE_CLASS_BEST_EFFORT;
    options.p99_bound = p99_bound;
    return options;
  }

  int64_t LengthNs() const {
    return static_cast<int64_t>(options_.seconds * static_cast<double>(kSecondNs));
  }
  void SleepUntil(int64_t time_ns) const {
    if (polled_) {
      Check(group_->PollUntil(time_ns));
      return;
    }
    const int64_t left_ns = time_ns - group_->NowNs();
    if (left_ns > 0) std::this_thread::sleep_for(std::chrono::nanoseconds(left_ns));
  }

  // Starts the jobs, where there are some, and the clock.
  int64_t Begin(bool beside) {
    outcome_.Clear();
    queries_.clear();
    jobs_run_ = beside;
    be_done_ns_ = 0;
    for (int job = 0; beside && job < options_.jobs; ++job) SubmitItem();
    return group_->NowNs();
  }
  Figures End(int64_t begin_ns) {
    Figures figures;
    const double took_ns = static_cast<double>(group_->NowNs() - begin_ns);
    figures.be_share =
        static_cast<double>(be_done_ns_.load()) / (took_ns * static_cast<double>(group_->size()));
    jobs_run_ = false;
    Check(group_->Drain(group_->NowNs() + kDrainNs));
    outcome_.FillIn(&figures);
    return figures;
  }

  void Submit(int64_t arrival_ns) {
    queries_.push_back({this, arrival_ns});
    LcWork work;
    work.kernel = work_->Kernel(GroupJob::kQuery);
    // The GPU is chosen by the duration of these block tasks; then it is prepared for that GPU.
    work_->Prepare(GroupJob::kQuery, 0, &work.task);
    work.task.arrival_ns = arrival_ns;
    work.prepare_user = this;
    work.prepare = [](void* user, int gpu, gpushare_task_options* task) {
      static_cast<Bench*>(user)->work_->Prepare(GroupJob::kQuery, gpu, task);
    };
    work.done_user = &queries_.back();
    work.done = [](void* user, int, const gpushare_completion_record* record) {
      const Query& query = *static_cast<const Query*>(user);
      query.bench->outcome_.Add(record->complete_ns - query.arrival_ns,
                                record->verdict == GPUSHARE_VERDICT_OK);
    };
    if (!service_.Submit(work).ok()) outcome_.Fail();
  }

  // A job has one item at a time; the end of one that went well submits the next one. It runs in
  // callbacks too, so it counts what fails and throws nothing.
  void SubmitItem() {
    BeWork work;
    work.kernel = work_->Kernel(GroupJob::kBatch);
    work_->Prepare(GroupJob::kBatch, 0, &work.task);
    work.prepare_user = this;
    work.prepare = [](void* user, int gpu, gpushare_task_options* task) {
      static_cast<Bench*>(user)->work_->Prepare(GroupJob::kBatch, gpu, task);
    };
    work.done_user = this;
    work.done = [](void* user, int, const gpushare_completion_record* record) {
      Bench& bench = *static_cast<Bench*>(user);
      if (record->verdict != GPUSHARE_VERDICT_OK) {
        bench.outcome_.Fail();
        return;
      }
      bench.be_done_ns_ += kBatchNs;
      if (bench.jobs_run_) bench.SubmitItem();
    };
    if (!training_.Submit(work).ok()) outcome_.Fail();
  }

  const Options options_;
  const bool polled_;
  Outcome outcome_;
  std::deque<Query> queries_;  // of the phase; callbacks use those that have not ended
  std::atomic<bool> jobs_run_{false};
  std::atomic<int64_t> be_done_ns_{0};
  std::unique_ptr<Group> group_;
  std::unique_ptr<GroupWork> work_;
  GroupLcQueue service_;
  GroupBeQueue training_;
  GroupSteps steps_;
};

// Median of a submit call in nanoseconds, to a runtime directly or to the group. The devices
// complete at once and the caller drives, so that only the call is timed.
double SubmitNs(int gpus, bool through_group) {
  constexpr int kCalls = 20'000;
  RuntimeOptions each;
  each.device = "null";
  each.drive = GPUSHARE_DRIVE_POLL;
  const std::unique_ptr<Group> group = Take(Group::OfGpus(gpus, each));
  const std::unique_ptr<GroupWork> work = MakeSimulatedWork(*group);
  AppOptions app;
  app.app_class = GPUSHARE_CLASS_LATENCY_CRITICAL;
  app.name = "service";
  const GroupLcQueue service = Take(group->CreateLcQueue(app));
  const Queue queue = Take(service.AppOn(0).CreateQueue());
  LcWork query;
  query.kernel = work->Kernel(GroupJob::kQuery);
  work->Prepare(GroupJob::kQuery, 0, &query.task);
  TaskOptions task = query.task;
  task.kernel = query.kernel->On(0).get();
  task.detached = 1;
  std::vector<double> taken_ns(kCalls);
  for (double& one : taken_ns) {
    const auto begin = std::chrono::steady_clock::now();
    const Status status = through_group ? service.Submit(query) : queue.SubmitLc(task).status();
    one =
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
    Check(status);
    for (int gpu = 0; gpu < gpus; ++gpu) Check(group->On(gpu).Poll().status());
  }
  return Median(taken_ns);
}

Json RowOf(int gpus, const char* phase, bool beside, const Figures& figures) {
  return {{"gpus", gpus},
          {"phase", phase},
          {"beside_be", beside},
          {"ended", figures.ended},
          {"failed", figures.failed},
          {"p50_us", Rounded(figures.p50_us, 1)},
          {"p99_us", Rounded(figures.p99_us, 1)},
          {"be_share", Rounded(figures.be_share, 3)}};
}

int Run(Arguments& given) {
  Options options;
  options.device = given.Text("--device", "sim");
  options.seconds = given.Real("--seconds", 1, 0.01);
  options.load = given.Real("--load", 0.5, 0.01);
  options.jobs = given.Number("--jobs", 8, 1);
  options.seed = given.Seed();
  const std::vector<int> counts = given.Numbers("--gpus", {1, 2}, 1);
  const bool limits = given.Has("--limits");
  given.Finish();
  Report report({{"benchmark", "several_gpus"},
                 {"device", options.device},
                 {"load", options.load},
                 {"jobs", options.jobs},
                 {"seconds", options.seconds},
                 {"seed", options.seed}},
                "rows");
  std::vector<Figures> served;
  int64_t failed = 0;
  for (const int gpus : counts) {
    Bench bench(options, gpus);
    for (const bool beside : {false, true}) {
      const Figures figures = bench.Serve(beside);
      report.Row(RowOf(gpus, "service", beside, figures));
      failed += figures.failed;
      if (beside) served.push_back(figures);
    }
    for (const bool beside : {false, true}) {
      const Figures figures = bench.Step(beside);
      report.Row(RowOf(gpus, "steps", beside, figures));
      failed += figures.failed;
    }
    bench.Verify();
  }
  const Figures& first = served.front();
  const Figures& last = served.back();
  // be_share is of one GPU: 0.9 of it on two is 1.8 times the work.
  const bool kept =
      failed == 0 && last.p99_us <= first.p99_us * 1.05 && last.be_share >= 0.9 * first.be_share;
  report.End({{"submit_direct_ns", Rounded(SubmitNs(counts.back(), false), 0)},
              {"submit_group_ns", Rounded(SubmitNs(counts.back(), true), 0)},
              {"limits_kept", kept}});
  return limits && !kept ? kFailed : 0;
}

}  // namespace
}  // namespace gpushare::benchmarks

int main(int argc, char** argv) {
  return gpushare::benchmarks::Main("several_gpus_benchmark", argc, argv,
                                    gpushare::benchmarks::Run);
}
