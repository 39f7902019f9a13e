#include "tools/gpushare/events/explain_text.h"

#include <algorithm>

#include "tools/gpushare/base/text.h"
#include "tools/gpushare/events/promise.h"

namespace gpushare::tool {

namespace {

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
    {GPUSHARE_REASON_TAIL_CREDIT, "the LC apps' tail accounts had credit for what it delays"},
    {GPUSHARE_REASON_CO_RESIDENT, "it gained from sharing SMs with another kernel"},
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
    {GPUSHARE_REASON_HOLD_PLAN, "the entry that its policy planned for it was dropped"},
    {GPUSHARE_REASON_HOLD_TAIL_CREDIT,
     "it blocks longer than a blocking budget, and a tail account lacks credit"},
    {GPUSHARE_REASON_HOLD_DUTY,
     "queries take longer after BE work, and BE work had had its share of time"},
    {GPUSHARE_REASON_HOLD_LC_PRIORITY, "it yields, and an LC app of higher priority had a query"},
    {GPUSHARE_REASON_EVICT_FOR_LC, "an LC task needed its SMs"},
    {GPUSHARE_REASON_EVICT_FOR_RESERVATION, "an LC reservation was short of CapSMs"},
    {GPUSHARE_REASON_EVICT_FOR_LAYOUT, "the planner moved to another partition layout"},
    {GPUSHARE_REASON_EVICT_FOR_QUOTA, "its quota shrank"},
    {GPUSHARE_REASON_EVICT_FOR_LC_PRIORITY, "an LC app of higher priority had a query"},
    {GPUSHARE_REASON_USER_POLICY, "the application's own policy decided so"},
};

std::string ReasonText(gpushare_reason reason) {
  const std::string name = gpushare_reason_name(reason);
  const std::string clause = ReasonClauseOf(reason);
  return clause.empty() ? name : clause + " (" + name + ")";
}

std::string Time(int64_t ns) { return DurationText(static_cast<double>(ns)); }

std::string HeldText(const StoryStep& step) {
  std::string text = "held because " + ReasonText(step.reason);
  if (step.reason == GPUSHARE_REASON_HOLD_TAIL_CREDIT) {  // thousandths of a query
    text += Format(": it may delay %.2f queries, and the credit is %.2f",
                   static_cast<double>(step.value_ns) / 1000,
                   static_cast<double>(step.limit_ns) / 1000);
  } else if (step.limit_ns > 0) {
    text += ": " + Time(step.value_ns) + " against a limit of " + Time(step.limit_ns);
  }
  if (step.plans > 1) text += Format(", in %lld plans", static_cast<long long>(step.plans));
  return text;
}

std::string DependencyText(const TicketStory& story) {
  if (story.failed_dependency == 0) return "";
  std::string text = Format(", because ticket %llu, for which it waited, did not end with ok",
                            static_cast<unsigned long long>(story.failed_dependency));
  if (story.dependency_verdict != GPUSHARE_VERDICT_PENDING) {
    text += Format(" (%s)", gpushare_verdict_name(story.dependency_verdict));
  }
  return text;
}

std::string ValueText(const StoryStep& step, int64_t value) {
  if (step.detail == kOverlapChoice) return "a gain of " + Time(value);
  const char* const what =
      step.detail == kLayoutChoice ? "a predicted BE throughput of" : "a co-schedule profit of";
  return Format("%s %.3f", what, 1e-6 * static_cast<double>(value));
}

std::string ShiftText(int64_t shift_ns, int64_t limit_ns) {
  if (shift_ns < 0) return "";
  return " that moves latencies by " + Time(shift_ns) + " of " + Time(limit_ns);
}

std::string ChoiceText(const StoryStep& step) {
  const std::string text = "the plan chose " + step.chosen + " with " +
                           ValueText(step, step.value) +
                           ShiftText(step.shift_ns, step.shift_limit_ns);
  if (step.runner_up.empty()) return text + "; nothing else gained";
  return text + ", before " + step.runner_up + " with " + ValueText(step, step.runner_up_value) +
         ShiftText(step.runner_up_shift_ns, step.runner_up_shift_limit_ns);
}

std::string StepText(const TicketStory& story, const StoryStep& step) {
  switch (step.type) {
    case GPUSHARE_EVENT_SUBMITTED:
      return "submitted";
    case GPUSHARE_EVENT_ADMITTED:
      return "admitted, predicted to take " + Time(step.duration_ns) + " alone, give or take " +
             Time(step.duration_error_ns);
    case GPUSHARE_EVENT_HELD:
      return HeldText(step);
    case GPUSHARE_EVENT_LAUNCHED:
    case GPUSHARE_EVENT_FAST_PATH_LAUNCHED:
      return std::string("launched as ") + gpushare_form_name(step.detail) + PlaceText(step.place) +
             " because " + ReasonText(step.reason);
    case GPUSHARE_EVENT_CHOICE:
      return ChoiceText(step);
    case GPUSHARE_EVENT_EVICTED:
      return "told to leave" + PlaceText(step.place) + " because " + ReasonText(step.reason);
    case GPUSHARE_EVENT_PART_DONE:
      return "one launch " + OutcomeText(step.detail) + " after " + Time(step.duration_ns) +
             " on the device";
    default:
      return std::string("completed: ") + gpushare_verdict_name(step.detail) +
             DependencyText(story);
  }
}

std::string BesideText(const TicketStory& story) {
  if (!story.on_device) return "  It was not on the device inside the traced window.\n";
  if (story.beside.empty()) return "  Beside it ran nobody else.\n";
  std::string text = "  Beside it ran:\n";
  for (const Beside& other : story.beside) {
    text += "    " + other.app;
    if (!other.kernel.empty()) text += " with kernel " + other.kernel;
    text += ", for " + Time(other.shared_ns) + " of its time\n";
  }
  return text;
}

std::string PredictionText(const TicketStory& story) {
  if (!story.completed) return "  It did not complete inside the traced window.\n";
  if (story.failed_dependency != 0) return "  It was never launched.\n";
  std::string text = "  Predicted " + Time(story.predicted_ns) + " alone, measured " +
                     Time(story.measured_ns) + " on the device";
  if (story.predicted_ns > 0) {
    text += Format(" (%+.1f %%)", 100.0 * (static_cast<double>(story.measured_ns) /
                                               static_cast<double>(story.predicted_ns) -
                                           1));
  }
  text += ".\n";
  if (story.latency_ns > 0) {
    const int64_t waited_ns = std::max<int64_t>(0, story.latency_ns - story.measured_ns);
    text += "  From arrival to completion " + Time(story.latency_ns) + ", of which " +
            Time(waited_ns) + " not on the device.\n";
  }
  return text;
}

std::string OverAloneText(double ratio) {
  return ratio > 0 ? Format(" (%.3f x alone)", ratio) : "";
}

std::string LcGuaranteeText(const AppGuarantee& app) {
  const LcPromise& promise = app.promise;
  std::string text = "  LC " + app.app;
  if (app.has_promise) {
    text += ", promised " + PromiseText(promise.p99_bound, promise.p50_bound, promise.target_ns);
  }
  if (app.queries == 0) {
    text += "\n    no query ended inside the window\n";
  } else {
    text += Format("\n    its last %lld queries: p50 ", static_cast<long long>(app.queries)) +
            Time(app.p50_ns) + OverAloneText(app.p50_over_alone) + ", p99 " + Time(app.p99_ns) +
            OverAloneText(app.p99_over_alone);
    const bool limited = promise.p99_bound > 0 || promise.target_ns > 0;
    text += limited ? Format(", %.2f %% beyond the bound\n", 100 * app.late_share) : "\n";
  }
  if (!app.has_promise) return text;
  return text + Format(
                    "    tail account at the end of the run: %.2f queries that BE work may still "
                    "make late, %lld late for it so far\n",
                    promise.tail_credit, static_cast<long long>(promise.queries_late_for_be));
}

std::string BeGuaranteeText(const AppGuarantee& app) {
  if (app.held.empty()) return "  BE " + app.app + ", not held inside the window\n";
  std::string text = "  BE " + app.app + ", its tasks held for\n";
  for (const HeldTime& held : app.held) {
    text +=
        "    " + Time(held.time_ns) +
        (held.reason == GPUSHARE_REASON_NONE ? " for a reason that was logged before the window\n"
                                             : " because " + ReasonText(held.reason) + "\n");
  }
  return text;
}

}  // namespace

