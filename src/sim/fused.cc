// Fused launches: from a request to two parts that share blocks, and which blocks start where.
//
// Tacker's two-stage model, equations 5 and 6 as docs/errata.md corrects them. While both parts of
// a block work, each has its pace together; the part that remains has its pace alone
// (fused_pace.h). Alone on the device a fused launch takes what its curve in the profile says.

#include <algorithm>

#include "src/sim/engine.h"

namespace gpushare::sim {

void Engine::FillFused(int32_t slot, const core::LaunchRequest& request) {
  const int32_t other = AllocateSlot();
  Launch& first = launches_[slot];
  Launch& second = launches_[other];
  const uint32_t generation = second.generation;
  second = Launch();
  second.generation = generation;
  second.phase = LaunchPhase::kQueued;
  second.id = request.parts[1].launch;
  second.form = core::Form::kFused;
  second.lane = request.parts[1].lane;
  second.priority = first.priority;
  second.place = first.place;
  second.kernel = Find(request.parts[1].work.kernel);
  second.hung = first.hung;
  second.slowness = first.slowness;
  core::LaunchRequest alone;
  alone.form = core::Form::kFused;
  alone.parts[0] = request.parts[1];
  FillTasks(other, alone);
  second.is_second_part = true;
  first.partner = other;
  second.partner = slot;
  first.stream_lane = second.stream_lane = first.lane;
  ShapeFused(first, second, request);
}

// One fused block needs what the blocks of both parts need together.
Engine::FusedShape Engine::ShapeOf(const core::FusedKernelDesc& fused, const PreparedKernel& tensor,
                                   const PreparedKernel& cuda) const {
  const int64_t tensor_blocks = std::max(1, fused.tensor_blocks);
  const int64_t cuda_blocks = std::max(1, fused.cuda_blocks);
  FusedShape shape;
  BlockNeeds& needs = shape.needs;
  needs.threads = tensor.needs.threads * tensor_blocks + cuda.needs.threads * cuda_blocks;
  needs.registers = tensor.needs.registers * tensor_blocks + cuda.needs.registers * cuda_blocks;
  needs.shared_memory_bytes = tensor.needs.shared_memory_bytes * tensor_blocks +
                              cuda.needs.shared_memory_bytes * cuda_blocks;
  needs.whole_sm = tensor.needs.whole_sm || cuda.needs.whole_sm;
  const int64_t fits = sms_.FitsEmptySm(needs);
  if (fits == 0) needs = {0, 0, 0, true};
  const int64_t most = std::max<int64_t>(1, tensor.workers_per_sm / tensor_blocks);
  shape.blocks_per_sm = static_cast<int32_t>(std::clamp<int64_t>(fits, 1, most));
  return shape;
}

void Engine::PrepareFused(core::FusedKernelDesc& fused) {
  if (fused.id.value < fused_paces_.size()) fused_paces_[fused.id.value] = sim::PaceOf(fused);
  const PreparedKernel* tensor = nullptr;
  const PreparedKernel* cuda = nullptr;
  for (const auto& kernel : kernels_) {
    if (kernel->desc.id == fused.tensor_part) tensor = kernel.get();
    if (kernel->desc.id == fused.cuda_part) cuda = kernel.get();
  }
  if (fused.blocks_per_sm != 0) return;
  const bool known = tensor != nullptr && cuda != nullptr;
  fused.blocks_per_sm = known ? ShapeOf(fused, *tensor, *cuda).blocks_per_sm : 1;
}

// Sets what one fused block needs, how many blocks there are, and how much the parts slow each
// other.
void Engine::ShapeFused(Launch& first, Launch& second, const core::LaunchRequest& request) {
  const core::FusedKernelDesc& fused = *request.fused;
  const bool swapped = !core::FirstIsTensorPart(request);
  first.per_block = std::max(1, swapped ? fused.cuda_blocks : fused.tensor_blocks);
  second.per_block = std::max(1, swapped ? fused.tensor_blocks : fused.cuda_blocks);
  const bool prepared = fused.id.value < fused_paces_.size() && fused_paces_[fused.id.value];
  const FusedPace pace = prepared ? *fused_paces_[fused.id.value] : sim::PaceOf(fused);
  first.fused_pace = swapped ? pace.cuda : pace.tensor;
  second.fused_pace = swapped ? pace.tensor : pace.cuda;
  const FusedShape shape = swapped ? ShapeOf(fused, *second.kernel, *first.kernel)
                                   : ShapeOf(fused, *first.kernel, *second.kernel);
  first.needs = shape.needs;
  int64_t fits = shape.blocks_per_sm;
  if (fused.blocks_per_sm > 0) fits = std::min<int64_t>(fits, fused.blocks_per_sm);
  const int64_t holds = fits * first.place->sms;
  const int64_t asked = request.workers > 0 ? std::min<int64_t>(request.workers, holds) : holds;
  first.fused_left = asked;
  for (Launch* part : {&first, &second}) {
    part->workers_per_sm = static_cast<int32_t>(fits * part->per_block);
    part->workers_wanted = asked * part->per_block;
  }
}

void Engine::FusedIsReady(int32_t slot) {
  Launch& first = launches_[slot];
  const int32_t other = first.partner;
  if (other != -1) launches_[other].phase = LaunchPhase::kResident;
  if (first.fails && !first.hung) {
    EndLaunch(slot, core::Outcome::kFailed, kFaultNativeCode);
    if (other != -1) EndLaunch(other, core::Outcome::kFailed, kFaultNativeCode);
    return;
  }
  ApplyEvictionWord(first);
  MakePending(slot);  // PlaceFused also applies the second part's word
}

// Whether this part of a fused launch can use one more fused block.
bool Engine::CanStart(const Launch& launch) const {
  return launch.workers_resident < launch.workers_wanted && pools_[launch.pool].available() > 0;
}

// Starts both parts of `blocks` fused blocks. The first part that can start holds their room.
void Engine::StartFusedBlocks(int32_t slot, int32_t cell, int64_t blocks) {
  Launch& first = launches_[slot];
  int64_t room = blocks;
  int32_t peer = -1;
  for (const int32_t part : {slot, first.partner}) {
    if (part == -1) continue;
    Launch& launch = launches_[part];
    if (!CanStart(launch)) continue;
    const int64_t workers =
        std::min({blocks * launch.per_block, launch.workers_wanted - launch.workers_resident,
                  pools_[launch.pool].available()});
    Residency& residency = AddResidency(part, cell, first.needs, room, workers);
    const auto index = static_cast<int32_t>(&residency - residencies_.data());
    StartTasks(part, residency, workers);
    if (launch.start_ns == core::kNever) launch.start_ns = now_;
    if (peer != -1) {
      residency.peer = peer;
      residencies_[peer].peer = index;
    }
    peer = index;
    room = 0;
  }
}

// Like PlaceTasks, in fused blocks. The first part waits for room for both parts. When it has
// nothing left to start, the second part continues with the blocks that it has.
bool Engine::PlaceFused(int32_t slot) {
  Launch& first = launches_[slot];
  const int32_t other = first.partner;
  bool second_starts = false;
  if (other != -1) {
    Launch& second = launches_[other];
    ApplyEvictionWord(second);
    second_starts = CanStart(second);
  }
  const bool starts = CanStart(first) || (second_starts && !first.fused_started);
  auto room_in = [&](const Cell& cell) -> int64_t {
    if (!Overtakes(first, cell)) return 0;
    for (int32_t r = cell.first_residency; r != -1; r = residencies_[r].next_in_cell) {
      const int32_t there = residencies_[r].launch;
      if (there == slot || there == other) return 0;
    }
    return std::min(sms_.Fits(cell, first.needs),
                    int64_t{first.workers_per_sm} / first.per_block * cell.sms);
  };
  int64_t left = starts ? first.fused_left : 0;
  // Spread the blocks over the cells; the first cells take the rest of the division.
  int64_t sms_left = first.place->sms;
  for (int32_t pass = 0; pass < 2 && left > 0; ++pass) {
    for (const Place::Run& run : first.place->runs) {
      for (int32_t index = run.begin; index < run.end && left > 0; ++index) {
        const Cell& cell = sms_.cells()[index];
        const int64_t even = sms_left > 0 ? (left * cell.sms + sms_left - 1) / sms_left : left;
        sms_left -= cell.sms;
        const int64_t blocks = std::min({room_in(cell), pass == 0 ? even : left, left});
        if (blocks <= 0) continue;
        StartFusedBlocks(slot, index, blocks);
        first.fused_started = true;
        left -= blocks;
      }
    }
  }
  if (starts) first.fused_left = left;
  dirty_ = true;
  const bool waits = starts && first.fused_left > 0 && (CanStart(first) || !first.fused_started);
  if (waits) return false;
  RemovePending(slot);
  EndIfDone(slot);
  // If the first part had no work and ended above, EndIfDone has already checked the second.
  if (first.partner != -1) EndIfDone(first.partner);
  return true;
}

}  // namespace gpushare::sim
