// The CapSM ledger: exactness, reservations, quotas, packing, and random histories against a model
// that recomputes every sum.

#include "src/core/state/capsm_ledger.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace gpushare::core {
namespace {

constexpr int kSearch = 0;  // LC
constexpr int kTrain = 1;   // BE
constexpr int32_t kSms = 132;
constexpr int32_t kGranularity = 8;
// What 15 groups leave over, as on an H200.
constexpr int32_t kRemainder = 12;

CapSmLedger MakeLedger(bool remainder_for_lc = false) {
  CapSmLedger ledger(kSms, kGranularity, kRemainder, remainder_for_lc);
  ledger.AddApp(kSearch, AppClass::kLatencyCritical);
  ledger.AddApp(kTrain, AppClass::kBestEffort);
  return ledger;
}

TEST(CapSmLedger, EveryWorkerCountOfAnSmDividesTheUnit) {
  for (int32_t m = 1; m <= kMaxWorkersPerSm; ++m) {
    EXPECT_EQ(kCapSmUnit % m, 0) << m;
    EXPECT_EQ(WorkerUnits(m, m), kCapSmUnit) << "M workers are one CapSM";
  }
}

// SMGuard figure 6: three SMs, M = 2, two workers use one CapSM.
TEST(CapSmLedger, TwoWorkersUseOneCapSmAsInFigure6) {
  CapSmLedger ledger(3, 1, 0, false);
  ledger.AddApp(kTrain, AppClass::kBestEffort);
  ledger.Charge(kTrain, 2, 2);
  EXPECT_EQ(ledger.UsedBy(kTrain), kCapSmUnit);
  EXPECT_EQ(ledger.FreeUnits(), 2 * kCapSmUnit);
}

// A quota bounds what policies launch; it keeps nothing free. A reservation does.
TEST(CapSmLedger, AReservationIsNotFreeAndAQuotaIs) {
  CapSmLedger ledger(13, 1, 0, false);
  ledger.AddApp(kSearch, AppClass::kLatencyCritical);
  ledger.AddApp(kTrain, AppClass::kBestEffort);
  ASSERT_TRUE(ledger.Reserve(kTrain, "train", 10, false).ok());
  EXPECT_EQ(ledger.FreeUnits(), 13 * kCapSmUnit);
  ASSERT_TRUE(ledger.Reserve(kSearch, "search", 8, false).ok());
  EXPECT_EQ(ledger.FreeUnits(), 5 * kCapSmUnit);
  ledger.Charge(kSearch, 8 * 16, 16);
  EXPECT_EQ(ledger.FreeUnits(), 5 * kCapSmUnit) << "LC uses what it has reserved";
  ledger.Charge(kSearch, 16, 16);
  EXPECT_EQ(ledger.FreeUnits(), 4 * kCapSmUnit) << "and then what is free";
}

// Algorithm 1, line 5: R_gap when the reservation comes after BE took the device.
TEST(CapSmLedger, AReservationThatComesLateIsShortByWhatBeHolds) {
  CapSmLedger ledger = MakeLedger();
  ledger.Charge(kTrain, 100 * 8, 8);
  ASSERT_TRUE(ledger.Reserve(kSearch, "search", 84, false).ok());
  EXPECT_EQ(ledger.Shortfall(), (84 + 100 - 132) * kCapSmUnit);
  EXPECT_EQ(ledger.FreeUnits(), 0);
  ledger.Release(kTrain, 51 * 8, 8);
  EXPECT_EQ(ledger.Shortfall(), kCapSmUnit);
  ledger.Release(kTrain, 8, 8);
  EXPECT_EQ(ledger.Shortfall(), 0);
  EXPECT_EQ(ledger.FreeUnits(), 0);
  ledger.Release(kTrain, 8, 8);
  EXPECT_EQ(ledger.FreeUnits(), kCapSmUnit);
}

TEST(CapSmLedger, ThirdsAndSeventhsAddUpAndReturnToZero) {
  CapSmLedger ledger = MakeLedger();
  // In floating point these leave a rest.
  for (int32_t m : {3, 7, 11, 13, 17, 19, 23, 29, 31}) {
    for (int i = 0; i < m; ++i) ledger.Charge(kTrain, 1, m);
  }
  EXPECT_EQ(ledger.UsedBy(kTrain), 9 * kCapSmUnit);
  for (int32_t m : {3, 7, 11, 13, 17, 19, 23, 29, 31}) ledger.Release(kTrain, m, m);
  EXPECT_EQ(ledger.UsedUnits(), 0);
  EXPECT_TRUE(ledger.IsIdle());
  EXPECT_EQ(ledger.FreeUnits(), ledger.capacity());
}

TEST(CapSmLedger, TheWholeDeviceIsUsedToTheLastWorkerAndOneMoreIsShort) {
  CapSmLedger ledger = MakeLedger();
  ledger.Charge(kTrain, kSms * 6, 6);
  EXPECT_EQ(ledger.FreeUnits(), 0);
  EXPECT_EQ(ledger.Shortfall(), 0);
  ledger.Charge(kTrain, 0, 32);
  EXPECT_EQ(ledger.Shortfall(), 0) << "no worker uses nothing";
  ledger.Charge(kTrain, 1, 32);
  EXPECT_EQ(ledger.FreeUnits(), 0);
  EXPECT_EQ(ledger.Shortfall(), kCapSmUnit / 32);
}

TEST(CapSmLedger, AsManyFullLaunchesAsThereCanBeTasksAddUp) {
  CapSmLedger ledger = MakeLedger();
  for (int i = 0; i < kMaxTasks; ++i) ledger.Charge(kTrain, kSms * 32, 32);
  EXPECT_EQ(CapSmsOf(ledger.UsedUnits()), static_cast<double>(kMaxTasks) * kSms);
  EXPECT_EQ(CapSmsOf(ledger.Shortfall()), static_cast<double>(kMaxTasks - 1) * kSms);
  for (int i = 0; i < kMaxTasks; ++i) ledger.Release(kTrain, kSms * 32, 32);
  EXPECT_TRUE(ledger.IsIdle());
}

TEST(CapSmLedger, RefusesAboveTheDeviceWithTheNumbers) {
  CapSmLedger ledger = MakeLedger();
  const absl::Status status = ledger.Reserve(kTrain, "train", 140, false);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status.message(), "BE app 'train' asks for 140 CapSMs, and the device has 132.");
  EXPECT_EQ(ledger.Reserve(kSearch, "search", -1, false).message(),
            "LC app 'search' asks for -1 CapSMs, and the least is 0.");
  EXPECT_EQ(ledger.ReservationOf(kTrain), 0);
  EXPECT_EQ(ledger.FreeUnits(), kSms * kCapSmUnit) << "a refusal changes nothing";
}

