// The C++ API of gpushare: header-only, C++17, over the C ABI in <gpushare/gpushare.h>.
//
// Call sequence
//    auto runtime = gpushare::Runtime::Create();            // a Result: check ok()
//    auto app = runtime->CreateApp(app_options);            // LC or BE
//    auto queue = app->CreateQueue();
//    auto kernel = runtime->RegisterKernel(kernel_options);
//    auto ticket = queue->SubmitLc(task_options);           // BE apps: SubmitBe
//    gpushare::Status status = ticket->Wait();
//    auto record = ticket->Record();                        // how the task ended
//
// - Errors. A call returns a Status, or a Result that holds a value or a Status. Only
//   Result::value() throws.
// - Handles. Runtime, App, Queue, Kernel, FusedKernel and EventLog count references: a copy
//   retains, a destructor releases.
// - Values. Ticket, Query and Region own one value each and can only be moved. Their destructors
//   release the ticket, end the query and end the region.
// - Options and results are the structs of the C ABI, with struct_size set by the constructor.
// - Threads, blocking and errors of a call are those of the C function that it calls, which
//   gpushare.h documents.
#ifndef GPUSHARE_GPUSHARE_HPP_
#define GPUSHARE_GPUSHARE_HPP_

#include <gpushare/gpushare.h>
#include <gpushare/gpushare_cost_model.h>
#include <gpushare/gpushare_policy.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace gpushare {

// --- status --------------------------------------------------------------------------------------

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(gpushare_status code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == GPUSHARE_OK; }
  gpushare_status code() const { return code_; }
  const std::string& message() const { return message_; }
  std::string ToString() const {
    return ok() ? "OK" : std::string(gpushare_status_name(code_)) + ": " + message_;
  }

  // The status of a C function that just returned `code` on this thread, with its message.
  static Status From(gpushare_status code) {
    return code == GPUSHARE_OK ? Status() : Status(code, gpushare_last_error_message());
  }

 private:
  gpushare_status code_ = GPUSHARE_OK;
  std::string message_;
};

// What Result::value() throws.
class Error : public std::runtime_error {
 public:
  explicit Error(const Status& status) : std::runtime_error(status.ToString()), status_(status) {}
  const Status& status() const { return status_; }

 private:
  Status status_;
};

