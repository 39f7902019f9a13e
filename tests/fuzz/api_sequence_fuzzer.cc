// Fuzzes sequences of C API calls: bytes become a bounded program of calls with valid and invalid
// arguments on the simulated or the null device, polled. At the end everything is shut down and
// every accepted task must have completed exactly once, and no task that waited for another one may
// be OK unless that one is. Public headers only.

#include <gpushare/gpushare.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unordered_map>
#include <vector>

namespace {

constexpr int kCallsMax = 200;
constexpr int kTasksMax = 400;

void Require(bool condition, const char* what) {
  if (condition) return;
  std::fprintf(stderr, "api_sequence_fuzzer: %s; last error: %s\n", what,
               gpushare_last_error_message());
  std::abort();
}

// Reads the program; past its end every value is 0.
class Bytes {
 public:
  Bytes(const uint8_t* data, size_t size) : data_(data), size_(size) {}
  bool empty() const { return position_ >= size_; }
  uint8_t Next() { return empty() ? 0 : data_[position_++]; }
  int64_t Number() {
    static constexpr int64_t kEdges[] = {0,
                                         1,
                                         -1,
                                         7,
                                         1000,
                                         100000,
                                         int64_t{1} << 40,
                                         INT64_MAX,
                                         INT64_MIN,
                                         4096,
                                         4097,
                                         int64_t{1} << 42};
    return kEdges[Next() % (sizeof(kEdges) / sizeof(kEdges[0]))];
  }

 private:
  const uint8_t* data_;
  size_t size_;
  size_t position_ = 0;
};

// An accepted task, and how it ended.
struct Task {
  int calls = 0;  // of its callback
  std::vector<uint64_t> waits;
  gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
};

class Session {
 public:
  explicit Session(Bytes& bytes) : bytes_(bytes) {
    static const char* const kFaults[] = {nullptr,
                                          "launch_failure=2",
                                          "launch_error=3",
                                          "device_lost=4",
                                          "duplicated_completion=1",
                                          "blocked_eviction=1",
                                          "misprediction=p0.5"};
    static const char* const kPolicies[] = {"fifo", "priority", "baymax", "smguard", "adaptive"};
    gpushare_runtime_options options = GPUSHARE_RUNTIME_OPTIONS_INIT;
    options.device = bytes.Next() % 2 == 0 ? "sim" : "null";
    options.drive = GPUSHARE_DRIVE_POLL;
    options.policy = kPolicies[bytes.Next() % 5];
    options.sim_faults = kFaults[bytes.Next() % 7];
    options.hang_floor_ns = 1000000;
    Require(gpushare_runtime_create(&options, &runtime_) == GPUSHARE_OK, "no runtime");
    tasks_.resize(kTasksMax);
    for (int i = 0; i < 2; ++i) {
      gpushare_app_options app = GPUSHARE_APP_OPTIONS_INIT;
      app.app_class = i + 1;
      app.name = i == 0 ? "lc" : "be";
      app.tasks_max = 32;
      Require(gpushare_app_create(runtime_, &app, &apps_[i]) == GPUSHARE_OK, "no app");
      Require(gpushare_queue_create(apps_[i], &queues_[i]) == GPUSHARE_OK, "no queue");
      gpushare_kernel_options kernel = GPUSHARE_KERNEL_OPTIONS_INIT;
      kernel.name = i == 0 ? "chain1" : "sincos_27us";
      Require(gpushare_kernel_register(runtime_, &kernel, &kernels_[i]) == GPUSHARE_OK,
              "no kernel");
    }
  }

