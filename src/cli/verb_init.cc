// SPDX-License-Identifier: Apache-2.0
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/json/json.h"
#include "cli/verb.h"
#include "reader/guess/guess_schema.h"

namespace recmill::cli {
namespace {

struct InitArguments {
  std::string data, out, label;
  bool overwrite = false, json = false;
};

Json to_json(const reader::SchemaGuess& guess) {
  Json tables = Json::array();
  for (const reader::TableGuess& table : guess.tables) {
    tables.push_back(
        {{"column", table.column}, {"distinct", table.distinct}, {"rows", table.rows}});
  }
  return {{"format", std::string(name_of(guess.options.format))},
          {"sampled_rows", guess.sampled_rows},
          {"estimated_rows", guess.estimated_rows},
          {"tables", std::move(tables)}};
}

Status write_config(const InitArguments& arguments) {
  Files& files = posix_files();
  RECMILL_RETURN_IF_ERROR(refuse_unwritable("--out", arguments.out, arguments.overwrite));
  RECMILL_ASSIGN_OR_RETURN(const auto guess,
                           reader::guess_schema(files, arguments.data, arguments.label));
  if (!arguments.out.empty()) {
    RECMILL_RETURN_IF_ERROR(write_atomically(files, arguments.out, guess.toml));
  }
  Json result = to_json(guess);
  if (arguments.json) {
    result["out"] = arguments.out;
    if (arguments.out.empty()) result["toml"] = guess.toml;
    print_result(result, true);
  } else if (arguments.out.empty()) {
    std::fputs(guess.toml.c_str(), stdout);
  } else {
    result["tables"] = guess.tables.size();
    result["out"] = arguments.out;
    print_result(result, false);
  }
  return {};
}

}  // namespace

void add_init(CLI::App& app, Chosen& chosen) {
  auto arguments = std::make_shared<InitArguments>();
  CLI::App* verb = app.add_subcommand(
      "init", "guess a configuration from text, JSON lines, libsvm, Parquet, Arrow IPC or ORC");
  verb->add_option("data", arguments->data, "a file, a folder or a pattern")->required();
  verb->add_option("--out", arguments->out, "TOML file to write; else it is printed");
  verb->add_option("--label", arguments->label, "the column of the label; else it is guessed");
  verb->add_flag("--overwrite", arguments->overwrite, "replace a file that is there");
  verb->add_flag("--json", arguments->json, "print what was guessed as one JSON object");
  verb->callback(
      [arguments, &chosen] { chosen.action = [arguments] { return write_config(*arguments); }; });
}

}  // namespace recmill::cli