TEST(CapSmLedger, TwoReservationsNeverExceedTheDevice) {
  CapSmLedger ledger = MakeLedger();
  ledger.AddApp(2, AppClass::kLatencyCritical);
  ASSERT_TRUE(ledger.Reserve(kSearch, "search", 84, false).ok());
  const absl::Status status = ledger.Reserve(2, "chat", 49, false);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(status.message(), "LC app 'chat' asks for 49 CapSMs, and 48 of 132 are not reserved.");
  EXPECT_EQ(ledger.ReservedCapSms(), 84);
  EXPECT_TRUE(ledger.Reserve(2, "chat", 48, false).ok());
  // Its own old reservation does not count against a new one.
  EXPECT_TRUE(ledger.Reserve(kSearch, "search", 80, false).ok());
  EXPECT_EQ(ledger.ReservedCapSms(), 128);
  ledger.RemoveApp(2);
  EXPECT_EQ(ledger.ReservedCapSms(), 80);
}

// 132 SMs in 15 groups of 8, the 12 left over on the LC side.
TEST(CapSmLedger, APackedReservationIsCompletedByLeftOverSmsOfLcOnce) {
  CapSmLedger ledger = MakeLedger(/*remainder_for_lc=*/true);
  ledger.AddApp(2, AppClass::kLatencyCritical);
  ASSERT_TRUE(ledger.Reserve(kSearch, "search", 81, true).ok());
  EXPECT_EQ(ledger.ReservationOf(kSearch), 84) << "9 groups and the remainder, not 11 groups";
  ASSERT_TRUE(ledger.Reserve(2, "chat", 17, true).ok());
  EXPECT_EQ(ledger.ReservationOf(2), 24) << "the remainder is taken";
  ASSERT_TRUE(ledger.Reserve(kSearch, "search", 80, true).ok());
  EXPECT_EQ(ledger.ReservationOf(kSearch), 80);
  ASSERT_TRUE(ledger.Reserve(2, "chat", 17, true).ok());
  EXPECT_EQ(ledger.ReservationOf(2), 20) << "and free again";
}

