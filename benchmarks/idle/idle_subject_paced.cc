// The scheduler by itself on the paced device. See idle_subject.h.

#include <memory>
#include <utility>

#include "benchmarks/harness/failure.h"
#include "benchmarks/idle/idle_subject.h"
#include "src/core/flow/scheduler.h"
#include "src/core/policies/registry.h"
#include "src/models/online/online_model.h"
#include "src/null/paced_device.h"

namespace gpushare::benchmarks {
namespace {

class PacedSubject final : public IdleSubject {
 public:
  explicit PacedSubject(const SubjectOptions& given) {
    core::SchedulerOptions options;
    options.wait_mode = given.spin ? core::WaitMode::kSpin : core::WaitMode::kBalanced;
    options.caller_spin_ns = given.callers_sleep ? -1 : 0;
    auto device = null::MakePacedDevice();
    auto model = models::MakeOnlineModel(device->capabilities().profile);
    scheduler_ = Take(core::Scheduler::Create(options, std::move(device), std::move(model),
                                              Take(core::MakePolicy("adaptive"))));
    lc_ = MakeQueue("service", core::AppClass::kLatencyCritical);
    region_ = MakeQueue("region", core::AppClass::kLatencyCritical);
    waiting_ = MakeQueue("waiting", core::AppClass::kLatencyCritical);
    be_ = MakeQueue("training", core::AppClass::kBestEffort);
    query_ = MakeKernel("query", kQueryNs);
    step_ = MakeKernel("step", kStepNs);
    short_ = MakeKernel("short", 0);
    train_ = MakeKernel("train", kBeNs);
    Require(scheduler_->StartThread());
  }

  uint64_t Submit(Job job, void (*done)(void*), void* user, bool with_ticket,
                  uint64_t awaited) override {
    core::TaskSpec spec;
    const core::TicketId wait{awaited};
    spec.queue = job == Job::kBe ? be_ : awaited != 0 ? waiting_ : lc_;
    spec.kernel = KernelOf(job);
    spec.work.block_tasks = 1;
    spec.detached = !with_ticket;
    if (awaited != 0) spec.wait_tickets = absl::MakeConstSpan(&wait, 1);
    Call* const call = done == nullptr ? nullptr : new Call{done, user};
    if (call != nullptr) {
      spec.callback = [](void* given, const core::CompletionRecord&) {
        const std::unique_ptr<Call> own(static_cast<Call*>(given));
        own->done(own->user);
      };
      spec.callback_user = call;
    }
    const auto ticket = job == Job::kBe ? scheduler_->SubmitBe(spec) : scheduler_->SubmitLc(spec);
    return with_ticket ? Take(ticket).value : (Require(ticket.status()), 0);
  }
  int64_t LaunchBare() override { return 0; }
  void Wait(uint64_t ticket) override {
    Require(scheduler_->Wait(core::TicketId{ticket}, core::kNever));
    Require(scheduler_->ReleaseTicket(core::TicketId{ticket}));
  }
  void RunLc(Job job) override { Wait(Submit(job, nullptr, nullptr, true, 0)); }
  uint64_t BeginRegion() override {
    void* stream = nullptr;
    return Take(scheduler_->RegionBegin(region_, 1'000'000, &stream)).value;
  }
  void EndRegion(uint64_t region) override {
    Require(scheduler_->RegionEnd(core::TicketId{region}));
  }
  void Drain() override { Require(scheduler_->Drain(core::kNever)); }

 private:
  struct Call {
    void (*done)(void*);
    void* user;
  };

  core::KernelId KernelOf(Job job) const {
    switch (job) {
      case Job::kQuery:
        return query_;
      case Job::kStep:
        return step_;
      case Job::kBe:
        return train_;
      case Job::kShort:
        return short_;
    }
    return short_;
  }
  core::QueueId MakeQueue(const char* name, core::AppClass app_class) {
    core::AppOptions app = {.name = name, .app_class = app_class};
    return Take(scheduler_->CreateQueue(Take(scheduler_->CreateApp(app))));
  }
  core::KernelId MakeKernel(const char* name, int64_t duration_ns) {
    core::KernelDesc kernel;
    kernel.name = name;
    kernel.simulation.present = duration_ns > 0;
    kernel.simulation.block_task_ns = duration_ns;
    return Take(scheduler_->RegisterKernel(kernel));
  }

  std::unique_ptr<core::Scheduler> scheduler_;
  core::QueueId lc_, region_, waiting_, be_;
  core::KernelId query_, step_, short_, train_;
};

}  // namespace

std::unique_ptr<IdleSubject> MakePacedSubject(const SubjectOptions& options) {
  return std::make_unique<PacedSubject>(options);
}

}  // namespace gpushare::benchmarks
