#include "examples/servers/http/service.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <deque>
#include <optional>
#include <stdexcept>

namespace gpushare::example {
namespace {

constexpr int64_t kShutdownNs = 10'000'000'000;
constexpr size_t kBeInFlight = 2;  // the second one hides the time that it takes to submit one
constexpr int64_t kCopyBytes = kValues * sizeof(uint16_t);

uint16_t ToBf16(float value) {
  uint32_t word = 0;
  std::memcpy(&word, &value, sizeof(word));
  return static_cast<uint16_t>((word + 0x7FFFU + ((word >> 16U) & 1U)) >> 16U);  // to nearest even
}

float FromBf16(uint16_t bits) {
  const uint32_t word = static_cast<uint32_t>(bits) << 16U;
  float value = 0;
  std::memcpy(&value, &word, sizeof(value));
  return value;
}

App MakeApp(const Runtime& runtime, const char* name, gpushare_app_class app_class,
            double p99_bound, int32_t tasks_max) {
  AppOptions options;
  options.name = name;
  options.app_class = app_class;
  options.p99_bound = p99_bound;
  options.tasks_max = tasks_max;
  return runtime.CreateApp(options).value();
}

TaskOptions Copy(void* to, const void* from, gpushare_copy_direction direction) {
  TaskOptions task;
  task.kind = GPUSHARE_TASK_MEMCPY;
  task.copy_destination = to;
  task.copy_source = from;
  task.copy_size_bytes = kCopyBytes;
  task.copy_direction = direction;
  return task;
}

Answer Failed(int http_status, std::string error) {
  Answer answer;
  answer.http_status = http_status;
  answer.error = std::move(error);
  return answer;
}

}  // namespace

Service::Service(const ServiceOptions& options) {
  RuntimeOptions runtime;
  if (!options.device.empty()) runtime.device = options.device.c_str();
  runtime_ = Runtime::Create(runtime).value();
  const DeviceInfo device = runtime_.Device().value();
  virtual_time_ = device.virtual_time == 1;
  simulated_ = std::string(device.name) != "cuda";
  work_ = simulated_ ? MakeSimulatedWork() : MakeGpuWork();
  if (work_ == nullptr) {
    throw std::runtime_error("This build has no kernels for a GPU; use --device sim.");
  }
  model_ = work_->RegisterModel(runtime_, options.graph_ns);
  be_kernel_ = work_->RegisterBe(runtime_);
  lc_app_ = MakeApp(runtime_, "service", GPUSHARE_CLASS_LATENCY_CRITICAL, options.p99_bound,
                    std::max(1024, 4 * options.queries_max));
  be_app_ = MakeApp(runtime_, "background", GPUSHARE_CLASS_BEST_EFFORT, 0, 16);
  lc_ = lc_app_.CreateQueue().value();
  be_ = be_app_.CreateQueue().value();
  MakeSlots(options.queries_max);
  if (options.best_effort) be_feeder_ = std::thread([this] { FeedBe(); });
}

Service::~Service() { Shutdown(); }

void Service::MakeSlots(int count) {
  auto* memory =
      static_cast<uint16_t*>(work_->HostMemory(static_cast<size_t>(2 * count * kCopyBytes)));
  for (int i = 0; i < 2 * count; i += 2) {
    free_slots_.push_back({memory + i * kValues, memory + (i + 1) * kValues});
  }
}

Answer Service::Infer(const std::vector<float>& values) {
  Slot slot = {};
  {
    const std::lock_guard<std::mutex> lock(slots_mutex_);
    if (free_slots_.empty()) return Failed(503, "The queue of the service is full.");
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  std::transform(values.begin(), values.end(), slot.input, ToBf16);
  Answer answer = RunQuery(slot);
  const std::lock_guard<std::mutex> lock(slots_mutex_);
  free_slots_.push_back(slot);
  return answer;
}

Answer Service::RunQuery(const Slot& slot) {
  std::vector<Ticket> tickets;
  tickets.reserve(3);
  const int64_t arrival_ns = runtime_.NowNs();
  const Status submitted = Submit(slot, tickets);
  std::optional<CompletionRecord> last;
  // All tickets, also after a failed submit: until they are complete the slot is in use.
  for (const Ticket& ticket : tickets) {
    if (const Status status = ticket.Wait(); !status.ok()) return Failed(500, status.ToString());
    last = ticket.Record().value();
    if (last->verdict != GPUSHARE_VERDICT_OK) {
      return Failed(500, std::string("The query ends with the verdict ") +
                             gpushare_verdict_name(last->verdict) + ".");
    }
  }
  if (!submitted.ok()) {
    return Failed(submitted.code() == GPUSHARE_RESOURCE_EXHAUSTED ? 503 : 500,
                  submitted.ToString());
  }
  Answer answer;
  answer.query_ns = last->complete_ns - arrival_ns;
  answer.output.resize(kValues);
  for (int i = 0; i < kValues; ++i) {
    // A simulated device computes nothing, so the host does.
    const int from = (i + kValues - work_->Shift()) % kValues;
    answer.output[static_cast<size_t>(i)] =
        FromBf16(simulated_ ? slot.input[from] : slot.output[i]);
  }
  return answer;
}

// The tasks of two queries must not mix, since the model's buffers on the device are one.
Status Service::Submit(const Slot& slot, std::vector<Ticket>& tickets) {
  TaskOptions run;
  run.kernel = model_.get();
  TaskOptions steps[] = {Copy(work_->input(), slot.input, GPUSHARE_COPY_HOST_TO_DEVICE), run,
                         Copy(slot.output, work_->output(), GPUSHARE_COPY_DEVICE_TO_HOST)};
  const std::lock_guard<std::mutex> lock(order_);
  Result<Query> query = lc_.BeginQuery();
  if (!query.ok()) return query.status();
  for (TaskOptions& step : steps) {
    step.query = query->get();
    Result<Ticket> ticket = lc_.SubmitLc(step);
    if (!ticket.ok()) return ticket.status();
    tickets.push_back(*std::move(ticket));
  }
  return query->End();
}

// Keeps BE tasks queued until the shutdown.
void Service::FeedBe() {
  TaskOptions task = work_->BeTask();
  task.kernel = be_kernel_.get();
  std::deque<Ticket> queued;
  while (!stopping_.load()) {
    while (queued.size() < kBeInFlight) {
      Result<Ticket> ticket = be_.SubmitBe(task);
      if (!ticket.ok()) {
        if (!stopping_.load())
          std::fprintf(stderr, "BE work ends: %s\n", ticket.status().ToString().c_str());
        return;
      }
      queued.push_back(*std::move(ticket));
    }
    if (const Status status = queued.front().Wait(); !status.ok()) return;
    queued.pop_front();
    // In virtual time a task takes no time, and this loop would take a core.
    if (virtual_time_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

bool Service::IsHealthy() const {
  Result<RuntimeStats> stats = runtime_.Stats();
  return stats.ok() && stats->device_lost == 0;
}

bool Service::Shutdown() {
  stopping_.store(true);
  const bool whole = runtime_.Shutdown(runtime_.NowNs() + kShutdownNs).ok();
  if (be_feeder_.joinable()) be_feeder_.join();
  return whole;
}

}  // namespace gpushare::example
