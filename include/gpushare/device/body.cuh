// The kernel contract as templates: what a body must define, what it may leave out, and how the
// variants call it. docs/kernel-contract.md is the page for users.
//
//   struct Body {
//     struct Params {...}; struct Shared {...}; struct State {...};   // trivial types
//     static constexpr int kThreads = 256;
//     template <class Ctx> __device__ static void Run(const Params&, Shared&, State&, Ctx&);
//     // optional:
//     static constexpr int kMinBlocksPerSm = 8;             // for __launch_bounds__; default 1
//     template <class Ctx> __device__ static void Enter(const Params&, Shared&, State&, Ctx&);
//     template <class Ctx> __device__ static void Leave(const Params&, Shared&, State&, Ctx&);
//     static constexpr bool kKeepsL1 = true;                // workers and slices keep a large L1
//     static constexpr int kWorkersPerSm = 4;               // if fewer than fit are enough
//     static constexpr int kExtraBarriers = 1;              // number of barriers of ctx.SyncSome()
//     // optional, for yield points inside a block task:
//     static constexpr bool kYields = true;
//     __device__ static uint32_t Steps(const Params&);      // steps of one block task
//     template <class Ctx> __device__ static void Save(const Params&, Shared&, State&, Ctx&);
//     template <class Ctx> __device__ static void Restore(const Params&, Shared&, State&, Ctx&);
//   };

#ifndef GPUSHARE_DEVICE_BODY_CUH_
#define GPUSHARE_DEVICE_BODY_CUH_

#include <cstdint>
#include <type_traits>
#include <utility>

namespace gpushare::device {

namespace internal {

template <class Body, class = void>
struct MinBlocks : std::integral_constant<int, 1> {};
template <class Body>
struct MinBlocks<Body, std::void_t<decltype(Body::kMinBlocksPerSm)>>
    : std::integral_constant<int, Body::kMinBlocksPerSm> {};

template <class Body, class = void>
struct Yields : std::false_type {};
template <class Body>
struct Yields<Body, std::void_t<decltype(Body::kYields)>>
    : std::integral_constant<bool, Body::kYields> {};

template <class Body, class = void>
struct KeepsL1 : std::false_type {};
template <class Body>
struct KeepsL1<Body, std::void_t<decltype(Body::kKeepsL1)>>
    : std::integral_constant<bool, Body::kKeepsL1> {};

template <class Body, class = void>
struct WorkersPerSm : std::integral_constant<int, 0> {};
template <class Body>
struct WorkersPerSm<Body, std::void_t<decltype(Body::kWorkersPerSm)>>
    : std::integral_constant<int, Body::kWorkersPerSm> {
  static_assert(Body::kWorkersPerSm > 0, "an SM has at least one worker");
};

template <class Body, class = void>
struct ExtraBarriers : std::integral_constant<int, 0> {};
template <class Body>
struct ExtraBarriers<Body, std::void_t<decltype(Body::kExtraBarriers)>>
    : std::integral_constant<int, Body::kExtraBarriers> {
  static_assert(Body::kExtraBarriers >= 0 && Body::kExtraBarriers <= 15,
                "a block has the barriers 0 to 15");
};

template <class Body, class Ctx, class = void>
struct HasEnter : std::false_type {};
template <class Body, class Ctx>
struct HasEnter<
    Body, Ctx,
    std::void_t<decltype(Body::Enter(
        std::declval<const typename Body::Params&>(), std::declval<typename Body::Shared&>(),
        std::declval<typename Body::State&>(), std::declval<Ctx&>()))>> : std::true_type {};

template <class Body, class Ctx, class = void>
struct HasLeave : std::false_type {};
template <class Body, class Ctx>
struct HasLeave<
    Body, Ctx,
    std::void_t<decltype(Body::Leave(
        std::declval<const typename Body::Params&>(), std::declval<typename Body::Shared&>(),
        std::declval<typename Body::State&>(), std::declval<Ctx&>()))>> : std::true_type {};

}  // namespace internal

template <class Body>
inline constexpr int kMinBlocks = internal::MinBlocks<Body>::value;

template <class Body>
inline constexpr bool kBodyYields = internal::Yields<Body>::value;

// Whether workers and slices keep a large L1 instead of the largest shared memory. For bodies that
// are bound by DRAM.
template <class Body>
inline constexpr bool kBodyKeepsL1 = internal::KeepsL1<Body>::value;

// Workers that are enough to keep an SM busy; 0: as many as fit.
template <class Body>
inline constexpr int kBodyWorkersPerSm = internal::WorkersPerSm<Body>::value;

// Barriers of the body in addition to the one of all of its threads.
template <class Body>
inline constexpr int kBodyExtraBarriers = internal::ExtraBarriers<Body>::value;

// A larger Shared is dynamic shared memory: a block has at most 48 KB of static shared memory, and
// the worker loop needs some of it.
inline constexpr int kStaticSharedBytesMax = 47 * 1024;

template <class Body>
inline constexpr bool kDynamicShared = sizeof(typename Body::Shared) >
                                       static_cast<size_t>(kStaticSharedBytesMax);

// Alignment of dynamic shared memory, in bytes; swizzled tensor maps need it.
inline constexpr int kSharedAlignment = 1024;

template <class Body>
constexpr uint32_t DynamicSharedBytes() {
  return kDynamicShared<Body> ? static_cast<uint32_t>(sizeof(typename Body::Shared)) : 0;
}

template <class Body>
constexpr bool CheckBody() {
  static_assert(std::is_trivially_copyable_v<typename Body::Params>,
                "Params are copied as bytes at submit");
  static_assert(alignof(typename Body::Params) <= 64, "Params start at a multiple of 64 bytes");
  static_assert(std::is_trivially_default_constructible_v<typename Body::Shared>,
                "Shared is raw shared memory: no constructor runs");
  static_assert(Body::kThreads > 0 && Body::kThreads <= 1024, "a block has 1 to 1024 threads");
  return true;
}

template <class Body, class Ctx>
__device__ void EnterBody(const typename Body::Params& params, typename Body::Shared& shared,
                          typename Body::State& state, Ctx& ctx) {
  if constexpr (internal::HasEnter<Body, Ctx>::value) Body::Enter(params, shared, state, ctx);
}

template <class Body, class Ctx>
__device__ void LeaveBody(const typename Body::Params& params, typename Body::Shared& shared,
                          typename Body::State& state, Ctx& ctx) {
  if constexpr (internal::HasLeave<Body, Ctx>::value) Body::Leave(params, shared, state, ctx);
}

}  // namespace gpushare::device

#endif  // GPUSHARE_DEVICE_BODY_CUH_
