// Bad handles: null, random, of another kind, released, of another runtime. Each function refuses
// each of them, and what is live stays usable.

#include <random>

#include "tests/faults/every_call.h"

namespace gpushare_test {
namespace {

template <class To, class From>
To* As(From* handle) {
  return reinterpret_cast<To*>(handle);
}

template <class To>
To* FromBits(uint64_t bits) {
  return reinterpret_cast<To*>(static_cast<uintptr_t>(bits));
}

// Each bad handle has the kind of the field.
Handles AllFrom(uint64_t bits) {
  Handles handles;
  handles.runtime = FromBits<gpushare_runtime>(bits);
  handles.app = handles.lc_app = FromBits<gpushare_app>(bits);
  handles.lc_queue = handles.be_queue = FromBits<gpushare_queue>(bits);
  handles.kernel = handles.graph = FromBits<gpushare_kernel>(bits);
  handles.fused = FromBits<gpushare_fused_kernel>(bits);
  handles.log = FromBits<gpushare_event_log>(bits);
  handles.tickets[0] = handles.tickets[1] = {bits};
  handles.query = {bits};
  return handles;
}

void ExpectAllRefused(const Handles& handles) {
  for (const Call& call : EveryCall()) {
    if (!call.has_handle) continue;
    const gpushare_status status = call.make(handles);
    EXPECT_EQ(status, GPUSHARE_INVALID_ARGUMENT)
        << call.name << " answers " << gpushare_status_name(status);
    EXPECT_STRNE(gpushare_last_error_message(), "");
  }
}

class HandlesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    api_.opening.profile_path = GPUSHARE_SMALL_PROFILE;
    api_.Open({"null", GPUSHARE_DRIVE_POLL});
    every_.Open(api_);
  }
  void TearDown() override {
    EXPECT_OK(gpushare_query_end(api_.runtime, every_.handles.query));
    EXPECT_EQ(api_.Finish(api_.Submit(api_.BeTask(), false)).verdict, GPUSHARE_VERDICT_OK);
    every_.Close();
    api_.Close();
  }
  Api api_;
  EveryHandle every_;
};

TEST_F(HandlesTest, RandomOnesAreRefused) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 200 && !HasFailure(); ++round) {
    // Small numbers, too: they look like slots.
    ExpectAllRefused(AllFrom(random() >> (random() % 60) | uint64_t{1} << 60));
  }
}

TEST_F(HandlesTest, NullIsRefusedWhereItIsNotAllowed) {
  const Handles nothing;
  for (const Call& call : EveryCall()) {
    if (!call.has_handle) continue;
    const std::string name = call.name;
    const bool is_release = name.size() > 8 && name.compare(name.size() - 8, 8, "_release") == 0 &&
                            name != "gpushare_ticket_release";
    const gpushare_status expected = is_release ? GPUSHARE_OK : GPUSHARE_INVALID_ARGUMENT;
    EXPECT_EQ(call.make(nothing), expected) << name;
  }
}

TEST_F(HandlesTest, OnesOfAnotherKindAreRefused) {
  const Handles& good = every_.handles;
  Handles wrong;
  wrong.runtime = As<gpushare_runtime>(good.app);
  wrong.app = wrong.lc_app = As<gpushare_app>(good.be_queue);
  wrong.lc_queue = wrong.be_queue = As<gpushare_queue>(good.kernel);
  wrong.kernel = wrong.graph = As<gpushare_kernel>(good.fused);
  wrong.fused = As<gpushare_fused_kernel>(good.log);
  wrong.log = As<gpushare_event_log>(good.runtime);
  ExpectAllRefused(wrong);
}

TEST_F(HandlesTest, ReleasedOnesAreRefusedAlthoughTheirSlotsAreTakenAgain) {
  Api gone;
  EveryHandle every_gone;
  gone.opening.profile_path = GPUSHARE_SMALL_PROFILE;
  gone.Open({"null", GPUSHARE_DRIVE_POLL});
  every_gone.Open(gone);
  const Handles released = every_gone.handles;
  every_gone.Close();
  gone.Close();
  ExpectAllRefused(released);
  Api again;
  again.opening.profile_path = GPUSHARE_SMALL_PROFILE;
  again.Open({"null", GPUSHARE_DRIVE_POLL});
  ExpectAllRefused(released);
  again.Close();
}

// What belongs to another runtime is refused where two handles meet.
TEST_F(HandlesTest, OnesOfAnotherRuntimeAreRefused) {
  Api other;
  EveryHandle every_other;
  other.opening.profile_path = GPUSHARE_SMALL_PROFILE;
  other.Open({"null", GPUSHARE_DRIVE_POLL});
  every_other.Open(other);
  Handles mixed = every_.handles;
  mixed.kernel = every_other.handles.kernel;
  mixed.graph = every_other.handles.graph;
  for (const Call& call : EveryCall()) {
    const std::string name = call.name;
    if (name != "gpushare_submit_lc" && name != "gpushare_guarantees" &&
        name != "gpushare_fused_kernel_register") {
      continue;
    }
    EXPECT_EQ(call.make(mixed), GPUSHARE_INVALID_ARGUMENT) << name;
  }
  every_other.Close();
  other.Close();
}

}  // namespace
}  // namespace gpushare_test
