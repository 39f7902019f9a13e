#include "tools/gpushare/events/explain.h"

#include <algorithm>
#include <map>
#include <utility>

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/suggest.h"
#include "tools/gpushare/base/text.h"

namespace gpushare::tool {

namespace {

constexpr size_t kSlowestShown = 10;

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
    case GPUSHARE_EVENT_CHOICE:
      return event.id == ticket && ticket != 0;
    default:
      return false;
  }
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
std::vector<Beside> BesideOf(const EventIndexEntry& run, const std::vector<gpushare_event>& events,
                             const std::vector<Spell>& spells, uint64_t ticket) {
  std::map<std::pair<uint32_t, uint32_t>, int64_t> shared_ns;
  for (const gpushare_event& event : events) {
    if (event.type != GPUSHARE_EVENT_PART_DONE || event.id == ticket) continue;
    for (const Spell& spell : spells) {
      const int64_t shared = std::min(spell.to_ns, event.c) - std::max(spell.from_ns, event.b);
      if (shared > 0) shared_ns[{event.app_id, event.kernel_id}] += shared;
    }
  }
  std::vector<Beside> beside;
  for (const auto& [who, shared] : shared_ns) {
    const std::string kernel = who.second == 0 ? "" : run.KernelName(who.second);
    beside.push_back({run.AppName(who.first), kernel, shared});
  }
  std::stable_sort(beside.begin(), beside.end(),
                   [](const Beside& a, const Beside& b) { return a.shared_ns > b.shared_ns; });
  return beside;
}

// A task is held again by every plan. Consecutive holds with the same reason are one step.
void AddHold(const gpushare_event& event, int64_t start_ns, std::vector<StoryStep>& steps) {
  if (steps.empty() || steps.back().type != GPUSHARE_EVENT_HELD ||
      steps.back().reason != event.reason) {
    StoryStep& step = steps.emplace_back();
    step.type = event.type;
    step.at_ns = event.time_ns - start_ns;
    step.reason = event.reason;
  }
  StoryStep& step = steps.back();
  step.value_ns = event.a;
  step.limit_ns = event.b > 0 && event.b < GPUSHARE_NEVER ? event.b : 0;
  ++step.plans;
}

std::string ChoiceName(const EventIndexEntry& run, int32_t kind, int64_t choice) {
  if (choice < 0) return "";
  if (kind == kLayoutChoice) return Format("%lld SMs for LC", static_cast<long long>(choice));
  if (kind == kOverlapChoice) return Format("BE ticket %lld", static_cast<long long>(choice));
  return run.KernelName(static_cast<uint32_t>(choice >> 32)) + " and " +
         run.KernelName(static_cast<uint32_t>(choice));
}

// A choice, and what it does to latencies if the log says so.
struct LoggedChoice {
  const gpushare_event* choice = nullptr;
  const gpushare_event* shift = nullptr;
};

void AddShift(const gpushare_event& shift, StoryStep& step) {
  step.shift_ns = shift.a;
  step.runner_up_shift_ns = shift.b;
  step.shift_limit_ns = shift.c;
  step.runner_up_shift_limit_ns = shift.d;
}

// The same choice is logged again and again. `time_ns`: when it counted for the task.
void AddChoice(const EventIndexEntry& run, const LoggedChoice& logged, int64_t time_ns,
               TicketStory& story) {
  const gpushare_event& event = *logged.choice;
  StoryStep step;
  step.type = event.type;
  step.at_ns = time_ns - run.start_ns;
  step.detail = event.detail;
  step.chosen = ChoiceName(run, event.detail, event.a);
  step.runner_up = ChoiceName(run, event.detail, event.b);
  step.value = event.c;
  step.runner_up_value = event.d;
  if (logged.shift != nullptr) AddShift(*logged.shift, step);
  const auto last =
      std::find_if(story.steps.rbegin(), story.steps.rend(),
                   [&](const StoryStep& earlier) { return earlier.type == event.type; });
  const bool repeated = last != story.steps.rend() && last->chosen == step.chosen &&
                        last->runner_up == step.runner_up;
  if (!repeated) story.steps.push_back(step);
}

void AddStep(const EventIndexEntry& run, const gpushare_event& event, TicketStory& story) {
  const int64_t start_ns = run.start_ns;
  if (event.type == GPUSHARE_EVENT_CHOICE) {
    return AddChoice(run, {&event, nullptr}, event.time_ns, story);
  }
  if (event.type == GPUSHARE_EVENT_HELD) return AddHold(event, start_ns, story.steps);
  StoryStep& step = story.steps.emplace_back();
  step.type = event.type;
  step.at_ns = event.time_ns - start_ns;
  step.reason = event.reason;
  step.place = event.place;
  step.detail = event.detail;
  if (event.type == GPUSHARE_EVENT_ADMITTED) {
    step.duration_ns = event.a;
    step.duration_error_ns = event.b;
  } else if (event.type == GPUSHARE_EVENT_PART_DONE) {
    step.duration_ns = event.c - event.b;
  } else if (event.type == GPUSHARE_EVENT_COMPLETED) {
    story.completed = true;
    story.predicted_ns = event.a;
    if (event.reason == GPUSHARE_REASON_DEPENDENCY_FAILED) {
      story.failed_dependency = static_cast<uint64_t>(event.b);
    } else {
      story.measured_ns = event.b;
    }
    if (event.d > 0 && event.d <= event.time_ns) story.latency_ns = event.time_ns - event.d;
  }
}

// PENDING when the ticket did not complete inside the traced window.
gpushare_verdict VerdictOf(const std::vector<gpushare_event>& events, uint64_t ticket) {
  for (const gpushare_event& event : events) {
    if (event.type == GPUSHARE_EVENT_COMPLETED && event.id == ticket) return event.detail;
  }
  return GPUSHARE_VERDICT_PENDING;
}

bool Matches(const EventIndexEntry& run, const ExplainOptions& options) {
  return (options.case_name.empty() || run.case_name == options.case_name) &&
         (options.policy.empty() || run.policy == options.policy);
}

[[noreturn]] void RefuseNames(const std::vector<EventIndexEntry>& runs,
                              const ExplainOptions& options) {
  std::vector<std::string> cases;
  std::vector<std::string> policies;
  const auto add = [](const std::string& name, std::vector<std::string>& names) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const EventIndexEntry& run : runs) {
    add(run.case_name, cases);
    if (run.case_name == options.case_name || options.case_name.empty()) add(run.policy, policies);
  }
  if (policies.empty()) {
    throw InputError("'" + options.folder + "' has no case '" + options.case_name + "'" +
                     DidYouMean(options.case_name, cases) + ListOf("cases", cases));
  }
  throw InputError("'" + options.folder + "' has no run under the policy '" + options.policy + "'" +
                   DidYouMean(options.policy, policies) + ListOf("policies", policies));
}

}  // namespace

