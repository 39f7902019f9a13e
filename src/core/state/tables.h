// The tables of the flow: apps, queues, kernels, queries and their task slots.
//
// Registration takes the registry's mutex and may allocate; look-ups by handle are lock-free and
// answer null for a handle that is stale, foreign or released. Arrays are made once and reused, so
// a look-up never reads freed memory. Threads: any.

#ifndef GPUSHARE_SRC_CORE_STATE_TABLES_H_
#define GPUSHARE_SRC_CORE_STATE_TABLES_H_

#include <array>
#include <atomic>
#include <bitset>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "src/core/base/containers/paged_array.h"
#include "src/core/base/limits.h"
#include "src/core/base/mutex.h"
#include "src/core/base/types.h"
#include "src/core/seams/kernel.h"
#include "src/core/state/launches/graph_use.h"
#include "src/core/state/task.h"

namespace gpushare::core {

class Tables {
 public:
  Tables();

  // --- registration ------------------------------------------------------------------------------
  absl::StatusOr<App*> CreateApp(const AppOptions& options);
  // Under the lock of Tick, because plans read the options.
  absl::Status UpdateApp(App& app, const AppUpdate& update);
  // Closes the app to submits and waits until no submitter is inside (a submit never blocks).
  absl::Status CloseApp(App& app);
  // Waits until no thread drops a hold of its slots.
  void FreeApp(App& app);
  void ReopenApp(App& app) { app.open.store(true); }
  absl::StatusOr<Queue*> CreateQueue(App& app);
  absl::Status FreeQueue(Queue& queue);
  // Adds a kernel with its identifier that no look-up finds yet. The device prepares it; then it is
  // published, or dropped if the device refuses it. The caller adds one kernel at a time. `reuse`:
  // it may take the place of a retired one that no task, and no fused kernel, uses: of its own
  // name, or when there is no other. Call it then between two Ticks.
  absl::StatusOr<KernelDesc*> StageKernel(KernelDesc desc, bool reuse = false);
  // Whose place the staged kernel takes; null: of none.
  const KernelDesc* StagedOver() const;
  void PublishKernel();
  void DropStagedKernel();
  // What queries may run instead of the published graph, of which no task was submitted yet.
  void SetPieces(KernelId graph, std::vector<GraphPiece> pieces);
  // Its last handle is gone, so that no task of it is submitted any more.
  void RetireKernel(KernelId id);
  // Whether its slot waits for another kernel.
  bool IsRetired(KernelId id) const;
  // Slots that no kernel has, and those that wait for another one.
  int KernelSlotsLeft() const;
  absl::Status CheckFusedKernel(const FusedKernelDesc& desc) const;
  // By one caller at a time. The identifier of a place for a fused kernel of that name: with
  // `reuse`, of a retired one that no launch runs, as StageKernel does; nobody finds that one any
  // more. Call it then between two Ticks. RESOURCE_EXHAUSTED: there is none.
  absl::StatusOr<KernelId> TakeFusedPlace(const std::string& name, bool reuse = false);
  // On the place that desc.id names, or without an identifier on a new one.
  absl::StatusOr<FusedKernelDesc*> AddFusedKernel(FusedKernelDesc desc);
  // Its last handle is gone. It stays in use until its place, or that of a part, is taken.
  void RetireFusedKernel(KernelId id);
  // Whether it is registered, and so are both of its parts: none of them is retired.
  bool HasItsParts(const FusedKernelDesc& fused) const;

  // --- look-ups ----------------------------------------------------------------------------------
  App* FindApp(AppId id) const;
  Queue* FindQueue(QueueId id) const;
  const KernelDesc* FindKernel(KernelId id) const;
  GraphUse& UseOf(KernelId graph) { return graph_use_[graph.value - 1]; }
  const GraphUse& UseOf(KernelId graph) const { return graph_use_[graph.value - 1]; }
  // The fused kernel of these two parts; without an id the first one. Null: they have none, or none
  // with this id.
  const FusedKernelDesc* FindFused(const KernelDesc& a, const KernelDesc& b,
                                   KernelId id = {}) const;
  // In the order of registration.
  int fused_count() const { return fused_count_.load(std::memory_order_acquire); }
  const FusedKernelDesc& fused(int index) const { return *fused_[static_cast<size_t>(index)]; }
  // The task as long as anybody holds its slot.
  Task* FindTask(TicketId ticket) const;
  // The same for callers: null from the release of the ticket on.
  Task* FindTicket(TicketId ticket) const;
  QuerySlot* FindQuery(QueryId id) const;