  // One call of the API. Longer than 70 lines, because it is one switch with a case for each call.
  void Call() {
    switch (bytes_.Next() % 20) {
      case 0:
      case 1:
      case 2:
        Submit(true);
        break;
      case 3:
      case 4:
      case 5:
        Submit(false);
        break;
      case 6:
        gpushare_poll(runtime_, nullptr);
        break;
      case 7:
        gpushare_poll_until(runtime_, Soon());
        break;
      case 8:
        gpushare_ticket_wait(runtime_, AnyTicket(), Soon());
        break;
      case 9:
        gpushare_ticket_cancel(runtime_, AnyTicket());
        break;
      case 10:
        gpushare_ticket_release(runtime_, AnyTicket());
        break;
      case 11: {
        gpushare_completion_record record = GPUSHARE_COMPLETION_RECORD_INIT;
        // Only smaller: no library can detect a size beyond the memory.
        if (bytes_.Next() % 8 == 0)
          record.struct_size = static_cast<uint32_t>(bytes_.Next() % sizeof(record));
        gpushare_ticket_record(runtime_, AnyTicket(), &record);
        break;
      }
      case 12:
        gpushare_query_begin(queues_[bytes_.Next() % 2], bytes_.Number(), &query_);
        break;
      case 13:
        gpushare_query_end(runtime_, query_);
        break;
      case 14: {
        gpushare_region_options options = GPUSHARE_REGION_OPTIONS_INIT;
        options.bound_ns = bytes_.Number();
        gpushare_ticket ticket = {0};
        void* stream = nullptr;
        if (gpushare_region_begin(queues_[bytes_.Next() % 2], &options, &ticket, &stream) ==
            GPUSHARE_OK) {
          tickets_.push_back(ticket);
        }
        break;
      }
      case 15: {
        int64_t room_ns = 0;
        gpushare_region_room(runtime_, &room_ns);
        gpushare_region_end(runtime_, AnyTicket());
        break;
      }
      case 16: {
        gpushare_reservation_options options = GPUSHARE_RESERVATION_OPTIONS_INIT;
        options.capsms = static_cast<int32_t>(bytes_.Next()) - 64;
        options.packed = bytes_.Next() % 3;
        gpushare_reserve_capsm(apps_[bytes_.Next() % 2], &options);
        break;
      }
      case 17:
        if (bytes_.Next() % 2 == 0) {
          gpushare_runtime_quiesce(runtime_, Soon());
        } else {
          gpushare_runtime_resume(runtime_);
        }
        break;
      case 18:
        BadHandles();
        break;
      default:
        AddCallback();
        break;
    }
  }

  void End() {
    int64_t now_ns = 0;
    Require(gpushare_now_ns(runtime_, &now_ns) == GPUSHARE_OK, "no clock");
    gpushare_runtime_shutdown(runtime_, now_ns + int64_t{60} * 1000 * 1000 * 1000);
    gpushare_runtime_stats stats = GPUSHARE_RUNTIME_STATS_INIT;
    Require(gpushare_runtime_stats_get(runtime_, &stats) == GPUSHARE_OK, "no stats");
    Require(stats.tasks_pending == 0, "a task is pending after shutdown");
    for (size_t i = 0; i < submitted_; ++i) CheckTask(tasks_[i]);
    Require(added_ == added_accepted_, "an added callback did not run exactly once");
    const gpushare_task_options none = GPUSHARE_TASK_OPTIONS_INIT;
    Require(gpushare_submit_be(queues_[1], &none, nullptr) != GPUSHARE_OK,
            "a submit after shutdown is accepted");
    for (int i = 0; i < 2; ++i) {
      Require(gpushare_kernel_release(kernels_[i]) == GPUSHARE_OK, "a kernel is not released");
      Require(gpushare_queue_release(queues_[i]) == GPUSHARE_OK, "a queue is not released");
      Require(gpushare_app_release(apps_[i]) == GPUSHARE_OK, "an app is not released");
    }
    Require(gpushare_runtime_release(runtime_) == GPUSHARE_OK, "the runtime is not released");
    Require(gpushare_now_ns(runtime_, &now_ns) == GPUSHARE_INVALID_ARGUMENT,
            "a released runtime answers");
  }

 private:
  static void OnComplete(void* user, const gpushare_completion_record* record) {
    Require(record->verdict != GPUSHARE_VERDICT_PENDING, "a callback has a pending record");
    auto* const task = static_cast<Task*>(user);
    ++task->calls;
    task->record = *record;
  }

  // The task ended once, in agreement with what it waited for.
  void CheckTask(const Task& task) const {
    Require(task.calls == 1, "a task did not complete exactly once");
    const gpushare_completion_record& record = task.record;
    bool named = record.failed_dependency.value == 0;
    for (const uint64_t ticket : task.waits) {
      const bool names_it = record.failed_dependency.value == ticket;
      named = named || names_it;
      const auto awaited = task_of_.find(ticket);
      if (awaited == task_of_.end()) continue;  // a region: it has no callback
      const gpushare_verdict verdict = tasks_[awaited->second].record.verdict;
      Require(verdict == GPUSHARE_VERDICT_OK ||
                  (record.verdict != GPUSHARE_VERDICT_OK && record.launches == 0),
              "a task ran and one that it waited for is not OK");
      Require(!names_it ||
                  (verdict != GPUSHARE_VERDICT_OK && record.failed_dependency_verdict == verdict),
              "a task failed for a verdict that its dependency does not have");
    }
    Require(named, "a task failed for a ticket that it did not wait for");
  }

  static void OnAdded(void* user, const gpushare_completion_record* record) {
    Require(record->verdict != GPUSHARE_VERDICT_PENDING, "a callback has a pending record");
    ++*static_cast<int*>(user);
  }

  int64_t Soon() {
    int64_t now_ns = 0;
    gpushare_now_ns(runtime_, &now_ns);
    return now_ns + static_cast<int64_t>(bytes_.Next()) * 1000;
  }