// The same 12 on the BE side: no LC side of a partition has them.
TEST(CapSmLedger, APackedReservationNeverTakesLeftOverSmsOfBe) {
  CapSmLedger ledger = MakeLedger(/*remainder_for_lc=*/false);
  for (const auto& [asked, granted] : {std::pair{1, 8}, std::pair{10, 16}, std::pair{81, 88},
                                       std::pair{84, 88}, std::pair{88, 88}, std::pair{120, 120}}) {
    ASSERT_TRUE(ledger.Reserve(kSearch, "search", asked, true).ok());
    EXPECT_EQ(ledger.ReservationOf(kSearch), granted) << asked;
  }
}

// Between the largest LC side and the device there is no partition.
TEST(CapSmLedger, AReservationThatLeavesNoBeSideTakesAllThatIsNotReserved) {
  for (const bool for_lc : {false, true}) {
    CapSmLedger ledger = MakeLedger(for_lc);
    const int32_t largest = for_lc ? 124 : 120;
    ASSERT_TRUE(ledger.Reserve(kSearch, "search", largest, true).ok());
    EXPECT_EQ(ledger.ReservationOf(kSearch), largest);
    ASSERT_TRUE(ledger.Reserve(kSearch, "search", largest + 1, true).ok());
    EXPECT_EQ(ledger.ReservationOf(kSearch), kSms);
    ledger.AddApp(2, AppClass::kLatencyCritical);
    ASSERT_TRUE(ledger.Reserve(kSearch, "search", 64, true).ok());
    ASSERT_TRUE(ledger.Reserve(2, "chat", 64, true).ok());
    EXPECT_EQ(ledger.ReservedCapSms(), kSms) << "128 SMs leave 4, and no BE side has so few";
    EXPECT_EQ(ledger.FreeUnits(), 0);
    EXPECT_EQ(ledger.Reserve(2, "chat", 69, true).message(),
              "LC app 'chat' asks for 69 CapSMs (72 on whole SMs), and 68 of 132 are not "
              "reserved.");
  }
}

TEST(CapSmLedger, APackedQuotaRoundsDownToABeSideThatExists) {
  for (const auto& [for_lc, asked, granted] :
       {std::tuple{false, 12, 12}, std::tuple{false, 19, 12}, std::tuple{false, 20, 20},
        std::tuple{false, 47, 44}, std::tuple{false, 131, 124}, std::tuple{true, 8, 8},
        std::tuple{true, 12, 8}, std::tuple{true, 47, 40}, std::tuple{true, 120, 120},
        std::tuple{true, 131, 120}}) {
    CapSmLedger ledger = MakeLedger(for_lc);
    ASSERT_TRUE(ledger.Reserve(kTrain, "train", asked, true).ok());
    EXPECT_EQ(ledger.ReservationOf(kTrain), granted) << asked << ", LC's: " << for_lc;
  }
}

TEST(CapSmLedger, APackedQuotaBelowTheSmallestBeSideIsRefused) {
  for (const auto& [for_lc, asked, smallest] :
       {std::tuple{false, 11, 12}, std::tuple{true, 7, 8}}) {
    CapSmLedger ledger = MakeLedger(for_lc);
    const absl::Status status = ledger.Reserve(kTrain, "train", asked, true);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(status.message(),
              absl::StrCat("BE app 'train' asks for a packed quota of ", asked,
                           " CapSMs, and the smallest BE side of whole SMs has ", smallest, "."));
    EXPECT_EQ(ledger.ReservationOf(kTrain), 0);
  }
}

