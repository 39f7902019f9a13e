// What the tables accept, how much of it, and which handles they know.

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "src/core/base/ids.h"
#include "src/core/state/tables.h"

namespace gpushare::core {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

AppOptions Options(int32_t tasks_max = 4) {
  AppOptions options = {.name = "app", .tasks_max = tasks_max};
  return options;
}

KernelDesc Kernel(const std::string& name) {
  KernelDesc kernel;
  kernel.name = name;
  return kernel;
}

bool Accepts(const AppOptions& options) {
  Tables tables;
  return tables.CreateApp(options).ok();
}

// The field lies between `least` and `most`.
template <class Value>
void ExpectLimits(Value& (*field)(AppOptions&), const std::vector<Value>& within,
                  const std::vector<Value>& beyond) {
  AppOptions options = Options();
  for (const Value& value : within) {
    field(options) = value;
    EXPECT_TRUE(Accepts(options)) << value;
  }
  for (const Value& value : beyond) {
    field(options) = value;
    EXPECT_FALSE(Accepts(options)) << value;
  }
}

TEST(TablesTest, AnAppsOptionsHaveLimits) {
  ExpectLimits<std::string>([](AppOptions& o) -> std::string& { return o.name; },
                            {"a", std::string(kMaxNameBytes - 1, 'a')},
                            {"", std::string(kMaxNameBytes, 'a')});
  using Duration = int64_t& (*)(AppOptions&);
  for (const Duration field :
       {Duration([](AppOptions& o) -> int64_t& { return o.promise.target_ns; }),
        Duration([](AppOptions& o) -> int64_t& { return o.promise.p99_alone_ns; }),
        Duration([](AppOptions& o) -> int64_t& { return o.solo_ns; })}) {
    ExpectLimits<int64_t>(field, {0, 1, kMaxDurationNs}, {-1, kMaxDurationNs + 1});
  }
  ExpectLimits<double>([](AppOptions& o) -> double& { return o.promise.p99_bound; }, {0, 1, 1000},
                       {-1, 0.999, 1000.001, kInfinity, std::nan("")});
  ExpectLimits<double>([](AppOptions& o) -> double& { return o.weight; }, {1e-300, 1, 1e6},
                       {0, -1, 1.000001e6, kInfinity, std::nan("")});
  ExpectLimits<int32_t>([](AppOptions& o) -> int32_t& { return o.tasks_max; }, {1, kMaxTasksPerApp},
                        {0, -1, kMaxTasksPerApp + 1});
}

TEST(TablesTest, ARefusalNamesTheValueAndTheLimit) {
  Tables tables;
  const auto refusal = [&](const AppOptions& options) {
    return std::string(tables.CreateApp(options).status().message());
  };
  AppOptions options = Options();
  options.name = std::string(70, 'a');
  EXPECT_EQ(refusal(options), "The app name has 70 bytes, and the limit is 63.");
  options.name = "";
  EXPECT_EQ(refusal(options), "The app has no name.");
  options = Options();
  options.promise.target_ns = -5;
  EXPECT_EQ(refusal(options),
            "The latency target of 'app' is -5 ns, and it must lie between 0 and 3600000000000 "
            "ns.");
  options = Options();
  options.promise.p99_bound = 0.5;
  EXPECT_EQ(refusal(options),
            "The p99 bound of app 'app' is 0.5, and it must be 0 (none) or lie between 1 and "
            "1000.");
  options = Options();
  options.weight = 0;
  EXPECT_EQ(refusal(options),
            "The weight of app 'app' is 0, and it must be positive and at most 1e6.");
  EXPECT_EQ(refusal(Options(0)), "App 'app' asks for 0 task slots, and it may have 1 to 16384.");
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(tables.CreateApp(Options(kMaxTasksPerApp - 1)).ok());
  EXPECT_EQ(refusal(Options(5)), "App 'app' asks for 5 task slots, and 4 of 65536 are left.");
}

TEST(TablesTest, AppsAreBoundedAndTheirSlotsComeBack) {
  Tables tables;
  std::vector<App*> apps;
  for (int i = 0; i < kMaxApps; ++i) apps.push_back(*tables.CreateApp(Options()));
  EXPECT_EQ(tables.CreateApp(Options()).status().code(), absl::StatusCode::kResourceExhausted);
  const AppId released{apps[7]->id.load()};
  ASSERT_TRUE(tables.CloseApp(*apps[7]).ok());
  EXPECT_FALSE(tables.CloseApp(*apps[7]).ok()) << "released twice";
  tables.FreeApp(*apps[7]);
  App* const next = *tables.CreateApp(Options());
  EXPECT_EQ(next, apps[7]);
  EXPECT_NE(next->id.load(), released.value);
  EXPECT_EQ(tables.FindApp(released), nullptr);
  EXPECT_EQ(tables.FindApp(AppId{next->id.load()}), next);
  EXPECT_EQ(tables.FindApp(AppId{}), nullptr);
  EXPECT_EQ(tables.FindApp(AppId{PackSmall(kMaxApps, 1)}), nullptr);
}

TEST(TablesTest, TheTaskSlotsOfAllAppsAreBoundedAndComeBack) {
  Tables tables;
  App* last = nullptr;
  for (int i = 0; i < kMaxTasks / kMaxTasksPerApp; ++i) {
    last = *tables.CreateApp(Options(kMaxTasksPerApp));
  }
  EXPECT_EQ(tables.CreateApp(Options(1)).status().code(), absl::StatusCode::kResourceExhausted);
  ASSERT_TRUE(tables.CloseApp(*last).ok());
  tables.FreeApp(*last);
  EXPECT_EQ(*tables.CreateApp(Options(kMaxTasksPerApp - 1)), last);
  EXPECT_TRUE(tables.CreateApp(Options(1)).ok());
  EXPECT_FALSE(tables.CreateApp(Options(1)).ok());
}

// As by a plan that must see that an app or a kernel came or went.
TEST(TablesTest, TheVersionChangesWithAppsAndKernels) {
  Tables tables;
  uint64_t before = tables.version();
  const auto expect_change = [&](const char* what) {
    EXPECT_NE(tables.version(), before) << what;
    before = tables.version();
  };
  App& app = **tables.CreateApp(Options());
  expect_change("an app came");
  ASSERT_TRUE(tables.StageKernel(Kernel("work")).ok());
  EXPECT_EQ(tables.version(), before);
  tables.PublishKernel();
  expect_change("a kernel came");
  ASSERT_TRUE(tables.CloseApp(app).ok());
  tables.FreeApp(app);
  expect_change("an app went");
}

// What an app left would otherwise be the next one's share. Its evidence begins with LearnApp.
TEST(TablesTest, AnAppOnAReusedSlotStartsAtNothing) {
  Tables tables;
  App& app = **tables.CreateApp(Options());
  app.route.store(7);
  app.active_queries.store(7);
  app.plan_index = app.tasks_in_flight = app.queries_waiting = 7;
  app.packed = true;
  app.depth_logged = 7;
  app.reserved_capsms = 7;
  QueryState query;
  app.first_query = app.last_query = &query;
  for (ResourceUse& use : app.uses) use = {7, 7, 7, 7, 7};
  for (auto* counter :
       {&app.submitted, &app.completed, &app.failed, &app.dropped, &app.cancelled, &app.rejected,
        &app.evictions, &app.device_ns, &app.work_ns, &app.block_tasks}) {
    counter->store(7);
  }
  app.latency.Add(7);
  ASSERT_TRUE(tables.CloseApp(app).ok());
  tables.FreeApp(app);
  ASSERT_EQ(*tables.CreateApp(Options()), &app);
  const App fresh;
  EXPECT_EQ(app.route.load(), fresh.route.load());
  EXPECT_EQ(app.active_queries.load(), 0);
  EXPECT_EQ(app.plan_index, App::kNoIndex);
  EXPECT_EQ(app.tasks_in_flight, 0);
  EXPECT_EQ(app.queries_waiting, 0);
  EXPECT_FALSE(app.packed);
  for (const ResourceUse& use : app.uses) {
    EXPECT_EQ(use.queues + use.tasks, 0);
    EXPECT_EQ(use.attained_ns, 0);
    EXPECT_EQ(use.on_device_ns, 0);
    EXPECT_EQ(use.served_ns, 0);
  }
  EXPECT_EQ(app.first_query, nullptr);
  EXPECT_EQ(app.last_query, nullptr);
  EXPECT_EQ(app.depth_logged, fresh.depth_logged);
  EXPECT_EQ(app.reserved_capsms, 0);
  for (const auto* counter :
       {&app.submitted, &app.completed, &app.failed, &app.dropped, &app.cancelled, &app.rejected,
        &app.evictions, &app.device_ns, &app.work_ns, &app.block_tasks}) {
    EXPECT_EQ(counter->load(), 0);
  }
  EXPECT_EQ(app.latency.Count(), 0);
}

TEST(TablesTest, QueuesAreBoundedAndTheirSlotsComeBack) {
  Tables tables;
  App& app = **tables.CreateApp(Options());
  std::vector<Queue*> queues;
  for (int i = 0; i < kMaxQueues; ++i) queues.push_back(*tables.CreateQueue(app));
  EXPECT_EQ(tables.CreateQueue(app).status().code(), absl::StatusCode::kResourceExhausted);
  Queue& queue = *queues[7];
  const QueueId released{queue.id.load()};
  queue.tasks_open.store(1);
  EXPECT_EQ(tables.FreeQueue(queue).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(queue.open.load()) << "it goes on";
  EXPECT_EQ(tables.FindQueue(released), &queue);
  queue.tasks_open.store(0);
  queue.in_flight.store(7);
  queue.unlaunched.store(7);
  queue.lane.store(7);
  queue.backlog_index = 7;
  ASSERT_TRUE(tables.FreeQueue(queue).ok());
  EXPECT_FALSE(queue.open.load());
  EXPECT_EQ(tables.FindQueue(released), nullptr);
  ASSERT_EQ(*tables.CreateQueue(app), &queue);
  EXPECT_TRUE(queue.open.load());
  EXPECT_NE(queue.id.load(), released.value);
  EXPECT_EQ(tables.FindQueue(released), nullptr);
  EXPECT_EQ(tables.FindQueue(QueueId{queue.id.load()}), &queue);
  EXPECT_EQ(queue.in_flight.load(), 0);
  EXPECT_EQ(queue.unlaunched.load(), 0);
  EXPECT_EQ(queue.lane.load(), kNoLane);
  EXPECT_EQ(queue.backlog_index, -1);
  EXPECT_EQ(tables.FindQueue(QueueId{}), nullptr);
}

TEST(TablesTest, AnAppThatGoesTakesAllOfItsQueuesAndNoOther) {
  Tables tables;
  App& app = **tables.CreateApp(Options());
  App& other = **tables.CreateApp(Options());
  std::vector<QueueId> gone;
  std::vector<QueueId> left;
  for (int i = 0; i < 3; ++i) {
    gone.push_back(QueueId{(*tables.CreateQueue(app))->id.load()});
    left.push_back(QueueId{(*tables.CreateQueue(other))->id.load()});
  }
  Queue& first = *tables.FindQueue(gone[0]);
  ASSERT_TRUE(tables.CloseApp(app).ok());
  tables.FreeApp(app);
  EXPECT_FALSE(first.open.load());
  for (const QueueId id : gone) EXPECT_EQ(tables.FindQueue(id), nullptr);
  for (const QueueId id : left) {
    ASSERT_NE(tables.FindQueue(id), nullptr);
    EXPECT_TRUE(tables.FindQueue(id)->open.load());
  }
}

TEST(TablesTest, AKernelIsFoundOncePublishedAndADroppedOneNever) {
  Tables tables;
  const KernelId dropped = (*tables.StageKernel(Kernel("dropped")))->id;
  EXPECT_EQ(tables.FindKernel(dropped), nullptr);
  tables.DropStagedKernel();
  EXPECT_EQ(tables.FindKernel(dropped), nullptr);
  const KernelDesc* const kernel = *tables.StageKernel(Kernel("kept"));
  tables.PublishKernel();
  EXPECT_EQ(tables.FindKernel(kernel->id), kernel);
  EXPECT_EQ(tables.FindKernel(KernelId{}), nullptr);
  EXPECT_EQ(tables.FindKernel(KernelId{kernel->id.value + 1}), nullptr);
}

TEST(TablesTest, KernelsAreBounded) {
  Tables tables;
  for (int i = 0; i < kMaxKernels; ++i) {
    ASSERT_TRUE(tables.StageKernel(Kernel("work")).ok()) << i;
    tables.PublishKernel();
  }
  EXPECT_EQ(tables.StageKernel(Kernel("work")).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_NE(tables.FindKernel(KernelId{kMaxKernels}), nullptr);
}

class FusedTablesTest : public ::testing::Test {
 protected:
  FusedTablesTest() {
    for (const char* name : {"tensor", "cuda", "other"}) {
      kernels_.push_back(*tables_.StageKernel(Kernel(name)));
      tables_.PublishKernel();
    }
    desc_.name = "pair";
    desc_.tensor_part = kernels_[0]->id;
    desc_.cuda_part = kernels_[1]->id;
  }
  template <class Value>
  void ExpectLimits(Value FusedKernelDesc::*field, const std::vector<Value>& within,
                    const std::vector<Value>& beyond) {
    FusedKernelDesc desc = desc_;
    for (const Value& value : within) {
      desc.*field = value;
      EXPECT_TRUE(tables_.CheckFusedKernel(desc).ok()) << value;
    }
    for (const Value& value : beyond) {
      desc.*field = value;
      EXPECT_FALSE(tables_.CheckFusedKernel(desc).ok()) << value;
    }
  }

  Tables tables_;
  std::vector<const KernelDesc*> kernels_;
  FusedKernelDesc desc_;
};

TEST_F(FusedTablesTest, AFusedKernelHasLimits) {
  ExpectLimits<std::string>(&FusedKernelDesc::name, {"a", std::string(kMaxNameBytes - 1, 'a')},
                            {"", std::string(kMaxNameBytes, 'a')});
  ExpectLimits<int32_t>(&FusedKernelDesc::tensor_blocks, {1, 32}, {0, -1, 33});
  ExpectLimits<int32_t>(&FusedKernelDesc::cuda_blocks, {1, 32}, {0, -1, 33});
  ExpectLimits<int32_t>(&FusedKernelDesc::threads_per_block, {0, kMaxThreadsPerBlock},
                        {-1, kMaxThreadsPerBlock + 1});
  ExpectLimits<int32_t>(&FusedKernelDesc::dynamic_shared_memory_bytes, {0, kMaxFusedSharedBytes},
                        {-1, kMaxFusedSharedBytes + 1});
  ExpectLimits<int32_t>(&FusedKernelDesc::blocks_per_sm, {0, kMaxFusedBlocksPerSm},
                        {-1, kMaxFusedBlocksPerSm + 1});
  for (KernelId FusedKernelDesc::*const part :
       {&FusedKernelDesc::tensor_part, &FusedKernelDesc::cuda_part}) {
    FusedKernelDesc desc = desc_;
    for (const KernelId id : {KernelId{}, KernelId{4}}) {
      desc.*part = id;
      EXPECT_FALSE(tables_.CheckFusedKernel(desc).ok()) << "kernel " << id.value;
    }
  }
}

TEST_F(FusedTablesTest, ARefusalNamesTheValueAndTheLimit) {
  const auto refusal = [&](const FusedKernelDesc& desc) {
    return std::string(tables_.CheckFusedKernel(desc).message());
  };
  FusedKernelDesc desc = desc_;
  desc.cuda_blocks = 33;
  EXPECT_EQ(refusal(desc),
            "Fused kernel 'pair' has the ratio 1:33, and each side has 1 to 32 blocks.");
  desc = desc_;
  desc.blocks_per_sm = 65;
  EXPECT_EQ(refusal(desc),
            "Fused kernel 'pair' has 65 fused blocks an SM, and 0 to 64 are allowed.");
  desc = desc_;
  desc.cuda_part = KernelId{};
  EXPECT_EQ(refusal(desc), "Fused kernel 'pair' names a part that is not registered.");
}

TEST_F(FusedTablesTest, APairIsFoundWhicheverOfItsKernelsIsNamedFirst) {
  EXPECT_EQ(tables_.FindFused(*kernels_[0], *kernels_[1]), nullptr);
  const KernelId next = *tables_.TakeFusedPlace("pair");
  const FusedKernelDesc* const fused = *tables_.AddFusedKernel(desc_);
  EXPECT_EQ(fused->id, next);
  EXPECT_NE(*tables_.TakeFusedPlace("pair"), next);
  EXPECT_EQ(tables_.FindFused(*kernels_[0], *kernels_[1]), fused);
  EXPECT_EQ(tables_.FindFused(*kernels_[1], *kernels_[0]), fused);
  for (const KernelDesc* kernel : kernels_) {
    EXPECT_EQ(tables_.FindFused(*kernel, *kernel), nullptr);
    if (kernel == kernels_[2]) continue;
    EXPECT_EQ(tables_.FindFused(*kernel, *kernels_[2]), nullptr);
    EXPECT_EQ(tables_.FindFused(*kernels_[2], *kernel), nullptr);
  }
}

TEST_F(FusedTablesTest, AVariantOfAPairIsFoundByItsId) {
  const FusedKernelDesc* const first = *tables_.AddFusedKernel(desc_);
  const FusedKernelDesc* const second = *tables_.AddFusedKernel(desc_);
  EXPECT_EQ(tables_.FindFused(*kernels_[0], *kernels_[1]), first);
  EXPECT_EQ(tables_.FindFused(*kernels_[1], *kernels_[0], second->id), second);
  EXPECT_EQ(tables_.FindFused(*kernels_[0], *kernels_[1], KernelId{3}), nullptr);
  EXPECT_EQ(tables_.FindFused(*kernels_[0], *kernels_[2], second->id), nullptr);
}

TEST_F(FusedTablesTest, FusedKernelsAreBounded) {
  for (int i = 0; i < kMaxKernels; ++i) ASSERT_TRUE(tables_.AddFusedKernel(desc_).ok()) << i;
  EXPECT_EQ(tables_.AddFusedKernel(desc_).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(FusedTablesTest, ARetiredFusedKernelLeavesItsPlaceToAnother) {
  const KernelId first = (*tables_.AddFusedKernel(desc_))->id;
  desc_.name = "other";
  const KernelId second = (*tables_.AddFusedKernel(desc_))->id;
  EXPECT_EQ((*tables_.TakeFusedPlace("pair", true)).value, 3u) << "nobody has released it";
  tables_.RetireFusedKernel(first);
  tables_.RetireFusedKernel(second);
  EXPECT_EQ((*tables_.TakeFusedPlace("new", true)).value, 3u) << "there is room for a third";
  EXPECT_NE(tables_.FindFused(*kernels_[0], *kernels_[1], first), nullptr) << "it stays in use";
  desc_.id = *tables_.TakeFusedPlace("other", true);
  EXPECT_EQ(desc_.id, second);
  EXPECT_EQ(tables_.FindFused(*kernels_[0], *kernels_[1], second), nullptr) << "it is replaced";
  EXPECT_EQ((*tables_.AddFusedKernel(desc_))->id, second);
  EXPECT_EQ((*tables_.TakeFusedPlace("other", true)).value, 3u) << "it is not retired";
  desc_.id = KernelId();
  desc_.name = "one of many";
  for (int i = 2; i < kMaxKernels; ++i) ASSERT_TRUE(tables_.AddFusedKernel(desc_).ok()) << i;
  EXPECT_EQ(*tables_.TakeFusedPlace("new", true), first);
  EXPECT_EQ(tables_.fused_count(), kMaxKernels);
}

class SlotsTest : public ::testing::Test {
 protected:
  // A task as an accepted one: the caller has its ticket, the flow its task.
  TicketId Accept() {
    Task* const task = tables_.AllocateTask(app_);
    if (task == nullptr) return TicketId{};
    task->slot_word.fetch_add(kHeldByCaller | kHeldByFlow);
    return Tables::TicketOf(*task);
  }

  Tables tables_;
  App& app_ = **tables_.CreateApp(Options());
};

TEST_F(SlotsTest, AnAppHasAsManyTaskSlotsAsItAskedFor) {
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(Accept()) << i;
  EXPECT_FALSE(Accept());
}

// Pages of the app's task slots that are in memory.
int64_t PagesOf(const App& app) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t bytes = static_cast<size_t>(app.task_capacity.load()) * sizeof(Task);
  std::vector<unsigned char> resident((bytes + page - 1) / page);
  EXPECT_EQ(::mincore(app.tasks.load(), bytes, resident.data()), 0);
  return std::count_if(resident.begin(), resident.end(), [](auto here) { return (here & 1) != 0; });
}

TEST_F(SlotsTest, ATaskSlotTakesMemoryWithItsFirstTask) {
  App& app = **tables_.CreateApp(Options(kMaxTasksPerApp));
  EXPECT_EQ(PagesOf(app), 0);
  for (int i = 0; i < 10; ++i) ASSERT_NE(tables_.AllocateTask(app), nullptr);
  EXPECT_LE(PagesOf(app), static_cast<int64_t>(10 * sizeof(Task) / 4096 + 1));
  ASSERT_TRUE(tables_.CloseApp(app).ok());
  tables_.FreeApp(app);
  EXPECT_LE(PagesOf(app), static_cast<int64_t>(10 * sizeof(Task) / 4096 + 1)) << "no slot more";
}

TEST_F(SlotsTest, ASlotIsFreeOnceTheCallerTheFlowAndEveryWaiterHaveLeftIt) {
  const TicketId ticket = Accept();
  while (Accept()) {
  }
  Task& task = *tables_.FindTask(ticket);
  ASSERT_TRUE(tables_.HoldForWaiter(ticket));
  ASSERT_TRUE(tables_.HoldForWaiter(ticket));
  EXPECT_EQ(tables_.SlotsAwaited(app_), 1);
  EXPECT_TRUE(tables_.ReleaseTicket(ticket));
  EXPECT_FALSE(tables_.ReleaseTicket(ticket)) << "released twice";
  EXPECT_EQ(tables_.FindTicket(ticket), nullptr) << "callers do not see it any more";
  EXPECT_FALSE(tables_.HoldForWaiter(ticket));
  tables_.DropWaiter(ticket);
  tables_.DropFinished(task);
  EXPECT_EQ(tables_.FindTask(ticket), &task) << "one waits for it";
  EXPECT_FALSE(Accept());
  tables_.DropWaiter(ticket);
  EXPECT_EQ(tables_.SlotsAwaited(app_), 0);
  EXPECT_EQ(tables_.FindTask(ticket), nullptr);
  EXPECT_FALSE(Tables::IsSlotOf(task, ticket));
  EXPECT_TRUE(Accept());
}

TEST_F(SlotsTest, TicketsThatNameNoSlotAreStale) {
  const TicketId ticket = Accept();
  const SlotAddress address = UnpackSlot(ticket.value);
  EXPECT_NE(tables_.FindTask(ticket), nullptr);
  for (const TicketId bad :
       {TicketId{}, TicketId{ticket.value | uint64_t{1} << 60}, TicketId{ticket.value & ~0xffffull},
        TicketId{PackSlot({address.owner + 1, address.slot, address.generation})},
        TicketId{PackSlot({address.owner, 4, address.generation})},
        TicketId{PackSlot({address.owner, address.slot, address.generation + 1})}}) {
    EXPECT_EQ(tables_.FindTask(bad), nullptr) << bad.value;
    EXPECT_EQ(tables_.FindTicket(bad), nullptr) << bad.value;
    EXPECT_FALSE(tables_.HoldForWaiter(bad)) << bad.value;
    EXPECT_FALSE(tables_.ReleaseTicket(bad)) << bad.value;
  }
}

TEST_F(SlotsTest, TicketsOfAnAppThatWentAreStale) {
  const TicketId ticket = Accept();
  ASSERT_TRUE(tables_.CloseApp(app_).ok());
  tables_.FreeApp(app_);
  EXPECT_EQ(tables_.FindTask(ticket), nullptr);
  EXPECT_FALSE(tables_.ReleaseTicket(ticket));
  ASSERT_EQ(*tables_.CreateApp(Options()), &app_);
  EXPECT_EQ(tables_.FindTask(ticket), nullptr);
  EXPECT_FALSE(tables_.ReleaseTicket(ticket));
}

// The larger app's records are others, and its tickets are not those of the smaller one.
TEST_F(SlotsTest, ALargerAppOnTheSlotOfASmallerOneKnowsNoneOfItsTickets) {
  std::vector<TicketId> tickets;
  for (int i = 0; i < 4; ++i) tickets.push_back(Accept());
  ASSERT_TRUE(tables_.CloseApp(app_).ok());
  tables_.FreeApp(app_);
  ASSERT_EQ(*tables_.CreateApp(Options(16)), &app_);
  for (int i = 0; i < 16; ++i) ASSERT_TRUE(Accept()) << i;
  EXPECT_FALSE(Accept());
  for (const TicketId ticket : tickets) EXPECT_EQ(tables_.FindTask(ticket), nullptr);
}

// Arrays of smaller apps stay for stale tickets: few, however often an app comes with one slot
// more.
TEST_F(SlotsTest, AnAppThatGrowsOneSlotAtATimeLeavesFewArrays) {
  for (int32_t slots = 5; slots < 300; ++slots) {
    ASSERT_TRUE(tables_.CloseApp(app_).ok());
    tables_.FreeApp(app_);
    ASSERT_EQ(*tables_.CreateApp(Options(slots)), &app_);
    int32_t accepted = 0;
    while (Accept()) ++accepted;
    EXPECT_EQ(accepted, slots);
  }
  EXPECT_LE(app_.task_arrays.size(), 8u);
}

TEST_F(SlotsTest, QueriesOfOneAppTakeNoneOfAnother) {
  Queue& queue = **tables_.CreateQueue(app_);
  while (tables_.AllocateQuery(queue, 0).ok()) {
  }
  App& other = **tables_.CreateApp(Options());
  Queue& other_queue = **tables_.CreateQueue(other);
  for (int i = 0; i < other.options.tasks_max; ++i) {
    EXPECT_TRUE(tables_.AllocateQuery(other_queue, 0).ok()) << i;
  }
}

// The query of a graph in pieces: no call of the application may end it.
TEST_F(SlotsTest, AQueryOfTheLibrarysOwnIsNotOpenAndIsBoundedAlike) {
  Queue& queue = **tables_.CreateQueue(app_);
  for (int i = 0; i < app_.options.tasks_max; ++i) {
    QuerySlot* const slot = tables_.TryAllocateQuery(queue, 7, 2);
    ASSERT_NE(slot, nullptr) << i;
    EXPECT_FALSE(slot->open.load());
    EXPECT_EQ(slot->state.arrival_ns, 7);
    EXPECT_EQ(tables_.FindQuery(slot->state.id), slot);
  }
  EXPECT_EQ(tables_.TryAllocateQuery(queue, 0, 0), nullptr);
  EXPECT_EQ(app_.queries_open.load(), app_.options.tasks_max);
}

TEST_F(SlotsTest, QueriesAreBoundedAndAFreeOneIsStale) {
  Queue& queue = **tables_.CreateQueue(app_);
  const QueryId first = *tables_.AllocateQuery(queue, 7);
  EXPECT_EQ(queue.tasks_open.load(), 1);
  QuerySlot& slot = *tables_.FindQuery(first);
  EXPECT_TRUE(slot.open.load());
  EXPECT_EQ(slot.queue, &queue);
  EXPECT_EQ(slot.state.app, &app_);
  EXPECT_EQ(slot.state.arrival_ns, 7);
  EXPECT_EQ(slot.state.id, first);
  const int most = app_.options.tasks_max;
  for (int i = 1; i < most; ++i) {
    ASSERT_TRUE(tables_.AllocateQuery(queue, 0).ok()) << i;
  }
  EXPECT_EQ(tables_.AllocateQuery(queue, 0).status().code(), absl::StatusCode::kResourceExhausted);
  tables_.FreeQuery(slot);
  EXPECT_EQ(queue.tasks_open.load(), most - 1);
  EXPECT_EQ(tables_.FindQuery(first), nullptr);
  slot.tasks_submitted.store(7);
  const QueryId next = *tables_.AllocateQuery(queue, 0);
  EXPECT_NE(next, first);
  EXPECT_EQ(tables_.FindQuery(next), &slot);
  EXPECT_EQ(slot.tasks_submitted.load(), 0);
  EXPECT_EQ(tables_.FindQuery(first), nullptr);
  for (const QueryId bad :
       {QueryId{}, QueryId{next.value | uint64_t{1} << 60}, QueryId{next.value & ~0xffffull},
        QueryId{PackSlot({0, kMaxExplicitQueries, 1})}}) {
    EXPECT_EQ(tables_.FindQuery(bad), nullptr) << bad.value;
  }
}

}  // namespace
}  // namespace gpushare::core
