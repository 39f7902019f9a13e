#include "benchmarks/gpu/overlap/overlap_gpu.h"

#include <cuda_runtime_api.h>

namespace gpushare::benchmarks {
namespace {

// Makes a context current for a scope; null: leaves the primary one.
class Pushed {
 public:
  Pushed(const cuda::DriverApi& api, CUcontext context) : api_(api), pushed_(context != nullptr) {
    if (pushed_) api_.cuCtxPushCurrent(context);
  }
  ~Pushed() {
    CUcontext popped = nullptr;
    if (pushed_) api_.cuCtxPopCurrent(&popped);
  }
  Pushed(const Pushed&) = delete;
  Pushed& operator=(const Pushed&) = delete;

 private:
  const cuda::DriverApi& api_;
  const bool pushed_;
};

GpuInfo OpenWithManyConnections() {
  UseManyConnections();
  return OpenGpu();
}

}  // namespace

OverlapGpu::OverlapGpu()
    : info_(OpenWithManyConnections()),
      context_(Take(cuda::Context::Open(0), kNoGpu)),
      places_(std::make_unique<cuda::Places>(*context_)) {
  // Without green contexts there are no splits, and the rest is still measured.
  (void)places_->Split(sms());
  whole_.tensor = Take(places_->MakeStream(core::kWholeDevice, 0));
  whole_.cuda = Take(places_->MakeStream(core::kWholeDevice, 0));
  whole_.tensor_sms = sms();
  whole_.cuda_sms = sms();
  int least = 0;
  Cuda(cudaDeviceGetStreamPriorityRange(&least, &lc_priority_), "asking for stream priorities");
  lc_whole_ = Take(places_->MakeStream(core::kWholeDevice, lc_priority_));
}

core::PlaceIndex OverlapGpu::MakePlace(const core::PlaceSpec& spec) {
  const core::PlaceIndex place = places_->count();
  if (place == core::kMaxPlaces) Fail("The benchmark asks for more places than a device has.");
  if (const absl::Status status = places_->Create(place, spec); !status.ok()) {
    Fail(std::string(status.message()));
  }
  return place;
}

const Streams& OverlapGpu::Split(int32_t number) {
  if (const auto known = splits_.find(number); known != splits_.end()) return known->second;
  if (number < 1 || number > splits()) {
    Fail("Split " + std::to_string(number) + " does not exist, and the device has " +
         std::to_string(splits()) + ".");
  }
  Streams made;
  const core::PlaceIndex tensor = MakePlace({0, number, true});
  const core::PlaceIndex cuda = MakePlace({number, places_->groups() - number, false});
  made.tensor = Take(places_->MakeStream(tensor, 0));
  made.cuda = Take(places_->MakeStream(cuda, 0));
  made.tensor_sms = places_->place(tensor).sms;
  made.cuda_sms = places_->place(cuda).sms;
  made.tensor_context = places_->place(tensor).context;
  return splits_[number] = made;
}

std::optional<core::PlaceSpec> OverlapGpu::SpecOf(int32_t sms) const {
  if (places_->groups() == 0) return std::nullopt;
  const int32_t remainder = info_.sms - places_->groups() * places_->granularity();
  for (const bool with_remainder : {false, true}) {
    const int32_t in_groups = sms - (with_remainder ? remainder : 0);
    if (in_groups < 0 || in_groups % places_->granularity() != 0) continue;
    const int32_t groups = in_groups / places_->granularity();
    if (groups <= places_->groups()) return core::PlaceSpec{0, groups, with_remainder};
  }
  return std::nullopt;
}

const QuotaStreams& OverlapGpu::Quota(int32_t sms) {
  if (const auto known = quotas_.find(sms); known != quotas_.end()) return known->second;
  const core::PlaceSpec spec = SpecOf(sms).value();
  QuotaStreams made;
  made.be = Take(places_->MakeStream(MakePlace(spec), 0));
  if (sms < info_.sms) {
    const core::PlaceIndex rest =
        MakePlace({spec.groups, places_->groups() - spec.groups, !spec.with_remainder});
    made.lc = Take(places_->MakeStream(rest, lc_priority_));
  }
  return quotas_[sms] = made;
}

void OverlapGpu::EnqueueProduct(const Product& product, const Streams& streams) {
  using Kind = GpuLibrary::Kind;
  if (cublaslt_ == nullptr) cublaslt_ = std::make_unique<GpuLibrary>(Kind::kCublasLt);
  const Pushed pushed(context_->api(), streams.tensor_context);
  GpuLibrary::Planned& planned = planned_[{product.m, product.n, product.k, streams.tensor_sms}];
  if (planned.plan == nullptr) {
    const bool whole = streams.tensor_sms == sms();
    planned = cublaslt_->Plan(MatmulCall(product.m, product.n, product.k), streams.tensor,
                              whole ? 0 : streams.tensor_sms);
  }
  cublaslt_->Enqueue(planned, product.operands);
}

}  // namespace gpushare::benchmarks
