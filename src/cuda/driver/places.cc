// Makes green contexts over unions of SM groups. See places.h.

#include "src/cuda/driver/places.h"

#include <algorithm>

#include "src/cuda/driver/errors.h"

namespace gpushare::cuda {

Places::~Places() {
  if (leaked_) return;
  for (const Place& place : places_) {
    if (place.green != nullptr) context_.api().cuGreenCtxDestroy(place.green);
  }
}

absl::Status Places::Split(int32_t sm_count) {
  sm_count_ = sm_count;
  places_[core::kWholeDevice] = {{0, 0, true}, sm_count, nullptr, context_.primary()};
  CUdevResource whole = {};
  GPUSHARE_CU_RETURN(context_.api(),
                     cuDeviceGetDevResource(context_.device(), &whole, CU_DEV_RESOURCE_TYPE_SM));
  // Ask for the smallest group; the hardware rounds up to its own size.
  unsigned int least = 1;
  unsigned int count = 1;
  CUdevResource one = {};
  CUdevResource remainder = {};
  GPUSHARE_CU_RETURN(context_.api(),
                     cuDevSmResourceSplitByCount(&one, &count, &whole, &remainder, 0, least));
  least = one.sm.smCount;
  GPUSHARE_CU_RETURN(context_.api(),
                     cuDevSmResourceSplitByCount(nullptr, &count, &whole, nullptr, 0, least));
  std::vector<CUdevResource> groups(count);
  GPUSHARE_CU_RETURN(context_.api(), cuDevSmResourceSplitByCount(groups.data(), &count, &whole,
                                                                 &remainder, 0, least));
  groups.resize(count);
  if (groups.empty() || groups[0].sm.smCount == 0) {
    return absl::UnimplementedError("The driver splits this GPU into no groups of SMs.");
  }
  granularity_ = static_cast<int32_t>(groups[0].sm.smCount);
  groups_ = std::move(groups);
  if (remainder.type == CU_DEV_RESOURCE_TYPE_SM) remainder_ = remainder;
  places_[core::kWholeDevice].spec.groups = static_cast<int32_t>(groups_.size());
  return absl::OkStatus();
}

int32_t Places::made() const {
  int32_t places = 0;
  for (core::PlaceIndex place = 0; place < count(); ++place) places += Has(place) ? 1 : 0;
  return places;
}

absl::Status Places::Create(core::PlaceIndex index, const core::PlaceSpec& spec) {
  std::vector<CUdevResource> parts(groups_.begin() + spec.first_group,
                                   groups_.begin() + spec.first_group + spec.groups);
  if (spec.with_remainder && remainder_.sm.smCount > 0) parts.push_back(remainder_);
  Place place;
  place.spec = spec;
  for (const CUdevResource& part : parts) place.sms += static_cast<int32_t>(part.sm.smCount);
  const ScopedContext current(context_);
  CUdevResourceDesc description = nullptr;
  GPUSHARE_CU_RETURN(context_.api(),
                     cuDevResourceGenerateDesc(&description, parts.data(),
                                               static_cast<unsigned int>(parts.size())));
  GPUSHARE_CU_RETURN(context_.api(), cuGreenCtxCreate(&place.green, description, context_.device(),
                                                      CU_GREEN_CTX_DEFAULT_STREAM));
  if (absl::Status status =
          GPUSHARE_CU(context_.api(), cuCtxFromGreenCtx(&place.context, place.green));
      !status.ok()) {
    context_.api().cuGreenCtxDestroy(place.green);
    return status;
  }
  places_[static_cast<size_t>(index)] = place;
  // release: a thread that sees the new count also sees the place.
  count_.store(std::max(count(), index + 1), std::memory_order_release);
  return absl::OkStatus();
}

void Places::Destroy(core::PlaceIndex index) {
  Place& place = places_[static_cast<size_t>(index)];
  const ScopedContext current(context_);
  context_.api().cuGreenCtxDestroy(place.green);
  place = Place();
}

absl::StatusOr<CUstream> Places::MakeStream(core::PlaceIndex index, int priority) const {
  const ScopedContext current(context_);
  CUstream stream = nullptr;
  if (index == core::kWholeDevice) {
    GPUSHARE_CU_RETURN(context_.api(),
                       cuStreamCreateWithPriority(&stream, CU_STREAM_NON_BLOCKING, priority));
  } else {
    GPUSHARE_CU_RETURN(context_.api(), cuGreenCtxStreamCreate(&stream, place(index).green,
                                                              CU_STREAM_NON_BLOCKING, priority));
  }
  return stream;
}

}  // namespace gpushare::cuda
