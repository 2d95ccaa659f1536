// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/build_info.h"
#include "cli/verb.h"

namespace recmill::cli {

void add_version(CLI::App& app, Chosen& chosen) {
  auto json = std::make_shared<bool>(false);
  CLI::App* verb = app.add_subcommand("version", "print version, commit and compiler");
  verb->add_flag("--json", *json, "print one JSON object");
  verb->callback([json, &chosen] {
    chosen.action = [json] {
      print_result(
          {{"version", build_version()}, {"commit", build_commit()}, {"compiler", __VERSION__}},
          *json);
      return Status();
    };
  });
}

}  // namespace recmill::cli
