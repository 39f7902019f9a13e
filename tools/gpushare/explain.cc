#include "tools/gpushare/explain.h"

#include <algorithm>
#include <map>

#include "tools/gpushare/errors.h"
#include "tools/gpushare/text.h"

namespace gpushare::tool {

namespace {

// One launch of a task on the device.
struct Spell {
  int64_t from_ns = 0;
  int64_t to_ns = 0;
  int32_t place = -1;
};

bool Concerns(const gpushare_event& event, uint64_t ticket) {
  switch (event.type) {
    case GPUSHARE_EVENT_SUBMITTED:
    case GPUSHARE_EVENT_ADMITTED:
    case GPUSHARE_EVENT_LAUNCHED:
    case GPUSHARE_EVENT_FAST_PATH_LAUNCHED:
    case GPUSHARE_EVENT_EVICTED:
    case GPUSHARE_EVENT_PART_DONE:
    case GPUSHARE_EVENT_COMPLETED:
    case GPUSHARE_EVENT_HELD:
      return event.id == ticket && ticket != 0;
    default:
      return false;
  }
}

const char* OutcomeText(int32_t outcome) {
  switch (outcome) {
    case 0:
      return "finished";
    case 1:
      return "left because it was evicted";
    case 2:
      return "failed";
    default:
      return "was lost with the device";
  }
}

std::string PlaceText(int32_t place) {
  if (place < 0) return "";
  return place == 0 ? " on the whole device" : Format(" on partition %d", place);
}

// What each reason means, as a clause after "because". A reason without a row keeps the library's
// own name.
struct ReasonClause {
  gpushare_reason reason;
  const char* clause;
};
constexpr ReasonClause kReasonClauses[] = {
    {GPUSHARE_REASON_LC_FIRST, "LC work is launched at once"},
    {GPUSHARE_REASON_FAST_PATH, "its submitter launched it on the fast path"},
    {GPUSHARE_REASON_BASELINE, "this baseline launches everything as it comes"},
    {GPUSHARE_REASON_IDLE_DEVICE, "no LC query was active"},
    {GPUSHARE_REASON_FITS_HEADROOM, "it fitted the headroom of every active query"},
    {GPUSHARE_REASON_FITS_BLOCKING_BUDGET,
     "the time it could block an LC query fitted every blocking budget"},
    {GPUSHARE_REASON_BESIDE_PARTITION, "it ran on SMs that the LC apps do not use"},
    {GPUSHARE_REASON_ELASTIC_RETURN, "the LC side of the split was idle again"},
    {GPUSHARE_REASON_RESUME, "it went on after an eviction"},
    {GPUSHARE_REASON_QUOTA, "it was limited to its CapSM quota"},
    {GPUSHARE_REASON_FILLS_GAP, "it was cut to the blocking budget"},
    {GPUSHARE_REASON_HOLD_HEADROOM, "it was longer than the headroom of an active query"},
    {GPUSHARE_REASON_HOLD_BLOCKING,
     "it could have blocked an LC query for longer than a blocking budget"},
    {GPUSHARE_REASON_HOLD_LC_ACTIVE, "LC work was on the SMs that it needs"},
    {GPUSHARE_REASON_HOLD_QUEUED_TIME, "too much work was issued already"},
    {GPUSHARE_REASON_HOLD_COPIES, "enough copies ran in its direction"},
    {GPUSHARE_REASON_HOLD_WINDOW, "the policy's in-flight window was full"},
    {GPUSHARE_REASON_HOLD_CAPSM, "no CapSM was left under its quota"},
    {GPUSHARE_REASON_HOLD_HYSTERESIS, "the LC queues had drained only just before"},
    {GPUSHARE_REASON_HOLD_QUIESCED, "the application asked for quiet"},
    {GPUSHARE_REASON_HOLD_LANE, "no lane of its place could take it"},
    {GPUSHARE_REASON_HOLD_PARTS, "it had the most launches that a task may have"},
    {GPUSHARE_REASON_HOLD_RUNNING, "the most BE tasks were on the device"},
    {GPUSHARE_REASON_HOLD_COUNTERS, "every claim counter was in use"},
    {GPUSHARE_REASON_HOLD_LAUNCHES, "the most launches were in flight"},
    {GPUSHARE_REASON_EVICT_FOR_LC, "an LC task needed its SMs"},
    {GPUSHARE_REASON_EVICT_FOR_RESERVATION, "an LC reservation was short of CapSMs"},
    {GPUSHARE_REASON_EVICT_FOR_LAYOUT, "the planner moved to another partition layout"},
    {GPUSHARE_REASON_EVICT_FOR_QUOTA, "its quota shrank"},
};

std::string ReasonText(gpushare_reason reason) {
  std::string name = gpushare_reason_name(reason);
  for (const ReasonClause& row : kReasonClauses) {
    if (row.reason == reason) return row.clause + (" (" + name + ")");
  }
  return name;
}

std::vector<Spell> SpellsOf(const std::vector<gpushare_event>& events, uint64_t ticket) {
  std::vector<Spell> spells;
  for (const gpushare_event& event : events) {
    if (event.type == GPUSHARE_EVENT_PART_DONE && event.id == ticket) {
      spells.push_back({event.b, event.c, event.place});
    }
  }
  return spells;
}

// The time that other tasks were on the device together with this one, by app and kernel.
std::string BesideText(const EventIndexEntry& run, const std::vector<gpushare_event>& events,
                       uint64_t ticket) {
  const std::vector<Spell> spells = SpellsOf(events, ticket);
  if (spells.empty()) return "  It was not on the device inside the traced window.\n";
  std::map<std::pair<uint32_t, uint32_t>, int64_t> beside;
  for (const gpushare_event& event : events) {
    if (event.type != GPUSHARE_EVENT_PART_DONE || event.id == ticket) continue;
    for (const Spell& spell : spells) {
      const int64_t shared = std::min(spell.to_ns, event.c) - std::max(spell.from_ns, event.b);
      if (shared > 0) beside[{event.app_id, event.kernel_id}] += shared;
    }
  }
  if (beside.empty()) return "  Beside it ran nobody else.\n";
  std::vector<std::pair<int64_t, std::pair<uint32_t, uint32_t>>> order;
  order.reserve(beside.size());
  for (const auto& [who, shared] : beside) order.push_back({-shared, who});
  std::sort(order.begin(), order.end());
  std::string text = "  Beside it ran:\n";
  for (const auto& [shared, who] : order) {
    text += "    " + run.AppName(who.first);
    if (who.second != 0) text += " with kernel " + run.KernelName(who.second);
    text += ", for " + DurationText(static_cast<double>(-shared)) + " of its time\n";
  }
  return text;
}

class Story {
 public:
  Story(const EventIndexEntry& run, const std::vector<gpushare_event>& events, uint64_t ticket)
      : run_(run), events_(events), ticket_(ticket) {}

