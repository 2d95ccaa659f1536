// SPDX-License-Identifier: Apache-2.0
#include "kernels/tune/record.h"

#include <fmt/format.h>

#include "base/hash.h"
#include "base/json/json.h"
#include "base/json/json_keys.h"

namespace recmill::kernels::tune {
namespace {

constexpr int64_t kVersion = 8;
/// Generated code has to be so much faster.
constexpr double kWorthCompiling = 1.03;

std::string checksum_of(const std::string& text) {
  return fmt::format("{:08x}", crc32c(std::as_bytes(std::span(text))));
}

Json choice_to_json(const Choice& choice) {
  Json json{{"tile", choice.value.tile},
            {"l2_bytes", choice.value.l2_bytes},
            {"predicted_nanoseconds", choice.predicted_nanoseconds},
            {"schedules", Json::array()}};
  if (choice.value.blocks > 0) json["blocks"] = choice.value.blocks;
  for (const ChosenSchedule& chosen : choice.schedules)
    json["schedules"].push_back({{"schedule", chosen.schedule.name()},
                                 {"per_lookup", chosen.per_lookup},
                                 {"per_sample", chosen.per_sample}});
  return json;
}

Result<FamilyTuning> family_from_json(const Json& json, const std::string& source) {
  FamilyTuning family;
  KeyReader read{json, source, "families[].", {}};
  read("measured_nanoseconds", family.measured_nanoseconds);
  read("default_nanoseconds", family.default_nanoseconds);
  read("prebuilt_nanoseconds", family.code.prebuilt);
  read("branches_nanoseconds", family.code.branches);
  read("pointers_nanoseconds", family.code.pointers);
  read("class_nanoseconds", family.class_nanoseconds);
  read("task_nanoseconds", family.task_nanoseconds);
  RECMILL_RETURN_IF_ERROR(read.status);
  if (!json.contains("times")) return Status::Failed(source + ": no key families[].times");
  auto times = family_times_from_json(json["times"]);
  if (!times.ok()) return Status::Failed(source + ": " + times.status().message());
  family.times = *std::move(times);
  if (family.class_nanoseconds.size() != family.times.classes.size())
    return Status::Failed(source + ": families[].class_nanoseconds is not one a class");
  auto choice = choose(family.times);
  if (!choice.ok()) return Status::Failed(source + ": " + choice.status().message());
  family.choice = *std::move(choice);
  if (!json.contains("choice") || json["choice"] != choice_to_json(family.choice))
    return Status::Failed(source + ": families[].choice does not follow from its times");
  return family;
}

}  // namespace

std::string this_compiler() {
#ifdef __clang__
  return std::string("clang ") + __clang_version__;
#else
  return std::string("gcc ") + __VERSION__;
#endif
}

std::string model_digest(const ModelSpec& model) {
  std::string text;
  for (const TableSpec& table : model.tables)
    text += fmt::format("{} {} {} {} {};", table.rows, table.dim, name_of(table.precision),
                        name_of(table.optimizer.kind), table.frozen);
  for (const FeatureSpec& feature : model.features)
    text += fmt::format("{} {} {};", feature.table, name_of(feature.pooling), feature.weighted);
  return fmt::format("{:016x}", hash_bytes(text));
}

bool is_worth_compiling(const CodeTimes& times, double generated) {
  return generated > 0.0 && times.prebuilt >= kWorthCompiling * generated;
}

const FamilyTuning* TuningRecord::family(const std::string& name) const {
  for (const FamilyTuning& family : families) {
    if (family.times.family == name) return &family;
  }
  return nullptr;
}

Result<std::string> record_text(const TuningRecord& record) {
  Json json{{"version", kVersion},
            {"machine", record.of.machine},
            {"compiler", record.of.compiler},
            {"commit", record.of.commit},
            {"workload", record.of.workload},
            {"model", record.of.model},
            {"threads", record.of.threads},
            {"deterministic", record.of.deterministic},
            {"memory_rate", record.memory_rate},
            {"families", Json::array()}};
  if (!record.of.templates.empty()) json["templates"] = record.of.templates;
  for (const FamilyTuning& family : record.families)
    json["families"].push_back({{"choice", choice_to_json(family.choice)},
                                {"measured_nanoseconds", family.measured_nanoseconds},
                                {"default_nanoseconds", family.default_nanoseconds},
                                {"prebuilt_nanoseconds", family.code.prebuilt},
                                {"branches_nanoseconds", family.code.branches},
                                {"pointers_nanoseconds", family.code.pointers},
                                {"class_nanoseconds", family.class_nanoseconds},
                                {"task_nanoseconds", family.task_nanoseconds},
                                {"times", to_json(family.times)}});
  const std::string body = json.dump() + "\n";
  return checksum_of(body) + "\n" + body;
}

Result<TuningRecord> parse_record(const std::string& text, const std::string& source) {
  const size_t line = text.find('\n');
  if (line == std::string::npos || text.substr(0, line) != checksum_of(text.substr(line + 1)))
    return Status::Failed(source + ": damaged, its checksum does not hold; tune again");
  const Json json = Json::parse(text.substr(line + 1), nullptr, false);
  TuningRecord record;
  KeyReader read{json, source, "", {}};
  read.version(kVersion);
  read("machine", record.of.machine);
  read("compiler", record.of.compiler);
  read("commit", record.of.commit);
  read("workload", record.of.workload);
  read("model", record.of.model);
  read("threads", record.of.threads);
  read("deterministic", record.of.deterministic);
  if (json.contains("templates")) read("templates", record.of.templates);
  read("memory_rate", record.memory_rate);
  RECMILL_RETURN_IF_ERROR(read.status);
  if (!json.contains("families") || !json["families"].is_array())
    return Status::Failed(source + ": no list families");
  for (const Json& item : json["families"]) {
    RECMILL_ASSIGN_OR_RETURN(auto family, family_from_json(item, source));
    record.families.push_back(std::move(family));
  }
  return record;
}

std::string foreign_because(const TunedFor& record, const TunedFor& here) {
  struct Compared {
    const char* what;
    const std::string &theirs, &ours;
  };
  for (const auto& [what, theirs, ours] :
       {Compared{"machine", record.machine, here.machine},
        Compared{"compiler", record.compiler, here.compiler},
        Compared{"tables and features", record.model, here.model}}) {
    if (theirs != ours)
      return fmt::format("it was tuned for {} '{}', this is '{}'", what, theirs, ours);
  }
  // Without a template that it chose a record is refused by that one's name.
  if (!record.templates.empty() && !here.templates.empty() && record.templates != here.templates)
    return fmt::format("it was tuned for kernels.templates of the digest '{}', this is '{}'",
                       record.templates, here.templates);
  if (!record.deterministic && here.deterministic)
    return "its schedules may change the order of summation, and deterministic is true";
  return "";
}

}  // namespace recmill::kernels::tune
