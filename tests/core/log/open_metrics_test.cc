// OpenMetrics text: every line obeys the grammar, and every number has its metric and labels.

#include "src/core/log/open_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace gpushare::core {
namespace {

using ::testing::HasSubstr;

struct Family {
  std::string type;
  std::string unit;
  std::string help;
};

struct Sample {
  std::string name;
  std::map<std::string, std::string> labels;
  std::string value;
};

struct Parsed {
  std::map<std::string, Family> families;
  std::vector<Sample> samples;

  const Sample& Find(const std::string& name, const std::string& key = "",
                     const std::string& value = "") const {
    for (const Sample& sample : samples) {
      const auto label = sample.labels.find(key);
      if (sample.name == name &&
          (key.empty() || (label != sample.labels.end() && label->second == value))) {
        return sample;
      }
    }
    ADD_FAILURE() << "no sample " << name << " with " << key << "=" << value;
    static const Sample kNone;
    return kNone;
  }
};

std::string Unescape(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      plain += text[i];
    } else {
      ++i;
      EXPECT_LT(i, text.size());
      EXPECT_THAT(std::string("\\\"n"), HasSubstr(std::string(1, text[i])));
      plain += text[i] == 'n' ? '\n' : text[i];
    }
  }
  return plain;
}

// The grammar of OpenMetrics 1.0.0 as far as counters, gauges and infos need it.
Parsed Parse(const std::string& text) {
  Parsed parsed;
  EXPECT_EQ(text.substr(text.size() - 6), "# EOF\n");
  static const std::regex kType("# TYPE ([a-zA-Z_:][a-zA-Z0-9_:]*) (counter|gauge|info)");
  static const std::regex kUnit("# UNIT ([a-zA-Z_:][a-zA-Z0-9_:]*) ([a-z]+)");
  static const std::regex kHelp("# HELP ([a-zA-Z_:][a-zA-Z0-9_:]*) (.+)");
  static const std::regex kSample(
      "([a-zA-Z_:][a-zA-Z0-9_:]*)\\{(.*)\\} (-?[0-9]+(\\.[0-9]+)?(e[+-]?[0-9]+)?|NaN|[+-]Inf)");
  static const std::regex kLabel("([a-zA-Z_][a-zA-Z0-9_]*)=\"((?:[^\"\\\\]|\\\\.)*)\"(,|$)");
  std::istringstream lines(text);
  std::string line;
  std::string family;
  std::set<std::string> seen;
  bool ended = false;
  while (std::getline(lines, line)) {
    EXPECT_FALSE(ended) << "text after # EOF";
    std::smatch match;
    if (line == "# EOF") {
      ended = true;
    } else if (std::regex_match(line, match, kType)) {
      family = match[1];
      EXPECT_EQ(parsed.families.count(family), 0u) << "family twice: " << family;
      parsed.families[family].type = match[2];
    } else if (std::regex_match(line, match, kUnit)) {
      EXPECT_EQ(match[1], family);
      parsed.families[family].unit = match[2];
      const std::string suffix = "_" + std::string(match[2]);
      EXPECT_EQ(family.substr(family.size() - suffix.size()), suffix);
    } else if (std::regex_match(line, match, kHelp)) {
      EXPECT_EQ(match[1], family);
      parsed.families[family].help = match[2];
    } else if (std::regex_match(line, match, kSample)) {
      Sample sample;
      sample.name = match[1];
      sample.value = match[3];
      const std::string& type = parsed.families[family].type;
      const std::string suffix = type == "counter" ? "_total" : type == "info" ? "_info" : "";
      EXPECT_EQ(sample.name, family + suffix);
      EXPECT_TRUE(seen.insert(line.substr(0, line.rfind(' '))).second) << "twice: " << line;
      std::string labels = match[2];
      size_t read = 0;
      for (std::sregex_iterator at(labels.begin(), labels.end(), kLabel), end; at != end; ++at) {
        EXPECT_EQ(static_cast<size_t>(at->position()), read);
        read += static_cast<size_t>(at->length());
        EXPECT_TRUE(sample.labels.emplace((*at)[1], Unescape((*at)[2])).second);
      }
      EXPECT_EQ(read, labels.size()) << labels;
      parsed.samples.push_back(sample);
    } else {
      ADD_FAILURE() << "not OpenMetrics: " << line;
    }
  }
  EXPECT_TRUE(ended);
  for (const auto& [name, found] : parsed.families) EXPECT_FALSE(found.help.empty()) << name;
  return parsed;
}