  std::string Tell() {
    for (const gpushare_event& event : events_) {
      if (Concerns(event, ticket_)) Tell(event);
    }
    FlushHolds();
    if (lines_.empty()) return "";
    return Head() + lines_ + BesideText(run_, events_, ticket_) + Prediction();
  }

 private:
  void Line(int64_t time_ns, const std::string& what) {
    FlushHolds();
    if (first_ns_ < 0) first_ns_ = time_ns;
    lines_ +=
        Format("  %12.3f us  ", 1e-3 * static_cast<double>(time_ns - run_.start_ns)) + what + "\n";
  }

  // A task is held again by every plan. Consecutive holds with the same reason become one line.
  void FlushHolds() {
    if (hold_count_ == 0) return;
    const std::string times = hold_count_ == 1 ? "" : Format(", in %d plans", hold_count_);
    std::string limit;
    if (hold_limit_ns_ > 0 && hold_limit_ns_ < GPUSHARE_NEVER) {
      limit = ": " + DurationText(static_cast<double>(hold_value_ns_)) + " against a limit of " +
              DurationText(static_cast<double>(hold_limit_ns_));
    }
    lines_ += Format("  %12.3f us  ", 1e-3 * static_cast<double>(hold_from_ns_ - run_.start_ns)) +
              "held because " + ReasonText(hold_reason_) + limit + times + "\n";
    if (first_ns_ < 0) first_ns_ = hold_from_ns_;
    hold_count_ = 0;
  }

  void Tell(const gpushare_event& event) {
    app_id_ = event.app_id;
    if (event.kernel_id != 0) kernel_id_ = event.kernel_id;
    switch (event.type) {
      case GPUSHARE_EVENT_SUBMITTED:
        return Line(event.time_ns, "submitted");
      case GPUSHARE_EVENT_ADMITTED:
        return Line(event.time_ns,
                    "admitted, predicted to take " + DurationText(static_cast<double>(event.a)) +
                        " alone, give or take " + DurationText(static_cast<double>(event.b)));
      case GPUSHARE_EVENT_HELD:
        return Hold(event);
      case GPUSHARE_EVENT_LAUNCHED:
      case GPUSHARE_EVENT_FAST_PATH_LAUNCHED:
        return Line(event.time_ns, std::string("launched as ") + gpushare_form_name(event.detail) +
                                       PlaceText(event.place) + " because " +
                                       ReasonText(event.reason));
      case GPUSHARE_EVENT_EVICTED:
        return Line(event.time_ns, "told to leave" + PlaceText(event.place) + " because " +
                                       ReasonText(event.reason));
      case GPUSHARE_EVENT_PART_DONE:
        return Line(event.time_ns,
                    "one launch " + std::string(OutcomeText(event.detail)) + " after " +
                        DurationText(static_cast<double>(event.c - event.b)) + " on the device");
      default:
        predicted_ns_ = event.a;
        measured_ns_ = event.b;
        complete_ns_ = event.time_ns;
        since_ns_ = event.d;
        return Line(event.time_ns,
                    std::string("completed: ") + gpushare_verdict_name(event.detail));
    }
  }