// The LC side has 15 groups, and the 12 SMs left over are all that BE can have.
TEST(CapSmLedger, TheSmallestBeSideIsUsedToItsLastWorker) {
  CapSmLedger ledger = MakeLedger();
  ASSERT_TRUE(ledger.Reserve(kSearch, "search", 120, true).ok());
  ASSERT_TRUE(ledger.Reserve(kTrain, "train", 48, true).ok());
  ledger.Charge(kTrain, 12 * 8, 8);
  EXPECT_EQ(ledger.ClaimedBy(kTrain), 12 * kCapSmUnit);
  EXPECT_EQ(ledger.Shortfall(), 0);
  ledger.Charge(kTrain, 1, 8);
  EXPECT_EQ(ledger.ClaimedBy(kTrain), 20 * kCapSmUnit);
  EXPECT_EQ(ledger.Shortfall(), 8 * kCapSmUnit) << "the next side has a group more";
}

TEST(CapSmLedger, APackedAppHoldsItsSideForASingleWorker) {
  for (const auto& [for_lc, smallest, next] :
       {std::tuple{false, 12, 20}, std::tuple{true, 8, 16}}) {
    CapSmLedger ledger = MakeLedger(for_lc);
    ASSERT_TRUE(ledger.Reserve(kTrain, "train", 48, true).ok());
    ledger.Charge(kTrain, 1, 8);
    EXPECT_EQ(ledger.ClaimedBy(kTrain), smallest * kCapSmUnit);
    EXPECT_EQ(ledger.FreeUnits(), (kSms - smallest) * kCapSmUnit);
    ledger.Charge(kTrain, smallest * 8 - 1, 8);
    EXPECT_EQ(ledger.ClaimedBy(kTrain), smallest * kCapSmUnit) << "full, and not more";
    ledger.Charge(kTrain, 1, 8);
    EXPECT_EQ(ledger.ClaimedBy(kTrain), next * kCapSmUnit);
    ledger.Release(kTrain, smallest * 8, 8);
    ledger.Release(kTrain, 1, 8);
    EXPECT_EQ(ledger.FreeUnits(), kSms * kCapSmUnit);
  }
}

// One partition has the left-over SMs once.
TEST(CapSmLedger, TheLeftOverSmsArePartOfOnePackedBeSideAtATime) {
  CapSmLedger ledger = MakeLedger();
  constexpr int kOther = 2;
  ledger.AddApp(kOther, AppClass::kBestEffort);
  for (const int app : {kTrain, kOther}) ASSERT_TRUE(ledger.Reserve(app, "be", 20, true).ok());
  ledger.Charge(kTrain, 1, 8);
  ledger.Charge(kOther, 1, 8);
  EXPECT_EQ(ledger.ClaimedBy(kTrain), 12 * kCapSmUnit);
  EXPECT_EQ(ledger.ClaimedBy(kOther), 8 * kCapSmUnit);
  EXPECT_EQ(ledger.FreeUnits(), (kSms - 12 - 8) * kCapSmUnit);
  ledger.Charge(kOther, 8 * 8, 8);
  EXPECT_EQ(ledger.ClaimedBy(kOther), 16 * kCapSmUnit) << "12 + 8 are not there twice";
  ledger.Release(kOther, 8 * 8, 8);
  // An app stays where it is; the next app that starts from nothing gets the left-over SMs.
  ledger.Release(kTrain, 1, 8);
  EXPECT_EQ(ledger.ClaimedBy(kOther), 8 * kCapSmUnit);
  ledger.Release(kOther, 1, 8);
  ledger.Charge(kOther, 1, 8);
  EXPECT_EQ(ledger.ClaimedBy(kOther), 12 * kCapSmUnit);
  // Spread again, it holds no side.
  ASSERT_TRUE(ledger.Reserve(kOther, "be", 20, false).ok());
  ledger.Charge(kTrain, 1, 8);
  EXPECT_EQ(ledger.ClaimedBy(kTrain), 12 * kCapSmUnit);
}

