// SPDX-License-Identifier: Apache-2.0
// recmill VERB CONFIG.toml [--set key=value ...] [--json]
#include <CLI/CLI.hpp>

#include "cli/verb.h"
#include "program/program.h"

namespace recmill::cli {
namespace {

void add_verbs(CLI::App& app, Chosen& chosen) {
  app.require_subcommand(1);
  add_train(app, chosen);
  add_eval(app, chosen);
  add_predict(app, chosen);
  add_plan(app, chosen);
  add_tune(app, chosen);
  add_compile(app, chosen);
  add_verify(app, chosen);
  add_launch(app, chosen);
  add_server(app, chosen);
  add_synth(app, chosen);
  add_convert(app, chosen);
  add_bench(app, chosen);
  add_inspect(app, chosen);
  add_export(app, chosen);
  add_import(app, chosen);
  add_stats(app, chosen);
  add_init(app, chosen);
  add_reference(app, chosen);
  add_version(app, chosen);
}

}  // namespace
}  // namespace recmill::cli

int main(int argc, char** argv) {
  return recmill::program::run_program(
      {"recmill", "Recmill trains recommendation models.", recmill::cli::add_verbs}, argc, argv);
}