AppStats App(uint32_t id, const std::string& name, AppClass app_class) {
  AppStats app;
  app.app = AppId{id};
  app.name = name;
  app.app_class = app_class;
  app.submitted = 100 + id;
  app.device_ns = 1500000000;
  app.latency = {10, 667000, 2176000, 3000000};
  return app;
}

TEST(OpenMetricsTest, AnEmptySchedulerIsValid) {
  const Parsed parsed = Parse(FormatOpenMetrics({}));
  EXPECT_EQ(parsed.families.count("gpushare_app_submitted"), 0u);
  EXPECT_EQ(parsed.Find("gpushare_launches_total").value, "0");
}

TEST(OpenMetricsTest, NumbersStandUnderTheirNamesWithUnits) {
  MetricsSource source;
  source.device_name = "h200";
  source.policy_name = "adaptive";
  source.scheduler.launches = 123456789012345;
  source.scheduler.busy_sm_ns = 2500000000;
  source.scheduler.prediction_error = 0.0125;
  source.scheduler.eviction_latency = {5, 27000, 40000, 41000};
  source.scheduler.device_lost = true;
  const std::vector<AppStats> apps = {App(1, "chat", AppClass::kLatencyCritical),
                                      App(2, "train", AppClass::kBestEffort)};
  source.apps = apps;
  const Parsed parsed = Parse(FormatOpenMetrics(source));
  EXPECT_EQ(parsed.Find("gpushare_info", "policy", "adaptive").labels.at("device"), "h200");
  EXPECT_EQ(parsed.Find("gpushare_launches_total").value, "123456789012345");
  EXPECT_EQ(parsed.Find("gpushare_busy_sm_seconds_total").value, "2.5");
  EXPECT_EQ(parsed.families.at("gpushare_busy_sm_seconds").unit, "seconds");
  EXPECT_NEAR(std::stod(parsed.Find("gpushare_prediction_error_ratio").value), 0.0125, 1e-15);
  EXPECT_EQ(parsed.Find("gpushare_device_lost").value, "1");
  EXPECT_NEAR(std::stod(parsed.Find("gpushare_eviction_latency_seconds", "at", "p99").value), 40e-6,
              1e-15);
  EXPECT_EQ(parsed.Find("gpushare_app_submitted_total", "app", "train").value, "102");
  EXPECT_EQ(parsed.Find("gpushare_app_submitted_total", "app", "train").labels.at("class"), "BE");
  EXPECT_EQ(parsed.Find("gpushare_app_device_seconds_total", "app", "chat").value, "1.5");
  EXPECT_NEAR(std::stod(parsed.Find("gpushare_app_latency_seconds", "at", "p50").value), 667e-6,
              1e-15);
}