// What LC has together must be a side that exists, whichever reservation came last.
TEST(CapSmLedger, ASpreadReservationBesideAPackedOneLeavesABeSideOrNothing) {
  for (const bool for_lc : {false, true}) {
    CapSmLedger ledger = MakeLedger(for_lc);
    constexpr int kChat = 2;
    ledger.AddApp(kChat, AppClass::kLatencyCritical);
    ASSERT_TRUE(ledger.Reserve(kSearch, "search", 88, true).ok());
    const int32_t largest = for_lc ? 124 : 120;
    ASSERT_TRUE(ledger.Reserve(kChat, "chat", largest - 88, false).ok());
    EXPECT_EQ(ledger.ReservedCapSms(), largest);
    ASSERT_TRUE(ledger.Reserve(kChat, "chat", largest - 88 + 1, false).ok());
    EXPECT_EQ(ledger.ReservedCapSms(), kSms);
    EXPECT_EQ(ledger.Reserve(kChat, "chat", 45, false).message(),
              "LC app 'chat' asks for 45 CapSMs, and 44 of 132 are not reserved.");
    ASSERT_TRUE(ledger.Reserve(kChat, "chat", 0, false).ok());
    EXPECT_EQ(ledger.ReservedCapSms(), 88) << "nothing is asked for, nothing is granted";
    // Without a packed one nobody needs a side.
    ASSERT_TRUE(ledger.Reserve(kSearch, "search", 88, false).ok());
    ASSERT_TRUE(ledger.Reserve(kChat, "chat", 40, false).ok());
    EXPECT_EQ(ledger.ReservedCapSms(), 128);
  }
}

// Keeps what each launch holds as a fraction of a CapSM, workers over M, and sums them for every
// question over a common denominator, so its answers are exact.
struct Model {
  struct App {
    AppClass app_class = AppClass::kBestEffort;
    int32_t bound = 0;
    bool packed = false;
    bool placed = false;                            // packed, and was in use when last looked at
    std::vector<std::pair<int32_t, int32_t>> held;  // workers, M
  };
  int32_t sms = 0;
  int32_t granularity = 1;
  int32_t be_remainder = 0;   // left-over SMs of BE
  int remainder_holder = -1;  // the packed BE app whose side has them
  std::map<int, App> apps;

  static int64_t Denominator() {
    int64_t multiple = 1;
    for (int m = 1; m <= 32; ++m) multiple = std::lcm(multiple, m);
    return multiple;
  }
  int64_t Used(const App& app) const {
    int64_t sum = 0;
    for (auto [workers, m] : app.held) sum += workers * (Denominator() / m);
    return sum;
  }
  // After every change of what `index` holds or how.
  void Settle(int index) {
    App& app = apps.at(index);
    const bool now = app.app_class == AppClass::kBestEffort && app.packed && Used(app) > 0;
    if (!now && remainder_holder == index) remainder_holder = -1;
    if (now && !app.placed && remainder_holder < 0) remainder_holder = index;
    app.placed = now;
  }
  int64_t Claim(int index) const {
    const App& app = apps.at(index);
    const int64_t one = Denominator();
    if (app.app_class == AppClass::kLatencyCritical) return std::max(Used(app), app.bound * one);
    if (!app.packed) return Used(app);
    if (Used(app) == 0) return 0;
    int64_t side = be_remainder > 0 && remainder_holder == index ? be_remainder : granularity;
    while (side * one < Used(app)) side += granularity;
    return side * one;
  }
  bool HasPackedLc() const {
    return std::any_of(apps.begin(), apps.end(), [](const auto& entry) {
      return entry.second.app_class == AppClass::kLatencyCritical && entry.second.packed;
    });
  }
  int64_t Free() const {
    int64_t free = sms * Denominator();
    for (const auto& [index, app] : apps) free -= Claim(index);
    return free;
  }
};

void CheckAgainstModel(const CapSmLedger& ledger, const Model& model) {
  int64_t used = 0;
  int32_t reserved = 0;
  for (const auto& [index, app] : model.apps) {
    RC_ASSERT(ledger.UsedBy(index) == model.Used(app));
    RC_ASSERT(ledger.ClaimedBy(index) == model.Claim(index));
    used += model.Used(app);
    if (app.app_class == AppClass::kLatencyCritical) reserved += app.bound;
  }
  RC_ASSERT(ledger.UsedUnits() == used);
  RC_ASSERT(ledger.FreeUnits() == std::max<int64_t>(0, model.Free()));
  RC_ASSERT(ledger.Shortfall() == std::max<int64_t>(0, -model.Free()));
  RC_ASSERT(ledger.ReservedCapSms() == reserved);
  RC_ASSERT(reserved <= model.sms);
}

