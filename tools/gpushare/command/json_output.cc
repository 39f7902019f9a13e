#include "tools/gpushare/command/json_output.h"

#include "tools/gpushare/base/errors.h"
#include "tools/gpushare/base/json_reader.h"
#include "tools/gpushare/events/explain_text.h"

namespace gpushare::tool {

namespace {

constexpr int kSchemaVersion = 1;

// Text from files may hold bytes that are no UTF-8; they become U+FFFD.
std::string Dump(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void AddReason(const StoryStep& step, Json& json) {
  json["reason"] = gpushare_reason_name(step.reason);
  json["because"] = ReasonClauseOf(step.reason);
}

Json StepToJson(const StoryStep& step) {
  Json json = {{"event", gpushare_event_type_name(step.type)}, {"at_ns", step.at_ns}};
  switch (step.type) {
    case GPUSHARE_EVENT_ADMITTED:
      json["predicted_ns"] = step.duration_ns;
      json["predicted_error_ns"] = step.duration_error_ns;
      break;
    case GPUSHARE_EVENT_HELD:
      AddReason(step, json);
      json["plans"] = step.plans;
      if (step.limit_ns > 0) {
        json["value_ns"] = step.value_ns;
        json["limit_ns"] = step.limit_ns;
      }
      break;
    case GPUSHARE_EVENT_LAUNCHED:
    case GPUSHARE_EVENT_FAST_PATH_LAUNCHED:
      AddReason(step, json);
      json["form"] = gpushare_form_name(step.detail);
      json["place"] = step.place;
      break;
    case GPUSHARE_EVENT_CHOICE:
      json["chosen"] = step.chosen;
      json["value"] = step.value;
      if (step.shift_ns >= 0) {
        json["shift_ns"] = step.shift_ns;
        json["shift_limit_ns"] = step.shift_limit_ns;
      }
      if (step.runner_up.empty()) break;
      json["runner_up"] = step.runner_up;
      json["runner_up_value"] = step.runner_up_value;
      if (step.runner_up_shift_ns >= 0) {
        json["runner_up_shift_ns"] = step.runner_up_shift_ns;
        json["runner_up_shift_limit_ns"] = step.runner_up_shift_limit_ns;
      }
      break;
    case GPUSHARE_EVENT_EVICTED:
      AddReason(step, json);
      json["place"] = step.place;
      break;
    case GPUSHARE_EVENT_PART_DONE:
      json["outcome"] = OutcomeText(step.detail);
      json["duration_ns"] = step.duration_ns;
      break;
    case GPUSHARE_EVENT_COMPLETED:
      json["verdict"] = gpushare_verdict_name(step.detail);
      break;
    default:
      break;
  }
  return json;
}

Json StoryToJson(const TicketStory& story) {
  // As text: a reader that keeps numbers as doubles would round a ticket.
  Json json = {{"ticket", std::to_string(story.ticket)},
               {"case", story.case_name},
               {"policy", story.policy},
               {"app", story.app},
               {"kernel", story.kernel}};
  json["steps"] = Json::array();
  for (const StoryStep& step : story.steps) json["steps"].push_back(StepToJson(step));
  json["on_device"] = story.on_device;
  json["beside"] = Json::array();
  for (const Beside& other : story.beside) {
    json["beside"].push_back(
        {{"app", other.app}, {"kernel", other.kernel}, {"shared_ns", other.shared_ns}});
  }
  json["completed"] = story.completed;
  if (story.completed) {
    json["predicted_ns"] = story.predicted_ns;
    if (story.failed_dependency == 0) {
      json["measured_ns"] = story.measured_ns;
    } else {
      json["failed_dependency"] = std::to_string(story.failed_dependency);
    }
    if (story.latency_ns > 0) json["latency_ns"] = story.latency_ns;
  }
  return json;
}

Json SlowestToJson(const SlowestTickets& slowest) {
  Json json = {{"case", slowest.case_name}, {"policy", slowest.policy}};
  json["tickets"] = Json::array();
  for (const SlowTicket& one : slowest.tickets) {
    json["tickets"].push_back(
        {{"ticket", std::to_string(one.ticket)}, {"latency_ns", one.latency_ns}, {"app", one.app}});
  }
  return json;
}

Json GuaranteeToJson(const AppGuarantee& app) {
  Json json = {{"app", app.app}, {"class", app.latency_critical ? "LC" : "BE"}};
  if (!app.latency_critical) {
    json["held_ns"] = Json::object();
    for (const HeldTime& held : app.held) {
      json["held_ns"][gpushare_reason_name(held.reason)] = held.time_ns;
    }
    return json;
  }
  if (app.has_promise) {
    json["p99_bound"] = app.promise.p99_bound;
    json["p50_bound"] = app.promise.p50_bound;
    json["target_ns"] = app.promise.target_ns;
    json["tail_credit"] = app.promise.tail_credit;
    json["queries_late_for_be"] = app.promise.queries_late_for_be;
  }
  json["queries"] = app.queries;
  json["p50_ns"] = app.p50_ns;
  json["p99_ns"] = app.p99_ns;
  json["p50_over_alone"] = Rounded(app.p50_over_alone);
  json["p99_over_alone"] = Rounded(app.p99_over_alone);
  json["late_share"] = Rounded(app.late_share);
  return json;
}

}  // namespace

std::string JsonOf(const Explanation& explanation) {
  Json json = {{"schema_version", kSchemaVersion}};
  if (explanation.story.has_value()) {
    json["story"] = StoryToJson(*explanation.story);
  } else {
    json["slowest"] = SlowestToJson(explanation.slowest);
    json["window_ns"] = explanation.window_ns;
    json["guarantees"] = Json::array();
    for (const AppGuarantee& app : explanation.guarantees) {
      json["guarantees"].push_back(GuaranteeToJson(app));
    }
  }
  return Dump(json);
}

std::string JsonOf(const Validated& validated) {
  Json json = {{"schema_version", kSchemaVersion},
               {"valid", true},
               {"file", validated.file},
               {"kind", validated.scenario ? "scenario" : "profile"}};
  if (validated.scenario) {
    json["name"] = validated.name;
    json["lc_apps"] = validated.lc_apps;
    json["be_apps"] = validated.be_apps;
    json["cases"] = validated.cases;
    json["policies"] = validated.policies;
  }
  return Dump(json);
}

std::string JsonOf(const std::vector<ReplayedLog>& logs) {
  Json list = Json::array();
  bool matches = true;
  for (const ReplayedLog& log : logs) {
    const gpushare_replay_result& result = log.outcome.result;
    matches = matches && log.matches();
    list.push_back({{"file", log.file},
                    {"case", log.case_name},
                    {"policy", log.policy},
                    {"under", log.under},
                    {"matches", log.matches()},
                    {"events", result.events},
                    {"events_equal", result.events_equal},
                    {"decisions", result.decisions},
                    {"decisions_equal", result.decisions_equal},
                    {"difference", log.outcome.difference}});
  }
  return Dump({{"schema_version", kSchemaVersion}, {"matches", matches}, {"logs", list}});
}

std::string JsonOf(const std::vector<PtxVerdict>& verdicts) {
  Json list = Json::array();
  for (const PtxVerdict& one : verdicts) {
    Json json = {{"kernel", one.kernel}, {"form", one.form}, {"made", one.reason.empty()}};
    if (!one.reason.empty()) {
      json["line"] = one.line;
      json["reason"] = one.reason;
    }
    list.push_back(std::move(json));
  }
  return Dump({{"schema_version", kSchemaVersion}, {"forms", list}});
}

std::string JsonOfError(int code, const std::string& message) {
  const char* kind = code == kExitBadInput ? "bad_input"
                     : code > kExitSignal  ? "interrupted"
                                           : "failed";
  return Dump({{"schema_version", kSchemaVersion},
               {"error", {{"code", code}, {"kind", kind}, {"message", message}}}});
}

}  // namespace gpushare::tool
