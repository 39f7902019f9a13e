// A function of JAX whose work on the GPU is a latency-critical (LC) query: y = factor * x.
//
// JAX calls a handler of its foreign function interface (FFI) with a stream of its own, which
// nobody can choose. So the handler begins a region, whose stream waits for JAX's, enqueues its
// kernel there, and lets JAX's stream wait for the region. Nothing waits on the host. Without a GPU
// (ScaleCpu) the region holds no device work.
//
// Built by jax_ffi.py: by nvcc with -x cu for a GPU, else by a C++ compiler. Threads: JAX calls
// handlers on any.

#include <gpushare/gpushare.h>
#include <xla/ffi/api/c_api.h>
#include <xla/ffi/api/ffi.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace ffi = xla::ffi;

namespace {

constexpr int64_t kWaitNs = 1'000'000'000;  // for the region to begin

gpushare_runtime* g_runtime = nullptr;  // set by example_open, before the first call of JAX
gpushare_app* g_app = nullptr;
gpushare_queue* g_queue = nullptr;

ffi::Error Failed(const char* what) {
  return ffi::Error::Internal(std::string(what) + ": " + gpushare_last_error_message());
}

// One LC query. `enqueue` puts its work on the region's stream. Called with no stream on a
// simulated device.
template <class Enqueue>
ffi::Error Query(Enqueue enqueue) {
  gpushare_region_options options = GPUSHARE_REGION_OPTIONS_INIT;
  options.wait_ns = kWaitNs;
  gpushare_ticket ticket;
  void* stream = nullptr;
  if (gpushare_region_begin(g_queue, &options, &ticket, &stream) != GPUSHARE_OK)
    return Failed("begin");
  ffi::Error error = enqueue(stream);
  if (gpushare_region_end(g_runtime, ticket) != GPUSHARE_OK) return Failed("end");
  // The task goes on without its ticket: what JAX does next waits for it on the device.
  if (gpushare_ticket_release(g_runtime, ticket) != GPUSHARE_OK) return Failed("release");
  return error;
}

ffi::Error ScaleCpu(ffi::Buffer<ffi::F32> x, float factor, ffi::ResultBuffer<ffi::F32> y) {
  return Query([&](void*) {
    for (size_t i = 0; i < x.element_count(); ++i) y->typed_data()[i] = factor * x.typed_data()[i];
    return ffi::Error::Success();
  });
}

}  // namespace

XLA_FFI_DEFINE_HANDLER_SYMBOL(example_scale_cpu, ScaleCpu,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Attr<float>("factor")
                                  .Ret<ffi::Buffer<ffi::F32>>());

#ifdef __CUDACC__

namespace {

__global__ void Scale(const float* x, float factor, float* y, size_t count) {
  const size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x;
  if (i < count) y[i] = factor * x[i];
}

// Work that is enqueued on `later` from here on waits for what is on `earlier`.
cudaError_t Order(cudaStream_t earlier, cudaStream_t later) {
  cudaEvent_t event;
  cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  if (error != cudaSuccess) return error;
  error = cudaEventRecord(event, earlier);
  if (error == cudaSuccess) error = cudaStreamWaitEvent(later, event, 0);
  cudaEventDestroy(event);  // the device keeps what it needs of it
  return error;
}

ffi::Error ScaleCuda(cudaStream_t theirs, ffi::Buffer<ffi::F32> x, float factor,
                     ffi::ResultBuffer<ffi::F32> y) {
  return Query([&](void* region) {
    const auto ours = static_cast<cudaStream_t>(region);
    cudaError_t error = Order(theirs, ours);
    const size_t count = x.element_count();
    if (error == cudaSuccess && count > 0) {
      Scale<<<static_cast<unsigned>((count + 255) / 256), 256, 0, ours>>>(x.typed_data(), factor,
                                                                          y->typed_data(), count);
      error = cudaGetLastError();
    }
    if (error == cudaSuccess) error = Order(ours, theirs);
    return error == cudaSuccess ? ffi::Error::Success()
                                : ffi::Error::Internal(cudaGetErrorString(error));
  });
}

}  // namespace

// Not kCmdBufferCompatible: XLA would capture the call into a graph and replay it without the
// handler.
XLA_FFI_DEFINE_HANDLER_SYMBOL(example_scale_cuda, ScaleCuda,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<cudaStream_t>>()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Attr<float>("factor")
                                  .Ret<ffi::Buffer<ffi::F32>>());

#endif  // __CUDACC__

// Opens the runtime and an LC app. Returns 0, or -1 with the message in
// gpushare_last_error_message.
extern "C" int example_open(const char* device, double p99_bound) {
  gpushare_runtime_options runtime = GPUSHARE_RUNTIME_OPTIONS_INIT;
  runtime.device = device;
  gpushare_app_options app = GPUSHARE_APP_OPTIONS_INIT;
  app.name = "jax";
  app.app_class = GPUSHARE_CLASS_LATENCY_CRITICAL;
  app.p99_bound = p99_bound;
  const bool made = gpushare_runtime_create(&runtime, &g_runtime) == GPUSHARE_OK &&
                    gpushare_app_create(g_runtime, &app, &g_app) == GPUSHARE_OK &&
                    gpushare_queue_create(g_app, &g_queue) == GPUSHARE_OK;
  return made ? 0 : -1;
}

// How many queries of the app are complete; -1: an error.
extern "C" int64_t example_completed() {
  gpushare_app_stats stats = GPUSHARE_APP_STATS_INIT;
  return gpushare_app_stats_get(g_app, &stats) == GPUSHARE_OK ? stats.completed : -1;
}

// Behind the last call of JAX, when its results are there.
extern "C" void example_close() {
  gpushare_runtime_shutdown(g_runtime, GPUSHARE_NEVER);
  gpushare_queue_release(g_queue);
  gpushare_app_release(g_app);
  gpushare_runtime_release(g_runtime);
}