RC_GTEST_PROP(CapSmLedgerProperty, RandomHistoriesAgreeWithAddingEverythingUp, ()) {
  const auto sms = *rc::gen::inRange(1, 150);
  const auto granularity = *rc::gen::inRange(1, std::min(sms, 16) + 1);
  const auto groups = *rc::gen::inRange(1, sms / granularity + 1);
  const int32_t left_over = sms - groups * granularity;
  const bool for_lc = *rc::gen::arbitrary<bool>();
  CapSmLedger ledger(sms, granularity, left_over, for_lc);
  const int32_t smallest_be_side = left_over > 0 && !for_lc ? left_over : granularity;
  Model model{.sms = sms,
              .granularity = granularity,
              .be_remainder = for_lc ? 0 : left_over,
              .remainder_holder = -1,
              .apps = {}};
  const int apps = *rc::gen::inRange(1, 5);
  for (int i = 0; i < apps; ++i) {
    const auto app_class = *rc::gen::element(AppClass::kLatencyCritical, AppClass::kBestEffort);
    ledger.AddApp(i, app_class);
    model.apps[i].app_class = app_class;
  }
  const int steps = *rc::gen::inRange(0, 60);
  for (int step = 0; step < steps; ++step) {
    const int app = *rc::gen::inRange(0, apps);
    Model::App& row = model.apps[app];
    switch (*rc::gen::inRange(0, 8)) {
      case 0: {
        const auto capsms = *rc::gen::inRange(-1, sms + 2);
        const bool packed = *rc::gen::arbitrary<bool>();
        if (ledger.Reserve(app, "app", capsms, packed).ok()) {
          row.bound = ledger.ReservationOf(app);
          row.packed = ledger.IsPacked(app);
          model.Settle(app);
          RC_ASSERT(capsms >= 0 && capsms <= sms);
          if (row.app_class == AppClass::kLatencyCritical) RC_ASSERT(row.bound >= capsms);
          if (row.app_class == AppClass::kBestEffort) RC_ASSERT(row.bound <= capsms);
          if (row.app_class == AppClass::kLatencyCritical && capsms > 0 && model.HasPackedLc()) {
            // A BE side is left, or nothing.
            const int32_t left = sms - ledger.ReservedCapSms();
            RC_ASSERT(left == 0 || left >= smallest_be_side);
          } else if (!packed) {
            RC_ASSERT(row.bound == capsms);
          }
          RC_ASSERT(row.bound - capsms < granularity + smallest_be_side);
          RC_ASSERT(capsms - row.bound < granularity + left_over);
        }
        break;
      }
      case 1:
      case 2:
      case 3:
      case 4:
      case 5: {
        const int32_t m = *rc::gen::inRange(1, kMaxWorkersPerSm + 1);
        // Often at the limit: what is free, and one worker more.
        const auto free = static_cast<int32_t>(ledger.FreeUnits() / WorkerUnits(1, m));
        const int32_t workers = *rc::gen::element(free, free + 1, *rc::gen::inRange(0, 2 * m),
                                                  *rc::gen::inRange(0, sms * m + 2));
        ledger.Charge(app, workers, m);
        row.held.emplace_back(workers, m);
        model.Settle(app);
        break;
      }
      default: {
        if (row.held.empty()) break;
        const auto index =
            static_cast<size_t>(*rc::gen::inRange(0, static_cast<int>(row.held.size())));
        // In two parts, as a partial eviction gives them back.
        const auto [workers, m] = row.held[index];
        const int32_t first = workers / 2;
        ledger.Release(app, first, m);
        ledger.Release(app, workers - first, m);
        row.held.erase(row.held.begin() + static_cast<std::ptrdiff_t>(index));
        model.Settle(app);
        break;
      }
    }
    CheckAgainstModel(ledger, model);
  }
  for (auto& [index, row] : model.apps) {
    for (auto [workers, m] : row.held) ledger.Release(index, workers, m);
    RC_ASSERT(ledger.UsedBy(index) == 0);
    ledger.RemoveApp(index);
  }
  RC_ASSERT(ledger.IsIdle());
  RC_ASSERT(ledger.ReservedCapSms() == 0);
  RC_ASSERT(ledger.FreeUnits() == ledger.capacity());
}

}  // namespace
}  // namespace gpushare::core
