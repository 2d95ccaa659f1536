// SPDX-License-Identifier: Apache-2.0
// The tuning record: what was tuned, where, on what, and with what result. docs/formats/tuning.md.
#pragma once

#include <string>
#include <vector>

#include "base/files.h"
#include "kernels/tune/tuning.h"
#include "schema/table_spec.h"

namespace recmill::kernels::tune {

/// What a record holds good for.
struct TunedFor {
  std::string machine;   // processor and number of cores
  std::string compiler;  // that built the kernels
  std::string commit;    // of the program; said, not compared
  std::string workload;  // name of the run; said, not compared
  std::string model;     // model_digest()
  int64_t threads = 0;
  bool deterministic = true;   // only schedules that keep the order of summation
  std::string templates = {};  // digest of the texts of a user's own; empty: there were none
  bool operator==(const TunedFor&) const = default;
};

/// This program's compiler.
std::string this_compiler();

/// A digest of what kernels see of a model: sizes of tables, and how features look them up.
std::string model_digest(const ModelSpec& model);

/// Nanoseconds of a batch with the chosen schedules, measured in alternation: by the templates'
/// bodies, and by code generated for the schedules, which finds them by branches or by pointers.
/// All 0: not measured.
struct CodeTimes {
  double prebuilt = 0.0, branches = 0.0, pointers = 0.0;
  bool operator==(const CodeTimes&) const = default;
};

/// Whether generated code that takes `generated` of CodeTimes was faster by enough to be worth a
/// compiler.
bool is_worth_compiling(const CodeTimes& times, double generated);

struct FamilyTuning {
  FamilyTimes times;
  Choice choice;                      // choose(times)
  double measured_nanoseconds = 0.0;  // of a batch, fused, measured again after the choice
  double default_nanoseconds = 0.0;   // of a batch with the default schedules, beside it
  CodeTimes code;
  std::vector<double> class_nanoseconds = {};  // [classes], measure_classes()
  double task_nanoseconds = 0.0;  // of a batch: measure_tasks(), beside measured_nanoseconds
  bool operator==(const FamilyTuning&) const = default;
};

struct TuningRecord {
  TunedFor of;
  std::vector<FamilyTuning> families;
  double memory_rate = 0.0;  // bytes a second that all threads read, memory_rate()

  /// Null: the family was not tuned.
  const FamilyTuning* family(const std::string& name) const;
  bool operator==(const TuningRecord&) const = default;
};

/// The record's bytes: the same record, the same bytes.
Result<std::string> record_text(const TuningRecord& record);
/// Errors name `source`: a damaged byte, another version, a choice that does not follow from the
/// times.
Result<TuningRecord> parse_record(const std::string& text, const std::string& source);

/// Why a record made for `record` is not good for `here`; empty: it is.
std::string foreign_because(const TunedFor& record, const TunedFor& here);

}  // namespace recmill::kernels::tune
