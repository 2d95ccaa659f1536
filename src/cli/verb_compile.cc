// SPDX-License-Identifier: Apache-2.0
// recmill compile
#include <CLI/CLI.hpp>
#include <memory>
#include <span>

#include "base/json/json.h"
#include "cli/verb.h"
#include "config/run_config.h"
#include "tuning/compiled_op.h"

namespace recmill::cli {
namespace {

struct CompileArguments {
  ConfigArguments config;
  train::CompiledOpRequest request;
  std::string out;
  bool overwrite = false, json = false;
};

Status compile(const CompileArguments& arguments) {
  Files& files = posix_files();
  RECMILL_RETURN_IF_ERROR(refuse_unwritable("--out", arguments.out, arguments.overwrite));
  // Nothing is compiled for a file that cannot be written.
  RECMILL_RETURN_IF_ERROR(AtomicFile::create(files, arguments.out).status());
  RECMILL_ASSIGN_OR_RETURN(const config::RunConfig config,
                           config::load_run_config(arguments.config.path, arguments.config.sets));
  const auto run = train::resolve_run(config.options, files);
  if (!run.ok()) return config.locate(run.status());
  const auto made = train::compile_op(*run, arguments.request, files);
  if (!made.ok()) return config.locate(made.status());
  RECMILL_ASSIGN_OR_RETURN(const std::string bytes, read_text(files, made->library));
  RECMILL_RETURN_IF_ERROR(write_atomically(files, arguments.out, bytes));
  Json result = train::summary_of(*made);
  result["library"] = arguments.out;
  result["bytes"] = bytes.size();
  print_result(result, arguments.json);
  return {};
}

}  // namespace

void add_compile(CLI::App& app, Chosen& chosen) {
  auto arguments = std::make_shared<CompileArguments>();
  CLI::App* verb = app.add_subcommand(
      "compile",
      "compile lookups into a shared library that PyTorch loads (torch.ops.load_library)");
  add_config_arguments(*verb, arguments->config);
  verb->add_option("--out", arguments->out, "the library to write, as librecmill_NAME.so")
      ->required();
  verb->add_option("--name", arguments->request.name,
                   "name of the operator, torch.ops.recmill.NAME; default: the run's");
  verb->add_option(
          "--arch", arguments->request.architectures,
          "also compile for GPUs of this architecture, such as sm_90; repeat --arch for others")
      ->allow_extra_args(false);
  verb->add_option("--python", arguments->request.python,
                   "Python interpreter whose PyTorch the library is for")
      ->capture_default_str();
  verb->add_flag("--overwrite", arguments->overwrite, "replace the library that is there");
  verb->add_flag("--json", arguments->json, "print one JSON object");
  verb->callback(
      [arguments, &chosen] { chosen.action = [arguments] { return compile(*arguments); }; });
}

}  // namespace recmill::cli