// A value, or the Status that says why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}          // NOLINT: implicit by intent
  Result(Status status) : status_(std::move(status)) {}  // NOLINT: implicit by intent

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  // Throws Error if there is no value.
  T& value() & {
    if (!ok()) throw Error(status_);
    return *value_;
  }
  T&& value() && {
    if (!ok()) throw Error(status_);
    return *std::move(value_);
  }
  // Requires ok().
  T& operator*() & { return *value_; }
  T&& operator*() && { return *std::move(value_); }
  T* operator->() { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

// --- options and records -------------------------------------------------------------------------

// A struct of the C ABI whose constructor sets struct_size and zeroes every other field.
template <class Struct>
struct Sized : Struct {
  Sized() : Struct(gpushare_detail_init<Struct>()) {}
};
using RuntimeOptions = Sized<gpushare_runtime_options>;
using AppOptions = Sized<gpushare_app_options>;
using AppUpdateOptions = Sized<gpushare_app_update_options>;
using ReservationOptions = Sized<gpushare_reservation_options>;
using SimulationRecord = Sized<gpushare_simulation_record>;
using LibraryCall = Sized<gpushare_library_call>;
using KernelCounters = Sized<gpushare_kernel_counters>;
using KernelOptions = Sized<gpushare_kernel_options>;
using FusedKernelOptions = Sized<gpushare_fused_kernel_options>;
using TaskOptions = Sized<gpushare_task_options>;
using QueryOptions = Sized<gpushare_query_options>;
using RegionOptions = Sized<gpushare_region_options>;
using TraceOptions = Sized<gpushare_trace_options>;
using PolicyTable = Sized<gpushare_policy_table>;
using CostModelTable = Sized<gpushare_cost_model_table>;
using KernelInfo = Sized<gpushare_kernel_info>;
using CompletionRecord = Sized<gpushare_completion_record>;
using DeviceInfo = Sized<gpushare_device_info>;
using RuntimeStats = Sized<gpushare_runtime_stats>;
using AppStats = Sized<gpushare_app_stats>;
using AppGuarantee = Sized<gpushare_app_guarantee>;
using TraceSummary = Sized<gpushare_trace_summary>;
using Event = Sized<gpushare_event>;
using PreRunOptions = Sized<gpushare_pre_run_options>;

inline constexpr int64_t kNever = GPUSHARE_NEVER;

// The operands of a LIBRARY task, with alpha 1 and beta 0.
struct LibraryArguments : gpushare_library_arguments {
  LibraryArguments() : gpushare_library_arguments() { alpha = 1; }
};

// Enqueues a graph's work on a stream that is being captured, for a place of `sm_count` SMs. See
// gpushare_capture_callback.
using CaptureFunction = std::function<int32_t(void* stream, int32_t sm_count)>;

namespace detail {

// One reference of a C handle.
template <class Handle, gpushare_status (*kRetain)(Handle*) noexcept,
          gpushare_status (*kRelease)(Handle*) noexcept>
class Shared {
 public:
  Shared() = default;
  explicit Shared(Handle* owned) : handle_(owned) {}
  Shared(const Shared& other) : handle_(other.handle_) {
    if (handle_ != nullptr) static_cast<void>(kRetain(handle_));
  }
  Shared(Shared&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Shared& operator=(Shared other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Shared() {
    if (handle_ != nullptr) static_cast<void>(kRelease(handle_));
  }
  Handle* get() const { return handle_; }
  explicit operator bool() const { return handle_ != nullptr; }

  // Releases now. If the release fails, as for an app with tasks, the reference stays.
  Status Reset() {
    Status status = Status::From(kRelease(handle_));
    if (status.ok()) handle_ = nullptr;
    return status;
  }

 private:
  Handle* handle_ = nullptr;
};

template <class Text>
Result<std::string> ReadText(Text&& text) {
  size_t size = 0;
  std::string out;
  // The text may grow between the call for its size and the call for the text, so try a few times.
  for (int round = 0; round < 4; ++round) {
    const gpushare_status code = text(out.empty() ? nullptr : &out[0], out.size(), &size);
    if (code == GPUSHARE_OK && !out.empty()) {
      out.resize(size - 1);
      return out;
    }
    if (code != GPUSHARE_OK && code != GPUSHARE_OUT_OF_RANGE) return Status::From(code);
    out.assign(size + 64, '\0');
  }
  return Status(GPUSHARE_ABORTED, "The text grows faster than it is read.");
}

}  // namespace detail

// --- tickets, queries, regions -------------------------------------------------------------------

// Owns one ticket. Must not outlive its runtime.
class Ticket {
 public:
  Ticket() = default;
  Ticket(gpushare_runtime* runtime, gpushare_ticket ticket) : runtime_(runtime), ticket_(ticket) {}
  Ticket(Ticket&& other) noexcept
      : runtime_(other.runtime_), ticket_(std::exchange(other.ticket_, gpushare_ticket{0})) {}
  Ticket& operator=(Ticket&& other) noexcept {
    std::swap(runtime_, other.runtime_);
    std::swap(ticket_, other.ticket_);
    return *this;
  }
  ~Ticket() {
    if (ticket_.value != 0) static_cast<void>(gpushare_ticket_release(runtime_, ticket_));
  }

  gpushare_ticket get() const { return ticket_; }
  Status Wait(int64_t deadline_ns = kNever) const {
    return Status::From(gpushare_ticket_wait(runtime_, ticket_, deadline_ns));
  }
  Result<bool> IsComplete() const {
    gpushare_bool complete = 0;
    const gpushare_status code = gpushare_ticket_poll(runtime_, ticket_, &complete);
    if (code != GPUSHARE_OK) return Status::From(code);
    return complete == 1;
  }
  Result<CompletionRecord> Record() const {
    CompletionRecord record;
    const gpushare_status code = gpushare_ticket_record(runtime_, ticket_, &record);
    if (code != GPUSHARE_OK) return Status::From(code);
    return record;
  }
  Status Cancel() { return Status::From(gpushare_ticket_cancel(runtime_, ticket_)); }
  // Runs `function` once, when the task is complete; see gpushare_ticket_set_callback. It must not
  // throw.
  Status OnComplete(std::function<void(const gpushare_completion_record&)> function) {
    auto kept = std::make_unique<std::function<void(const gpushare_completion_record&)>>(
        std::move(function));
    const gpushare_status code = gpushare_ticket_set_callback(
        runtime_, ticket_,
        [](void* user, const gpushare_completion_record* record) {
          std::unique_ptr<std::function<void(const gpushare_completion_record&)>> taken(
              static_cast<std::function<void(const gpushare_completion_record&)>*>(user));
          (*taken)(*record);
        },
        kept.get());
    if (code == GPUSHARE_OK) static_cast<void>(kept.release());
    return Status::From(code);
  }
  // An eventfd that becomes readable at completion. The caller closes it.
  Result<int> EventFd() {
    int fd = -1;
    const gpushare_status code = gpushare_ticket_eventfd(runtime_, ticket_, &fd);
    if (code != GPUSHARE_OK) return Status::From(code);
    return fd;
  }

 private:
  gpushare_runtime* runtime_ = nullptr;
  gpushare_ticket ticket_ = {0};
};

// A query that has begun. The destructor ends it. Must not outlive its runtime.
class Query {
 public:
  Query(gpushare_runtime* runtime, gpushare_query query) : runtime_(runtime), query_(query) {}
  Query(Query&& other) noexcept
      : runtime_(other.runtime_), query_(std::exchange(other.query_, gpushare_query{0})) {}
  Query& operator=(Query&& other) noexcept {
    std::swap(runtime_, other.runtime_);
    std::swap(query_, other.query_);
    return *this;
  }
  ~Query() {
    if (query_.value != 0) static_cast<void>(gpushare_query_end(runtime_, query_));
  }
  gpushare_query get() const { return query_; }
  Status End() {
    return Status::From(gpushare_query_end(runtime_, std::exchange(query_, gpushare_query{0})));
  }

 private:
  gpushare_runtime* runtime_;
  gpushare_query query_;
};

// The tokens of one request (gpushare_token_stream_begin). The destructor ends it. Must not outlive
// its runtime.
class TokenStream {
 public:
  TokenStream(gpushare_runtime* runtime, gpushare_token_stream stream)
      : runtime_(runtime), stream_(stream) {}
  TokenStream(TokenStream&& other) noexcept
      : runtime_(other.runtime_), stream_(std::exchange(other.stream_, gpushare_token_stream{0})) {}
  TokenStream& operator=(TokenStream&& other) noexcept {
    std::swap(runtime_, other.runtime_);
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~TokenStream() {
    if (stream_.value != 0) static_cast<void>(gpushare_token_stream_end(runtime_, stream_));
  }
  gpushare_token_stream get() const { return stream_; }
  // The task of the ticket gives the stream a token. gpushare_token_stream_mark marks many at once.
  Status Mark(gpushare_ticket ticket) const {
    return Status::From(gpushare_token_stream_mark(runtime_, &stream_, 1, ticket));
  }
  Status End() {
    return Status::From(
        gpushare_token_stream_end(runtime_, std::exchange(stream_, gpushare_token_stream{0})));
  }

 private:
  gpushare_runtime* runtime_;
  gpushare_token_stream stream_;
};

// A region: enqueue work on stream(), then call End, which returns the ticket. The destructor ends
// it without giving the ticket. Must not outlive its runtime.
class Region {
 public:
  Region(gpushare_runtime* runtime, Ticket ticket, void* stream)
      : runtime_(runtime), ticket_(std::move(ticket)), stream_(stream) {}
  Region(Region&&) = default;
  Region& operator=(Region&&) = default;
  ~Region() {
    if (ticket_.get().value != 0) static_cast<void>(gpushare_region_end(runtime_, ticket_.get()));
  }
  void* stream() const { return stream_; }
  Result<Ticket> End() {
    const gpushare_status code = gpushare_region_end(runtime_, ticket_.get());
    if (code != GPUSHARE_OK) return Status::From(code);
    return std::move(ticket_);
  }

 private:
  gpushare_runtime* runtime_;
  Ticket ticket_;
  void* stream_;
};

// --- handles -------------------------------------------------------------------------------------

using KernelHandle =
    detail::Shared<gpushare_kernel, gpushare_kernel_retain, gpushare_kernel_release>;
class Kernel : public KernelHandle {
 public:
  using KernelHandle::KernelHandle;
  uint32_t id() const { return gpushare_kernel_id(get()); }
};

using FusedKernel = detail::Shared<gpushare_fused_kernel, gpushare_fused_kernel_retain,
                                   gpushare_fused_kernel_release>;
using RuntimeHandle =
    detail::Shared<gpushare_runtime, gpushare_runtime_retain, gpushare_runtime_release>;

using QueueHandle = detail::Shared<gpushare_queue, gpushare_queue_retain, gpushare_queue_release>;
class Queue : public QueueHandle {
 public:
  Queue() = default;
  Queue(RuntimeHandle runtime, gpushare_queue* owned)
      : QueueHandle(owned), runtime_(std::move(runtime)) {}

  Result<Ticket> SubmitLc(const gpushare_task_options& options) const {
    return Submit(gpushare_submit_lc, options);
  }
  Result<Ticket> SubmitBe(const gpushare_task_options& options) const {
    return Submit(gpushare_submit_be, options);
  }
  // Submits and waits in one call (gpushare_run_lc), and says how the task ended. A task that is
  // not complete at the deadline goes on. No ticket is left: use SubmitLc where the record is
  // wanted.
  Result<gpushare_verdict> RunLc(const gpushare_task_options& options,
                                 int64_t deadline_ns = kNever) const {
    gpushare_verdict verdict = GPUSHARE_VERDICT_PENDING;
    const gpushare_status code = gpushare_run_lc(get(), &options, deadline_ns, &verdict, nullptr);
    if (code != GPUSHARE_OK) return Status::From(code);
    return verdict;
  }
  // arrival_ns: when the request was meant to arrive; 0: now.
  // input_size: of the query's input, in any unit; 0: unknown (gpushare_query_options).
  Result<Query> BeginQuery(int64_t arrival_ns = 0, double input_size = 0) const {
    QueryOptions options;
    options.arrival_ns = arrival_ns;
    options.input_size = input_size;
    gpushare_query query = {0};
    const gpushare_status code = gpushare_query_begin_with(get(), &options, &query);
    if (code != GPUSHARE_OK) return Status::From(code);
    return Query(runtime_.get(), query);
  }
  Result<Region> BeginRegion(int64_t bound_ns = 0) const {
    RegionOptions options;
    options.bound_ns = bound_ns;
    return BeginRegion(options);
  }
  Result<Region> BeginRegion(const gpushare_region_options& options) const {
    gpushare_ticket ticket = {0};
    void* stream = nullptr;
    const gpushare_status code = gpushare_region_begin(get(), &options, &ticket, &stream);
    if (code != GPUSHARE_OK) return Status::From(code);
    return Region(runtime_.get(), Ticket(runtime_.get(), ticket), stream);
  }

 private:
  template <class Function>
  Result<Ticket> Submit(Function submit, const gpushare_task_options& options) const {
    gpushare_ticket ticket = {0};
    const gpushare_status code = submit(get(), &options, &ticket);
    if (code != GPUSHARE_OK) return Status::From(code);
    if (options.detached == 1) ticket.value = 0;
    return Ticket(runtime_.get(), ticket);
  }

  RuntimeHandle runtime_;
};

using AppHandle = detail::Shared<gpushare_app, gpushare_app_retain, gpushare_app_release>;
class App : public AppHandle {
 public:
  App() = default;
  App(RuntimeHandle runtime, gpushare_app* owned)
      : AppHandle(owned), runtime_(std::move(runtime)) {}

  uint32_t id() const { return gpushare_app_id(get()); }
  Result<Queue> CreateQueue() const {
    gpushare_queue* queue = nullptr;
    const gpushare_status code = gpushare_queue_create(get(), &queue);
    if (code != GPUSHARE_OK) return Status::From(code);
    return Queue(runtime_, queue);
  }
  // Changes what the app states; see gpushare_app_update.
  Status Update(const gpushare_app_update_options& options) const {
    return Status::From(gpushare_app_update(get(), &options));
  }
  Status ReserveCapSm(const gpushare_reservation_options& options) const {
    return Status::From(gpushare_reserve_capsm(get(), &options));
  }
  // arrival_ns: when the request arrived; 0: now.
  Result<TokenStream> BeginTokenStream(int64_t arrival_ns = 0) const {
    gpushare_token_stream stream = {0};
    const gpushare_status code = gpushare_token_stream_begin(get(), arrival_ns, &stream);
    if (code != GPUSHARE_OK) return Status::From(code);
    return TokenStream(runtime_.get(), stream);
  }
  // Ends open queries whose values are lost, and returns how many; see gpushare_query_abandon.
  Result<int32_t> AbandonQueries(int64_t idle_ns) const {
    int32_t count = 0;
    const gpushare_status code = gpushare_query_abandon(get(), idle_ns, &count);
    if (code != GPUSHARE_OK) return Status::From(code);
    return count;
  }
  Result<AppStats> Stats() const {
    AppStats stats;
    const gpushare_status code = gpushare_app_stats_get(get(), &stats);
    if (code != GPUSHARE_OK) return Status::From(code);
    return stats;
  }
  Result<AppGuarantee> Guarantee() const {
    AppGuarantee guarantee;
    const gpushare_status code = gpushare_app_guarantee_get(get(), &guarantee);
    if (code != GPUSHARE_OK) return Status::From(code);
    return guarantee;
  }

 private:
  RuntimeHandle runtime_;
};

class Runtime : public RuntimeHandle {
 public:
  using RuntimeHandle::RuntimeHandle;

  static Result<Runtime> Create(const gpushare_runtime_options& options = RuntimeOptions()) {
    gpushare_runtime* runtime = nullptr;
    const gpushare_status code = gpushare_runtime_create(&options, &runtime);
    if (code != GPUSHARE_OK) return Status::From(code);
    return Runtime(runtime);
  }

  Result<App> CreateApp(const gpushare_app_options& options) const {
    gpushare_app* app = nullptr;
    const gpushare_status code = gpushare_app_create(get(), &options, &app);
    if (code != GPUSHARE_OK) return Status::From(code);
    return App(*this, app);
  }
  // A partition for each periodic app; see gpushare_plan_partitions.
  Result<gpushare_partition_plan> PlanPartitions(const gpushare_partition_options& options) const {
    gpushare_partition_plan plan = GPUSHARE_PARTITION_PLAN_INIT;
    const gpushare_status code = gpushare_plan_partitions(get(), &options, &plan);
    if (code != GPUSHARE_OK) return Status::From(code);
    return plan;
  }
  Result<Kernel> RegisterKernel(const gpushare_kernel_options& options) const {
    gpushare_kernel* kernel = nullptr;
    const gpushare_status code = gpushare_kernel_register(get(), &options, &kernel);
    if (code != GPUSHARE_OK) return Status::From(code);
    return Kernel(kernel);
  }
  // Registers a kernel from its PTX: gpushare_kernel_register_ptx. An empty entry is the only one.
  Result<Kernel> RegisterPtx(const gpushare_kernel_options& options, const std::string& text,
                             const std::string& entry = "", uint32_t forms = 0) const {
    gpushare_ptx_code code = GPUSHARE_PTX_CODE_INIT;
    code.text = text.c_str();
    code.text_bytes = text.size();
    code.entry = entry.empty() ? nullptr : entry.c_str();
    code.forms = forms;
    gpushare_kernel* kernel = nullptr;
    const gpushare_status status = gpushare_kernel_register_ptx(get(), &options, &code, &kernel);
    if (status != GPUSHARE_OK) return Status::From(status);
    return Kernel(kernel);
  }
  // Registers the graph that `capture` enqueues. `capture` runs once for each place, before this
  // call returns. If it throws, the registration fails, and its message names the exception.
  Result<Kernel> RegisterGraph(gpushare_kernel_options options,
                               const CaptureFunction& capture) const {
    options.kind = GPUSHARE_TASK_GRAPH;
    options.capture = [](void* user, void* stream, int32_t sm_count) {
      return (*static_cast<const CaptureFunction*>(user))(stream, sm_count);
    };
    options.capture_user = const_cast<CaptureFunction*>(&capture);
    return RegisterKernel(options);
  }
  Result<FusedKernel> RegisterFusedKernel(const gpushare_fused_kernel_options& options) const {
    gpushare_fused_kernel* fused = nullptr;
    const gpushare_status code = gpushare_fused_kernel_register(get(), &options, &fused);
    if (code != GPUSHARE_OK) return Status::From(code);
    return FusedKernel(fused);
  }
  Result<KernelInfo> FindKernel(const std::string& name) const {
    KernelInfo info;
    const gpushare_status code = gpushare_kernel_info_by_name(get(), name.c_str(), &info);
    if (code != GPUSHARE_OK) return Status::From(code);
    return info;
  }

  Status Drain(int64_t deadline_ns = kNever) const {
    return Status::From(gpushare_runtime_drain(get(), deadline_ns));
  }
  Status Quiesce(int64_t deadline_ns = kNever) const {
    return Status::From(gpushare_runtime_quiesce(get(), deadline_ns));
  }
  Status Resume() const { return Status::From(gpushare_runtime_resume(get())); }
  Status Shutdown(int64_t deadline_ns = kNever) const {
    return Status::From(gpushare_runtime_shutdown(get(), deadline_ns));
  }
  Result<bool> Poll() const {
    gpushare_bool progress = 0;
    const gpushare_status code = gpushare_poll(get(), &progress);
    if (code != GPUSHARE_OK) return Status::From(code);
    return progress == 1;
  }
  Status PollUntil(int64_t time_ns) const {
    return Status::From(gpushare_poll_until(get(), time_ns));
  }
  // The device's clock; 0 for an invalid handle.
  int64_t NowNs() const {
    int64_t now_ns = 0;
    static_cast<void>(gpushare_now_ns(get(), &now_ns));
    return now_ns;
  }
  Status SetPolicy(const std::string& name) const {
    return Status::From(gpushare_set_policy(get(), name.c_str()));
  }
  Status SetPolicy(const gpushare_policy_table& table) const {
    return Status::From(gpushare_set_user_policy(get(), &table));
  }
  Status SetCostModel(const gpushare_cost_model_table& table) const {
    return Status::From(gpushare_set_user_cost_model(get(), &table));
  }
  // Back to the built-in model.
  Status ResetCostModel() const {
    return Status::From(gpushare_set_user_cost_model(get(), nullptr));
  }

  Result<DeviceInfo> Device() const {
    DeviceInfo info;
    const gpushare_status code = gpushare_device_info_get(get(), &info);
    if (code != GPUSHARE_OK) return Status::From(code);
    return info;
  }
  Result<RuntimeStats> Stats() const {
    RuntimeStats stats;
    const gpushare_status code = gpushare_runtime_stats_get(get(), &stats);
    if (code != GPUSHARE_OK) return Status::From(code);
    return stats;
  }
  Result<std::string> Metrics() const {
    return detail::ReadText([this](char* buffer, size_t size_bytes, size_t* out_size_bytes) {
      return gpushare_metrics_text(get(), buffer, size_bytes, out_size_bytes);
    });
  }
  Status StartTrace(const gpushare_trace_options& options) const {
    return Status::From(gpushare_trace_start(get(), &options));
  }
  Result<TraceSummary> StopTrace() const {
    TraceSummary summary;
    const gpushare_status code = gpushare_trace_stop(get(), &summary);
    if (code != GPUSHARE_OK) return Status::From(code);
    return summary;
  }
  Status LoadProfile(const std::string& path) const {
    return Status::From(gpushare_profile_load(get(), path.c_str()));
  }
  Status SaveProfile(const std::string& path) const {
    return Status::From(gpushare_profile_save(get(), path.c_str()));
  }
};

using EventLogHandle =
    detail::Shared<gpushare_event_log, gpushare_event_log_retain, gpushare_event_log_release>;
class EventLog : public EventLogHandle {
 public:
  static Result<EventLog> Open(const std::string& path) {
    gpushare_event_log* log = nullptr;
    int64_t count = 0;
    const gpushare_status code = gpushare_event_log_open(path.c_str(), &log, &count);
    if (code != GPUSHARE_OK) return Status::From(code);
    return EventLog(log, count);
  }
  int64_t size() const { return size_; }
  Result<Event> Get(int64_t index) const {
    Event event;
    const gpushare_status code = gpushare_event_log_get(get(), index, &event);
    if (code != GPUSHARE_OK) return Status::From(code);
    return event;
  }

 private:
  EventLog(gpushare_event_log* owned, int64_t size) : EventLogHandle(owned), size_(size) {}
  int64_t size_ = 0;
};

// Counts what a kernel does: for KernelOptions::counters. See gpushare_kernel_pre_run.
inline Result<KernelCounters> PreRun(const gpushare_pre_run_options& options) {
  KernelCounters counters;
  const gpushare_status code = gpushare_kernel_pre_run(&options, &counters);
  if (code != GPUSHARE_OK) return Status::From(code);
  return counters;
}

// The names of the policies, one a line.
inline Result<std::string> PolicyNames() { return detail::ReadText(gpushare_policy_names); }

}  // namespace gpushare

#endif  // GPUSHARE_GPUSHARE_HPP_
