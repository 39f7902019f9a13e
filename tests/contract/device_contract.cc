// Launch requests, time and completions for the device contract suite.

#include "tests/contract/device_contract.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <thread>

namespace gpushare::contract {
namespace {

// A device that reports nothing for this long has lost a launch.
constexpr auto kPatience = std::chrono::seconds(20);

core::KernelDesc MakeKernel() {
  core::KernelDesc kernel;
  kernel.id = core::KernelId{1};
  kernel.name = "contract";
  kernel.resources.threads_per_block = 256;
  kernel.resources.registers_per_thread = 32;
  kernel.resources.workers_per_sm_max = 8;
  kernel.evictable = true;
  kernel.simulation.present = true;
  kernel.simulation.block_task_ns = 10'000;
  kernel.simulation.demand.special = 0.5;
  return kernel;
}

core::KernelDesc MakeGraph() {
  core::KernelDesc graph;
  graph.id = core::KernelId{2};
  graph.name = "contract_graph";
  graph.code = core::GraphCode();
  graph.simulation.present = true;
  graph.simulation.node_gap_ns = 500;
  graph.simulation.nodes = {
      {.duration_ns = 5'000, .blocks = 132, .repeat = 8, .whole_sm = true, .demand = {}}};
  return graph;
}

core::KernelDesc MakeLongGraph() {
  core::KernelDesc graph = MakeGraph();
  graph.id = core::KernelId{4};
  graph.name = "contract_long_graph";
  graph.simulation.nodes = {
      {.duration_ns = 50'000, .blocks = 132, .repeat = 40, .whole_sm = true, .demand = {}}};
  graph.solo_hint_ns = 40 * 50'000;
  graph.graph()->segment_ns = 200'000;
  return graph;
}

core::KernelDesc MakePartner() {
  core::KernelDesc partner = MakeKernel();
  partner.id = core::KernelId{3};
  partner.name = "contract_partner";
  return partner;
}

core::FusedKernelDesc MakeFused() {
  core::FusedKernelDesc fused;
  fused.id = core::KernelId{1};
  fused.name = "contract_pair";
  fused.tensor_part = core::KernelId{1};
  fused.cuda_part = core::KernelId{3};
  fused.tensor_blocks = 1;
  fused.cuda_blocks = 2;
  fused.opportune_load_ratio = 0.8;
  fused.opportune_duration_ratio = 1.2;
  return fused;
}

}  // namespace

void DeviceContract::SetUp() {
  device_ = GetParam().make().value();
  kernel_ = MakeKernel();
  graph_ = MakeGraph();
  if (GetParam().fill_kernels) GetParam().fill_kernels(kernel_, graph_);
  ASSERT_TRUE(device_->PrepareKernel(kernel_).ok());
  ASSERT_TRUE(device_->PrepareKernel(graph_).ok());
  long_graph_ = MakeLongGraph();
  if (GetParam().fill_long_graph) GetParam().fill_long_graph(long_graph_);
  ASSERT_TRUE(device_->PrepareKernel(long_graph_).ok());
  long_graph_.graph()->cut = device_->CutOf(long_graph_);
  partner_ = MakePartner();
  fused_ = MakeFused();
  if (GetParam().fill_fused) GetParam().fill_fused(partner_, fused_);
  ASSERT_TRUE(device_->PrepareKernel(partner_).ok());
  const absl::Status status = device_->PrepareFusedKernel(fused_);
  ASSERT_TRUE(status.ok()) << status;
}

core::LaneIndex DeviceContract::MakeLane(core::PlaceIndex place, bool evictable) {
  const auto lane = device_->CreateLane(
      {.place = place, .priority = core::LanePriority::kNormal, .evictable = evictable});
  EXPECT_TRUE(lane.ok()) << lane.status();
  return lane.ok() ? *lane : core::kNoLane;
}

std::vector<core::LaneIndex> DeviceContract::MakeLanes(int count) {
  std::vector<core::LaneIndex> lanes(static_cast<size_t>(count));
  for (core::LaneIndex& lane : lanes) lane = MakeLane();
  return lanes;
}

core::PlaceIndex DeviceContract::MakePlace(int32_t first_group, int32_t groups,
                                           bool with_remainder) {
  const absl::Status status = device_->CreatePlace(
      ++places_, {.first_group = first_group, .groups = groups, .with_remainder = with_remainder});
  EXPECT_TRUE(status.ok()) << status;
  return status.ok() ? places_ : core::kNoPlace;
}

core::LaunchRequest DeviceContract::Original(core::LaneIndex lane, int64_t blocks) {
  core::LaunchRequest request;
  request.parts[0].launch = NewLaunch();
  request.parts[0].lane = lane;
  request.form = core::Form::kOriginal;
  request.parts[0].work.kernel = &kernel_;
  request.parts[0].block_count = blocks;
  request.parts[0].work.arguments = GetParam().arguments.data();
  request.parts[0].work.arguments_bytes = static_cast<uint32_t>(GetParam().arguments.size());
  return request;
}

core::LaunchRequest DeviceContract::Slice(core::LaneIndex lane, int64_t begin, int64_t blocks) {
  core::LaunchRequest request = Original(lane, blocks);
  request.form = core::Form::kSlice;
  request.block_begin = begin;
  return request;
}

core::LaunchRequest DeviceContract::Workers(core::LaneIndex lane, int64_t blocks, int32_t counter,
                                            bool reset, uint64_t epoch, int32_t workers) {
  core::LaunchRequest request = Original(lane, blocks);
  request.form = core::Form::kWorkers;
  request.parts[0].counter = counter;
  request.parts[0].reset_counter = reset;
  request.parts[0].epoch = epoch;
  request.workers = workers;
  return request;
}

core::LaunchRequest DeviceContract::Fused(core::LaneIndex lane, int64_t blocks,
                                          core::LaneIndex partner_lane, int64_t partner_blocks) {
  core::LaunchRequest request = Workers(lane, blocks, 0, true, 1);
  request.form = core::Form::kFused;
  request.fused = &fused_;
  core::LaunchPart& second = request.parts.Add();
  second.launch = NewLaunch();
  second.lane = partner_lane;
  second.work.kernel = &partner_;
  second.block_count = partner_blocks;
  second.counter = 1;
  second.reset_counter = true;
  second.epoch = 1;
  second.work.arguments = request.parts[0].work.arguments;
  second.work.arguments_bytes = request.parts[0].work.arguments_bytes;
  return request;
}

core::LaunchRequest DeviceContract::Copy(core::LaneIndex lane, core::CopyDirection direction,
                                         int64_t bytes) {
  core::LaunchRequest request;
  request.parts[0].launch = NewLaunch();
  request.parts[0].lane = lane;
  request.form = core::Form::kMemcpy;
  request.parts[0].work.copy.direction = direction;
  request.parts[0].work.copy.bytes = bytes;
  SetBuffers(request);
  return request;
}

void DeviceContract::SetBuffers(core::LaunchRequest& request) const {
  if (request.parts[0].work.copy.direction == core::CopyDirection::kPeer) {
    auto* const first = static_cast<std::byte*>(GetParam().device_memory);
    request.parts[0].work.copy.source = first;
    request.parts[0].work.copy.destination = first == nullptr ? nullptr : first + kCopyBytesMax / 2;
    return;
  }
  void* const host = request.parts[0].work.copy.pinned ? GetParam().pinned : GetParam().pageable;
  const bool to_device = request.parts[0].work.copy.direction == core::CopyDirection::kHostToDevice;
  request.parts[0].work.copy.destination = to_device ? GetParam().device_memory : host;
  request.parts[0].work.copy.source = to_device ? host : GetParam().device_memory;
}

core::LaunchRequest DeviceContract::Graph(core::LaneIndex lane) {
  core::LaunchRequest request;
  request.parts[0].launch = NewLaunch();
  request.parts[0].lane = lane;
  request.form = core::Form::kGraph;
  request.parts[0].work.kernel = &graph_;
  return request;
}

core::LaunchRequest DeviceContract::Segments(core::LaneIndex lane, int32_t counter, bool reset,
                                             uint64_t epoch) {
  core::LaunchRequest request = Graph(lane);
  request.form = core::Form::kSegments;
  request.parts[0].work.kernel = &long_graph_;
  request.parts[0].block_count = long_graph_.segments();
  request.parts[0].counter = counter;
  request.parts[0].reset_counter = reset;
  request.parts[0].epoch = epoch;
  return request;
}

core::LaunchId DeviceContract::Launch(const core::LaunchRequest& request) {
  const absl::Status status = device_->Launch(request);
  EXPECT_TRUE(status.ok()) << status;
  if (status.ok()) launched_ += request.form == core::Form::kFused ? 2 : 1;
  return request.parts[0].launch;
}

void DeviceContract::Poll() {
  // Small on purpose: completions that do not fit must remain for the next call.
  std::array<core::DeviceCompletion, 7> out;
  while (const size_t count = device_->PollCompletions(absl::MakeSpan(out))) {
    ASSERT_LE(count, out.size());
    for (size_t i = 0; i < count; ++i) {
      const bool is_new = reported_.emplace(out[i].launch.value, completions_.size()).second;
      EXPECT_TRUE(is_new) << "launch " << out[i].launch.value << " was reported twice";
      completions_.push_back(out[i]);
    }
  }
}

void DeviceContract::WaitUntilTime(core::TimeNs time) {
  while (device_->NowNs() < time) {
    Poll();
    if (capabilities().virtual_time) {
      device_->AdvanceTo(std::min(time, device_->NextEventNs()));
    } else {
      std::this_thread::yield();
    }
  }
  Poll();
}

void DeviceContract::WaitForCount(size_t count) {
  const auto give_up = std::chrono::steady_clock::now() + kPatience;
  for (Poll(); completions_.size() < count; Poll()) {
    if (capabilities().virtual_time) {
      const core::TimeNs next = device_->NextEventNs();
      ASSERT_NE(next, core::kNever)
          << "the device is idle after " << completions_.size() << " of " << count << " launches";
      device_->AdvanceTo(next);
    } else {
      ASSERT_LT(std::chrono::steady_clock::now(), give_up)
          << "the device reported " << completions_.size() << " of " << count << " launches";
      std::this_thread::yield();
    }
  }
}

void DeviceContract::WaitForAll(size_t count) {
  WaitForCount(count);
  if (testing::Test::HasFatalFailure()) return;
  // A duplicate report would arrive now.
  if (capabilities().virtual_time) {
    while (device_->NextEventNs() != core::kNever) {
      device_->AdvanceTo(device_->NextEventNs());
      Poll();
    }
  } else {
    WaitUntilTime(device_->NowNs() + 1'000'000);
  }
  EXPECT_EQ(completions_.size(), count);
}

const core::DeviceCompletion& DeviceContract::Of(core::LaunchId launch) const {
  static const core::DeviceCompletion kNone;
  const auto found = reported_.find(launch.value);
  EXPECT_NE(found, reported_.end()) << "launch " << launch.value << " was never reported";
  return found == reported_.end() ? kNone : completions_[found->second];
}

int64_t DeviceContract::DurationOf(core::LaneIndex lane, int64_t blocks) {
  const core::LaunchId launch = Launch(Original(lane, blocks));
  WaitForCount(launched_);
  const core::DeviceCompletion& completion = Of(launch);
  return completion.end_ns - completion.start_ns;
}

}  // namespace gpushare::contract
