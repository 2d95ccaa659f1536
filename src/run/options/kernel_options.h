// SPDX-License-Identifier: Apache-2.0
// The section [kernels].
#pragma once

#include <string>
#include <vector>

#include "kernels/codegen/dispatch.h"
#include "schema/options.h"

namespace recmill::train {

/// Every feature the default schedule, or the one that `recmill tune` chose for it.
enum class KernelMode { standard, tuned };

/// What to do in tuned mode without a record that is good for this run.
enum class OnMissingSchedule { error, standard };

/// Whether tuned schedules run as code generated for them.
enum class GeneratedCode { automatic, always, never };

/// What to do where generated code cannot be had.
enum class OnFailedCompilation { error, prebuilt };

/// What stands in for options that are empty: no options of their own, the program asks its
/// environment for them.
struct UsersTools {
  std::string compiler = "c++";
  std::string cache;
};

struct KernelOptions {
  KernelMode mode = KernelMode::standard;
  std::string record;
  OnMissingSchedule on_missing_schedule = OnMissingSchedule::error;
  GeneratedCode generated = GeneratedCode::automatic;
  kernels::codegen::Dispatch dispatch = kernels::codegen::Dispatch::branches;
  OnFailedCompilation on_failed_compilation = OnFailedCompilation::error;
  std::string compiler;
  std::string cache;
  std::vector<std::string> templates;
  UsersTools users;
};
template <typename Visitor>
void describe(Visitor& v, KernelOptions& o) {
  v("mode", o.mode, "schedules of embedding kernels: default, or tuned (as `recmill tune` chose)");
  v("record", o.record,
    "file of the tuning record; empty: tuned/NAME.json, of a GPU tuned/NAME.cuda.json or "
    "tuned/NAME.emulated.json");
  v("on_missing_schedule", o.on_missing_schedule,
    "mode = \"tuned\" without a record that is good for this run: error, or default (and a "
    "warning)");
  v("generated", o.generated,
    "tuned schedules as code generated and compiled for them: always, never, or auto (where it was "
    "at least 3 % faster when they were tuned); with a GPU as device it always is");
  v("dispatch", o.dispatch,
    "how generated code finds a feature's function: branches, or pointers to functions");
  v("on_failed_compilation", o.on_failed_compilation,
    "where generated code cannot be had: error, or prebuilt (and a warning); with a GPU as device "
    "it is an error");
  v("compiler", o.compiler,
    "C++ compiler for generated code and templates, and for all kernels of device = \"emulated\"; "
    "empty: $CXX, or c++");
  v("cache", o.cache,
    "folder of compiled code; empty: recmill in $XDG_CACHE_HOME, or in .cache of the home folder");
  v("templates", o.templates,
    "files with templates of your own, for device = \"cpu\" (docs/ADDING.md)");
}

}  // namespace recmill::train

namespace recmill {
template <>
struct EnumNames<train::KernelMode> {
  static constexpr std::array names{
      std::pair{train::KernelMode::standard, std::string_view{"default"}},
      std::pair{train::KernelMode::tuned, std::string_view{"tuned"}}};
};
template <>
struct EnumNames<train::OnMissingSchedule> {
  static constexpr std::array names{
      std::pair{train::OnMissingSchedule::error, std::string_view{"error"}},
      std::pair{train::OnMissingSchedule::standard, std::string_view{"default"}}};
};
template <>
struct EnumNames<train::GeneratedCode> {
  static constexpr std::array names{
      std::pair{train::GeneratedCode::automatic, std::string_view{"auto"}},
      std::pair{train::GeneratedCode::always, std::string_view{"always"}},
      std::pair{train::GeneratedCode::never, std::string_view{"never"}}};
};
template <>
struct EnumNames<train::OnFailedCompilation> {
  static constexpr std::array names{
      std::pair{train::OnFailedCompilation::error, std::string_view{"error"}},
      std::pair{train::OnFailedCompilation::prebuilt, std::string_view{"prebuilt"}}};
};
}  // namespace recmill