  gpushare_ticket AnyTicket() {
    const uint8_t choice = bytes_.Next();
    if (tickets_.empty() || choice % 16 == 15) return {static_cast<uint64_t>(bytes_.Number())};
    return tickets_[choice % tickets_.size()];
  }

  void Submit(bool lc) {
    if (submitted_ == kTasksMax) return;
    gpushare_task_options options = GPUSHARE_TASK_OPTIONS_INIT;
    const uint8_t flags = bytes_.Next();
    options.kernel = kernels_[lc ? 0 : 1];
    if (!lc) options.block_tasks = 1 + bytes_.Next();
    if (flags & 1) options.query = query_;
    if (flags & 2) options.detached = 1;
    const uint8_t waits = (flags & 4) != 0 ? bytes_.Next() : 0;
    gpushare_ticket awaited[4] = {};
    if (flags & 4) {
      options.wait_tickets = awaited;
      options.wait_ticket_count = 1 + waits % 4;
      for (uint32_t i = 0; i < options.wait_ticket_count; ++i) awaited[i] = AnyTicket();
    }
    if ((flags & 0x18) == 0x18) Spoil(options);
    options.callback = OnComplete;
    options.callback_user = &tasks_[submitted_];
    gpushare_ticket ticket = {0};
    const gpushare_status status =
        (lc != ((flags & 0x60) == 0x60))
            ? gpushare_submit_lc(queues_[lc ? 0 : 1], &options, (flags & 0x80) ? nullptr : &ticket)
            : gpushare_submit_be(queues_[lc ? 0 : 1], &options, (flags & 0x80) ? nullptr : &ticket);
    if (status != GPUSHARE_OK) {
      Require(std::strlen(gpushare_last_error_message()) > 0, "an error has no message");
      return;
    }
    Task& task = tasks_[submitted_];
    for (uint32_t i = 0; i < options.wait_ticket_count; ++i) task.waits.push_back(awaited[i].value);
    if (ticket.value != 0) {
      tickets_.push_back(ticket);
      task_of_[ticket.value] = submitted_;
    }
    ++submitted_;
    // The task must not notice that what it waits for is released early.
    if ((waits & 4) != 0) gpushare_ticket_release(runtime_, awaited[0]);
  }

  // One field out of order.
  void Spoil(gpushare_task_options& options) {
    switch (bytes_.Next() % 8) {
      case 0:
        options.struct_size = static_cast<uint32_t>(bytes_.Next() % sizeof(options));
        break;
      case 1:
        options.kind = static_cast<int32_t>(bytes_.Number());
        break;
      case 2:
        options.block_tasks = bytes_.Number();
        break;
      case 3:
        options.arguments_size_bytes = static_cast<uint64_t>(bytes_.Number());
        break;
      case 4:
        options.declared_ns = bytes_.Number();
        break;
      case 5:
        options.arrival_ns = bytes_.Number();
        break;
      case 6:
        options.kernel = reinterpret_cast<gpushare_kernel*>(queues_[0]);
        break;
      default:
        options.kind = GPUSHARE_TASK_MEMCPY;
        options.kernel = nullptr;
        options.block_tasks = 0;
        options.copy_direction = bytes_.Next() % 5;
        options.copy_size_bytes = bytes_.Next() * 1000;
        break;
    }
  }

  void BadHandles() {
    auto* const garbage = reinterpret_cast<gpushare_app*>(static_cast<uintptr_t>(bytes_.Number()));
    gpushare_queue* queue = nullptr;
    Require(gpushare_queue_create(garbage, &queue) != GPUSHARE_OK, "a garbage handle is taken");
    Require(
        gpushare_queue_create(reinterpret_cast<gpushare_app*>(queues_[0]), &queue) != GPUSHARE_OK,
        "a handle of another kind is taken");
    Require(gpushare_set_policy(runtime_, "no such policy") != GPUSHARE_OK,
            "an unknown policy is taken");
  }

  void AddCallback() {
    if (gpushare_ticket_set_callback(runtime_, AnyTicket(), OnAdded, &added_) == GPUSHARE_OK) {
      ++added_accepted_;
    }
  }

  Bytes& bytes_;
  gpushare_runtime* runtime_ = nullptr;
  gpushare_app* apps_[2] = {};
  gpushare_queue* queues_[2] = {};
  gpushare_kernel* kernels_[2] = {};
  gpushare_query query_ = {0};
  std::vector<gpushare_ticket> tickets_;
  std::vector<Task> tasks_;
  std::unordered_map<uint64_t, size_t> task_of_;  // by ticket
  size_t submitted_ = 0;
  int added_ = 0;
  int added_accepted_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Bytes bytes(data, size);
  Session session(bytes);
  for (int call = 0; call < kCallsMax && !bytes.empty(); ++call) session.Call();
  session.End();
  return 0;
}
