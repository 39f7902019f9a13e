#include "examples/servers/model/lc_model.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace gpushare::example {
namespace {

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

App MakeApp(const Runtime& runtime, const LcModelOptions& model) {
  AppOptions options;
  options.name = model.name.c_str();
  options.app_class = GPUSHARE_CLASS_LATENCY_CRITICAL;
  options.p99_bound = model.p99_bound;
  options.target_ns = model.target_ns;
  options.tasks_max = std::max(1024, 4 * model.queries_max);
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

}  // namespace

LcModel::LcModel(const Runtime& runtime, const LcModelOptions& options)
    : runtime_(runtime),
      work_(MakeWork(runtime)),
      graph_(work_->RegisterModel(runtime, options.name.c_str(), options.graph_ns)),
      app_(MakeApp(runtime, options)),
      queue_(app_.CreateQueue().value()) {
  simulated_ = work_->input() == nullptr;  // known once the model is registered
  const int count = options.queries_max;
  auto* memory =
      static_cast<uint16_t*>(work_->HostMemory(static_cast<size_t>(2 * count * kCopyBytes)));
  for (int i = 0; i < 2 * count; i += 2) {
    free_slots_.push_back({memory + i * kValues, memory + (i + 1) * kValues});
  }
}

LcModel::Pending LcModel::Begin(const std::vector<float>& values) {
  Pending pending;
  {
    const std::lock_guard<std::mutex> lock(slots_mutex_);
    if (free_slots_.empty()) {
      pending.status = Status(GPUSHARE_RESOURCE_EXHAUSTED, "The queue of the service is full.");
      return pending;
    }
    pending.slot = free_slots_.back();
    free_slots_.pop_back();
  }
  std::transform(values.begin(), values.end(), pending.slot.input, ToBf16);
  pending.arrival_ns = runtime_.NowNs();
  pending.tickets.reserve(3);
  pending.status = Submit(pending.slot, pending.tickets);
  return pending;
}

Answer LcModel::Finish(const Pending& pending) {
  Answer answer = Wait(pending);
  if (pending.slot.input == nullptr) return answer;
  const std::lock_guard<std::mutex> lock(slots_mutex_);
  free_slots_.push_back(pending.slot);
  return answer;
}

Answer LcModel::Wait(const Pending& pending) const {
  Answer answer;
  answer.status = pending.status;
  // The last one first, so that this thread wakes once. All of them, also after a failed submit:
  // until they are complete the slot is in use.
  for (auto ticket = pending.tickets.rbegin(); ticket != pending.tickets.rend(); ++ticket) {
    Status waited = ticket->Wait();
    const CompletionRecord record = waited.ok() ? ticket->Record().value() : CompletionRecord();
    answer.query_ns = std::max(answer.query_ns, record.complete_ns - pending.arrival_ns);
    if (waited.ok() && record.verdict != GPUSHARE_VERDICT_OK) {
      waited = Status(GPUSHARE_ABORTED, std::string("The query ends with the verdict ") +
                                            gpushare_verdict_name(record.verdict) + ".");
    }
    if (answer.status.ok()) answer.status = waited;
  }
  if (!answer.status.ok()) return answer;
  answer.output.resize(kValues);
  for (int i = 0; i < kValues; ++i) {
    // A simulated device computes nothing, so the host does.
    const int from = (i + kValues - work_->Shift()) % kValues;
    answer.output[static_cast<size_t>(i)] =
        FromBf16(simulated_ ? pending.slot.input[from] : pending.slot.output[i]);
  }
  return answer;
}

// The tasks of two queries must not mix, since the model's buffers on the device are one.
Status LcModel::Submit(const Slot& slot, std::vector<Ticket>& tickets) {
  TaskOptions run;
  run.kernel = graph_.get();
  TaskOptions steps[] = {Copy(work_->input(), slot.input, GPUSHARE_COPY_HOST_TO_DEVICE), run,
                         Copy(slot.output, work_->output(), GPUSHARE_COPY_DEVICE_TO_HOST)};
  const std::lock_guard<std::mutex> lock(order_);
  Result<Query> query = queue_.BeginQuery();
  if (!query.ok()) return query.status();
  for (TaskOptions& step : steps) {
    step.query = query->get();
    Result<Ticket> ticket = queue_.SubmitLc(step);
    if (!ticket.ok()) return ticket.status();
    tickets.push_back(*std::move(ticket));
  }
  return query->End();
}

}  // namespace gpushare::example