std::string OutcomeText(int32_t outcome) {
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

std::string ReasonClauseOf(gpushare_reason reason) {
  for (const ReasonClause& row : kReasonClauses) {
    if (row.reason == reason) return row.clause;
  }
  return "";
}

std::string TextOf(const TicketStory& story) {
  std::string text =
      Format("Ticket %llu", static_cast<unsigned long long>(story.ticket)) + " of app " + story.app;
  if (!story.kernel.empty()) text += ", kernel " + story.kernel;
  text += ", in case " + story.case_name + " under policy " + story.policy +
          "\n  (times since the start of the run)\n";
  for (const StoryStep& step : story.steps) {
    text += Format("  %12.3f us  ", 1e-3 * static_cast<double>(step.at_ns)) +
            StepText(story, step) + "\n";
  }
  return text + BesideText(story) + PredictionText(story);
}

std::string TextOf(const SlowestTickets& slowest) {
  std::string text = "The slowest LC tickets in the traced window of case " + slowest.case_name +
                     " under policy " + slowest.policy + " (explain one by its number):\n";
  for (const SlowTicket& one : slowest.tickets) {
    text += Format("  %20llu  %s  %s\n", static_cast<unsigned long long>(one.ticket),
                   Time(one.latency_ns).c_str(), one.app.c_str());
  }
  if (slowest.tickets.empty()) text += "  none completed inside the traced window\n";
  return text;
}

std::string TextOf(const std::vector<AppGuarantee>& guarantees, int64_t window_ns) {
  std::string text =
      "What each app was promised and got in the traced window of " + Time(window_ns) + ":\n";
  for (const AppGuarantee& app : guarantees) {
    text += app.latency_critical ? LcGuaranteeText(app) : BeGuaranteeText(app);
  }
  return text;
}

std::string TextOf(const Explanation& explanation) {
  if (explanation.story.has_value()) return TextOf(*explanation.story);
  return TextOf(explanation.slowest) + TextOf(explanation.guarantees, explanation.window_ns);
}

}  // namespace gpushare::tool