  void Hold(const gpushare_event& event) {
    if (hold_count_ > 0 && hold_reason_ != event.reason) FlushHolds();
    if (hold_count_ == 0) hold_from_ns_ = event.time_ns;
    hold_reason_ = event.reason;
    hold_value_ns_ = event.a;
    hold_limit_ns_ = event.b;
    ++hold_count_;
  }

  std::string Head() const {
    std::string text = Format("Ticket %llu", static_cast<unsigned long long>(ticket_)) +
                       " of app " + run_.AppName(app_id_);
    if (kernel_id_ != 0) text += ", kernel " + run_.KernelName(kernel_id_);
    text += ", in case " + run_.case_name + " under policy " + run_.policy + "\n";
    return text + "  (times since the start of the run)\n";
  }

  std::string Prediction() const {
    if (complete_ns_ < 0) return "  It did not complete inside the traced window.\n";
    std::string text = "  Predicted " + DurationText(static_cast<double>(predicted_ns_)) +
                       " alone, measured " + DurationText(static_cast<double>(measured_ns_)) +
                       " on the device";
    if (predicted_ns_ > 0) {
      text += Format(
          " (%+.1f %%)",
          100.0 * (static_cast<double>(measured_ns_) / static_cast<double>(predicted_ns_) - 1));
    }
    text += ".\n";
    if (since_ns_ > 0 && since_ns_ <= complete_ns_) {
      const auto total = static_cast<double>(complete_ns_ - since_ns_);
      const double waited = std::max(0.0, total - static_cast<double>(measured_ns_));
      text += "  From arrival to completion " + DurationText(total) + ", of which " +
              DurationText(waited) + " not on the device.\n";
    }
    return text;
  }

  const EventIndexEntry& run_;
  const std::vector<gpushare_event>& events_;
  const uint64_t ticket_;
  std::string lines_;
  int64_t first_ns_ = -1;
  uint32_t app_id_ = 0;
  uint32_t kernel_id_ = 0;
  int hold_count_ = 0;
  int32_t hold_reason_ = 0;
  int64_t hold_from_ns_ = 0;
  int64_t hold_value_ns_ = 0;
  int64_t hold_limit_ns_ = 0;
  int64_t predicted_ns_ = 0;
  int64_t measured_ns_ = 0;
  int64_t complete_ns_ = -1;
  int64_t since_ns_ = 0;
};

bool Matches(const EventIndexEntry& run, const ExplainOptions& options) {
  return (options.case_name.empty() || run.case_name == options.case_name) &&
         (options.policy.empty() || run.policy == options.policy);
}

}  // namespace

std::string ExplainTicket(const EventIndexEntry& run, const std::vector<gpushare_event>& events,
                          uint64_t ticket) {
  return Story(run, events, ticket).Tell();
}

std::string ListSlowest(const EventIndexEntry& run, const std::vector<gpushare_event>& events,
                        size_t count) {
  std::vector<const gpushare_event*> done;
  for (const gpushare_event& event : events) {
    if (event.type == GPUSHARE_EVENT_COMPLETED &&
        event.app_class == GPUSHARE_CLASS_LATENCY_CRITICAL && event.d > 0) {
      done.push_back(&event);
    }
  }
  std::sort(done.begin(), done.end(), [](const gpushare_event* a, const gpushare_event* b) {
    const int64_t left = a->time_ns - a->d;
    const int64_t right = b->time_ns - b->d;
    return left != right ? left > right : a->id < b->id;
  });
  std::string text = "The slowest LC tickets in the traced window of case " + run.case_name +
                     " under policy " + run.policy + " (explain one by its number):\n";
  for (size_t i = 0; i < std::min(count, done.size()); ++i) {
    text += Format("  %20llu  %s  %s\n", static_cast<unsigned long long>(done[i]->id),
                   DurationText(static_cast<double>(done[i]->time_ns - done[i]->d)).c_str(),
                   run.AppName(done[i]->app_id).c_str());
  }
  if (done.empty()) text += "  none completed inside the traced window\n";
  return text;
}

std::string Explain(const ExplainOptions& options) {
  std::vector<EventIndexEntry> runs = LoadEventIndex(options.folder);
  // The run that the trace shows comes first: a reader takes ticket numbers from the trace.
  std::stable_sort(
      runs.begin(), runs.end(),
      [](const EventIndexEntry& a, const EventIndexEntry& b) { return a.chosen > b.chosen; });
  bool any = false;
  for (const EventIndexEntry& run : runs) {
    if (!Matches(run, options)) continue;
    any = true;
    const std::vector<gpushare_event> events = LoadEvents(options.folder + "/" + run.file);
    if (options.ticket == 0) return ListSlowest(run, events, 10);
    std::string story = ExplainTicket(run, events, options.ticket);
    if (!story.empty()) return story;
  }
  if (!any) throw InputError("No run of '" + options.folder + "' has that case and policy.");
  throw InputError(Format("No event log of '%s' has the ticket %llu inside its window.",
                          options.folder.c_str(), static_cast<unsigned long long>(options.ticket)));
}

}  // namespace gpushare::tool
