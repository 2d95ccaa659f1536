// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <memory>

#include "base/json/json.h"
#include "cli/verb.h"
#include "cli/versions.h"

namespace recmill::cli {

void add_version(CLI::App& app, Chosen& chosen) {
  auto json = std::make_shared<bool>(false);
  CLI::App* verb = app.add_subcommand(
      "version", "print versions of the build and of the libraries that it runs on");
  verb->add_flag("--json", *json, "print one JSON object");
  verb->callback([json, &chosen] {
    chosen.action = [json] {
      print_result(versions(), *json);
      return Status();
    };
  });
}

}  // namespace recmill::cli