TEST(OpenMetricsTest, AnLcAppHasItsMedianBesideItsP99AndABeAppNeither) {
  const std::vector<AppStats> apps = {App(1, "chat", AppClass::kLatencyCritical),
                                      App(2, "train", AppClass::kBestEffort)};
  std::vector<AppGuarantee> guarantees(2);
  guarantees[0].app_class = AppClass::kLatencyCritical;
  guarantees[0].p50_ns = 600'000;
  guarantees[0].p99_ns = 1'500'000;
  guarantees[0].p50_over_solo = 1.25;
  guarantees[0].p99_over_alone = 1.5;
  MetricsSource source;
  source.apps = apps;
  source.guarantees = guarantees;
  const Parsed parsed = Parse(FormatOpenMetrics(source));
  const auto value = [&](const std::string& name) {
    return std::stod(parsed.Find(name, "app", "chat").value);
  };
  EXPECT_NEAR(value("gpushare_app_recent_p50_seconds"), 600e-6, 1e-15);
  EXPECT_NEAR(value("gpushare_app_recent_p99_seconds"), 1500e-6, 1e-15);
  EXPECT_EQ(value("gpushare_app_recent_p50_over_solo"), 1.25);
  EXPECT_EQ(value("gpushare_app_recent_p99_over_alone"), 1.5);
  for (const Sample& sample : parsed.samples) {
    EXPECT_NE(sample.name, "gpushare_app_recent_late_ratio") << "nobody knows it";
    if (sample.name.find("gpushare_app_recent") != 0) continue;
    EXPECT_EQ(sample.labels.at("app"), "chat") << sample.name;
  }
}

TEST(OpenMetricsTest, NumbersAreSpelledAsTheFormatSays) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const auto& [value, text] :
       std::vector<std::pair<double, std::string>>{{0, "0"},
                                                   {-3, "-3"},
                                                   {8999999999999999, "8999999999999999"},
                                                   {0.5, "0.5"},
                                                   {1e16, "1e+16"},
                                                   {kInfinity, "+Inf"},
                                                   {-kInfinity, "-Inf"},
                                                   {std::nan(""), "NaN"}}) {
    MetricsSource source;
    source.scheduler.prediction_error = value;
    EXPECT_THAT(FormatOpenMetrics(source),
                HasSubstr("\ngpushare_prediction_error_ratio{simulated=\"false\"} " + text + "\n"));
  }
}

TEST(OpenMetricsTest, EverySampleSaysWhetherItWasSimulated) {
  MetricsSource source;
  const std::vector<AppStats> apps = {App(1, "chat", AppClass::kLatencyCritical)};
  source.apps = apps;
  for (bool simulated : {true, false}) {
    source.simulated = simulated;
    const Parsed parsed = Parse(FormatOpenMetrics(source));
    for (const Sample& sample : parsed.samples) {
      EXPECT_EQ(sample.labels.at("simulated"), simulated ? "true" : "false") << sample.name;
    }
  }
}

TEST(OpenMetricsTest, NamesCannotBreakTheText) {
  MetricsSource source;
  source.device_name = "a\"b\\c\nd";
  const std::vector<AppStats> apps = {
      App(1, "x\"} 1\ngpushare_launches_total{} 99", AppClass::kBestEffort),
      App(2, std::string("tab\tbell\a"), AppClass::kBestEffort),
      App(3, "same", AppClass::kBestEffort), App(4, "same", AppClass::kBestEffort)};
  source.apps = apps;
  const Parsed parsed = Parse(FormatOpenMetrics(source));
  EXPECT_EQ(parsed.Find("gpushare_info").labels.at("device"), "a\"b\\c\nd");
  EXPECT_EQ(parsed.Find("gpushare_app_submitted_total", "app_id", "1").labels.at("app"),
            "x\"} 1\ngpushare_launches_total{} 99");
  EXPECT_EQ(parsed.Find("gpushare_app_submitted_total", "app_id", "2").labels.at("app"),
            "tab?bell?");
}

TEST(OpenMetricsTest, NumbersThatAreNotFiniteAreSpelledAsTheFormatSays) {
  MetricsSource source;
  source.scheduler.prediction_error = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(Parse(FormatOpenMetrics(source)).Find("gpushare_prediction_error_ratio").value, "NaN");
  source.scheduler.prediction_error = std::numeric_limits<double>::infinity();
  EXPECT_EQ(Parse(FormatOpenMetrics(source)).Find("gpushare_prediction_error_ratio").value, "+Inf");
}

}  // namespace
}  // namespace gpushare::core
