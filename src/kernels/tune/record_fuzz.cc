// SPDX-License-Identifier: Apache-2.0
// Tuning records: a record that is read at all is written back to the same bytes, and its choice
// names candidates of its own that were not refused.
#include <algorithm>

#include "base/hash.h"
#include "base/testing/fuzz.h"
#include "kernels/tune/record.h"

namespace recmill::fuzz {

using namespace kernels::tune;  // NOLINT: this file is about nothing else

namespace {

FamilyTuning tuning_of(const char* family, const char* kind, const char* schedule) {
  FeatureClass of{{}, {0, 3}, kind};
  of.shape.rows = 10;
  of.shape.dim = 8;
  const auto chosen = *kernels::parse_schedule(schedule);
  FamilyTuning made;
  made.times = {
      family,
      {of},
      {{{64, 1024},
        {{{{chosen, 12.5, 0.1, ""}, {{"b", {}}, 0.0, 0.0, "its answer is wrong"}}, 40.0, 8.0}},
        33.0},
       {{4096, 0}, {{{{{"b", {}}, 13.0, 0.2, ""}}, 40.0, 8.0}}, 35.0}}};
  made.times.values[0].spilled_bytes = 16;  // the other one is chosen, which is slower
  made.choice = *choose(made.times);
  made.measured_nanoseconds = 30.0;
  made.class_nanoseconds = {25.0};
  return made;
}

std::string with_checksum(const std::string& body) {
  char checksum[9];
  std::snprintf(checksum, sizeof(checksum), "%08x", crc32c(std::as_bytes(std::span(body))));
  return std::string(checksum) + "\n" + body;
}

}  // namespace

// Without their checksums, which feed() puts before them.
std::vector<std::string> seeds() {
  std::vector<std::string> all;
  const FamilyTuning pool = tuning_of("embedding_pool", "", "bags fetch=64 held=8");
  const FamilyTuning update = tuning_of("row_update", "adam", "dense_sums leaves=8");
  for (const std::vector<FamilyTuning>& families :
       {std::vector<FamilyTuning>{pool}, {update}, {pool, update}, {}}) {
    const std::string text =
        *record_text({{"machine", "gcc", "abc", "name", "0123", 2, true}, families, 5e10});
    all.push_back(text.substr(text.find('\n') + 1));
  }
  return all;
}

void feed(const std::string& bytes) {
  const auto record = parse_record(with_checksum(bytes), "r.json");
  if (!record.ok()) {
    RECMILL_CHECK(record.status().message().find("r.json: ") == 0, record.status().message());
    return;
  }
  const auto text = record_text(*record);
  RECMILL_CHECK(text.ok());
  const auto again = parse_record(*text, "r.json");
  RECMILL_CHECK(again.ok() && *record_text(*again) == *text);
  for (const FamilyTuning& family : record->families) {
    RECMILL_CHECK(family.choice.schedules.size() == family.times.classes.size());
    for (const ChosenSchedule& chosen : family.choice.schedules)
      RECMILL_CHECK(kernels::parse_schedule(chosen.schedule.name()).ok());
  }
}

}  // namespace recmill::fuzz