  // --- slots -------------------------------------------------------------------------------------
  static TicketId TicketOf(const Task& task);
  Task* AllocateTask(App& app);  // null when the app has no free slot
  // Whether the slot is still that of the ticket. False: it was freed, so its task was complete.
  static bool IsSlotOf(const Task& task, TicketId ticket);
  // Holders. The slot is free when none is left. False: the ticket is stale.
  bool HoldForWaiter(TicketId ticket);
  void DropWaiter(TicketId ticket);
  bool ReleaseTicket(TicketId ticket);
  void DropFinished(Task& task);  // by the flow
  // Slots of the app whose tickets tasks wait for.
  int SlotsAwaited(const App& app) const;
  // RESOURCE_EXHAUSTED: the app has as many open queries as task slots.
  absl::StatusOr<QueryId> AllocateQuery(Queue& queue, TimeNs arrival_ns, double input_size = 0);
  // The same for a query whose end no caller may ask for: it is not open. Null: there is no slot.
  QuerySlot* TryAllocateQuery(Queue& queue, TimeNs arrival_ns, double input_size);
  void FreeQuery(QuerySlot& slot);
  // Slots that a query ever had, the first ones.
  int query_slots_used() const { return query_slots_used_.load(std::memory_order_acquire); }
  QuerySlot& query_slot(int index) { return queries_[static_cast<size_t>(index)]; }
  int32_t RegionsOpen(const App& app) const;

  App& app_slot(int slot) { return *apps_[static_cast<size_t>(slot)]; }
  int app_slots() const { return app_count_.load(std::memory_order_acquire); }
  int queue_slots() const { return queue_count_.load(std::memory_order_acquire); }
  int kernels() const { return kernel_count_.load(std::memory_order_acquire); }
  // Changes when an app or kernel came or went.
  uint64_t version() const { return version_.load(std::memory_order_acquire); }

 private:
  // The app on the slot that the ticket names, whether or not it exists; null: no such slot.
  App* AppOf(TicketId ticket) const;
  // The slot that the kernel gets; kMaxKernels: none is free.
  int KernelSlotFor(const std::string& name, bool reuse) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsUsed(const KernelDesc& kernel) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsRetired(const FusedKernelDesc& fused) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return retired_fused_.test(fused.id.value - 1);
  }
  // Whether a launch runs it. Only the flow launches fused kernels.
  bool IsLaunched(const FusedKernelDesc& fused) const;
  // Whether `uses` is true of a task that the flow holds.
  template <class Uses>
  bool AnyHeld(const Uses& uses) const;
  // By a thread inside the app, or by the flow: apps come and go between its ticks.
  static void FreeSlot(Task& task);

  mutable Mutex mutex_;
  std::array<std::unique_ptr<App>, kMaxApps> apps_;
  std::array<std::unique_ptr<Queue>, kMaxQueues> queues_;
  std::array<std::unique_ptr<KernelDesc>, kMaxKernels> kernels_;
  std::unique_ptr<KernelDesc> staged_;
  std::bitset<kMaxKernels> retired_ ABSL_GUARDED_BY(mutex_);
  std::array<GraphUse, kMaxKernels> graph_use_{};
  std::array<std::unique_ptr<FusedKernelDesc>, kMaxKernels> fused_;
  std::bitset<kMaxKernels> retired_fused_ ABSL_GUARDED_BY(mutex_);
  PagedArray<QuerySlot> queries_;  // all zero bytes: a slot that no query ever had
  SlotStack free_queries_;
  std::atomic<int32_t> query_slots_used_{0};
  std::atomic<int> app_count_{0};
  std::atomic<int> queue_count_{0};
  std::atomic<int> kernel_count_{0};
  std::atomic<int> fused_count_{0};
  std::atomic<uint64_t> version_{1};
  int task_slots_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace gpushare::core

#endif  // GPUSHARE_SRC_CORE_STATE_TABLES_H_
