// SPDX-License-Identifier: Apache-2.0
// The verbs of the program. Each is in a file of its own, verb_NAME.cc, and adds itself to the
// command line; the one that the user chose leaves what is to be run in Chosen.
#pragma once

#include <atomic>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "base/json/json_fwd.h"
#include "base/status.h"
#include "program/program.h"
#include "run/folder/progress.h"

namespace recmill::cli {

using program::Chosen;

/// A configuration file and --set, as most verbs take them.
struct ConfigArguments {
  std::string path;
  std::vector<std::string> sets;
};
void add_config_arguments(CLI::App& verb, ConfigArguments& arguments);

/// The path of this program.
Result<std::string> own_path();

/// How progress is shown: on a terminal, as lines, or not at all (--quiet).
train::Progress::Style progress_style(bool quiet);

/// Becomes true at the first SIGINT or SIGTERM; the second one ends the program.
const std::atomic<bool>& watch_interrupts();

/// Refuses a file or folder that is there, unless --overwrite was given.
Status refuse_existing(const std::string& path, bool overwrite);

/// Before work whose result goes to the file of `option`, whether it may be written there: nothing
/// is replaced without `overwrite`, and its folder is there. An empty path is no file.
Status refuse_unwritable(const std::string& option, const std::string& path, bool overwrite);

/// A check of an option's value for CLI11: "must be at least LEAST and at most MOST, is VALUE", the
/// latter bound left out where it is infinite.
std::function<std::string(const std::string&)> within(
    double least, double most = std::numeric_limits<double>::infinity());

/// A result on stdout: one JSON object on a line, or to be read a line for each value, those of
/// objects in it too, numbers to six digits.
void print_result(const Json& result, bool json);

void add_train(CLI::App& app, Chosen& chosen);
void add_eval(CLI::App& app, Chosen& chosen);
void add_predict(CLI::App& app, Chosen& chosen);
void add_plan(CLI::App& app, Chosen& chosen);
void add_plan_hotset(CLI::App& verb, Chosen& chosen);
void add_tune(CLI::App& app, Chosen& chosen);
void add_compile(CLI::App& app, Chosen& chosen);
void add_verify(CLI::App& app, Chosen& chosen);
void add_launch(CLI::App& app, Chosen& chosen);
void add_server(CLI::App& app, Chosen& chosen);
void add_synth(CLI::App& app, Chosen& chosen);
void add_convert(CLI::App& app, Chosen& chosen);
void add_bench(CLI::App& app, Chosen& chosen);
void add_inspect(CLI::App& app, Chosen& chosen);
void add_export(CLI::App& app, Chosen& chosen);
void add_import(CLI::App& app, Chosen& chosen);
void add_stats(CLI::App& app, Chosen& chosen);
void add_init(CLI::App& app, Chosen& chosen);
void add_reference(CLI::App& app, Chosen& chosen);
void add_version(CLI::App& app, Chosen& chosen);

}  // namespace recmill::cli