std::optional<TicketStory> StoryOf(const EventIndexEntry& run,
                                   const std::vector<gpushare_event>& events, uint64_t ticket) {
  TicketStory story;
  uint32_t app_id = 0;
  uint32_t kernel_id = 0;
  LoggedChoice layout;  // the last choice of a layout: it counts for all tasks
  for (const gpushare_event& event : events) {
    if (event.type == GPUSHARE_EVENT_CHOICE && event.detail == kLayoutChoice) layout = {&event};
    if (event.type == GPUSHARE_EVENT_CHOICE_SHIFT && event.id == 0) layout.shift = &event;
    if (!Concerns(event, ticket)) continue;
    if (layout.choice != nullptr &&
        (event.type == GPUSHARE_EVENT_LAUNCHED || event.type == GPUSHARE_EVENT_FAST_PATH_LAUNCHED ||
         event.type == GPUSHARE_EVENT_HELD)) {
      AddChoice(run, layout, event.time_ns, story);
    }
    if (event.app_id != 0) app_id = event.app_id;
    if (event.kernel_id != 0) kernel_id = event.kernel_id;
    AddStep(run, event, story);
  }
  if (story.steps.empty()) return std::nullopt;
  story.ticket = ticket;
  story.case_name = run.case_name;
  story.policy = run.policy;
  story.app = run.AppName(app_id);
  if (kernel_id != 0) story.kernel = run.KernelName(kernel_id);
  const std::vector<Spell> spells = SpellsOf(events, ticket);
  story.on_device = !spells.empty();
  story.beside = BesideOf(run, events, spells, ticket);
  if (story.failed_dependency != 0) {
    story.dependency_verdict = VerdictOf(events, story.failed_dependency);
  }
  return story;
}

SlowestTickets SlowestOf(const EventIndexEntry& run, const std::vector<gpushare_event>& events,
                         size_t count) {
  SlowestTickets slowest = {run.case_name, run.policy, {}};
  for (const gpushare_event& event : events) {
    if (event.type == GPUSHARE_EVENT_COMPLETED &&
        event.app_class == GPUSHARE_CLASS_LATENCY_CRITICAL && event.d > 0) {
      slowest.tickets.push_back({event.id, event.time_ns - event.d, run.AppName(event.app_id)});
    }
  }
  std::sort(
      slowest.tickets.begin(), slowest.tickets.end(), [](const SlowTicket& a, const SlowTicket& b) {
        return a.latency_ns != b.latency_ns ? a.latency_ns > b.latency_ns : a.ticket < b.ticket;
      });
  if (slowest.tickets.size() > count) slowest.tickets.resize(count);
  return slowest;
}

Explanation Explain(const ExplainOptions& options) {
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
    if (options.ticket == 0) {
      return {std::nullopt, SlowestOf(run, events, kSlowestShown), GuaranteesOf(run, events),
              WindowNs(events)};
    }
    std::optional<TicketStory> story = StoryOf(run, events, options.ticket);
    if (story.has_value()) return {std::move(story), {}, {}, 0};
  }
  if (!any) RefuseNames(runs, options);
  throw InputError(Format("No event log of '%s' has the ticket %llu inside its window.",
                          options.folder.c_str(), static_cast<unsigned long long>(options.ticket)));
}

}  // namespace gpushare::tool
