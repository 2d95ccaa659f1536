// SPDX-License-Identifier: Apache-2.0
// recmill_bench NAME [--case NAME]... [--threads N] [--pairs N] [--no-rivals] [--commit TEXT]
#include <CLI/CLI.hpp>

#include "cli/bench/bench.h"

int main(int argc, char** argv) {
  recmill::cli::BenchOptions options;
  std::string name;
  bool no_rivals = false;
  CLI::App app("benchmarks");
  app.add_option("name", name)->required();
  app.add_option("--case", options.cases);
  app.add_option("--threads", options.threads);
  app.add_option("--pairs", options.pairs);
  app.add_option("--commit", options.commit);
  app.add_flag("--no-rivals", no_rivals);
  CLI11_PARSE(app, argc, argv);
  options.rivals = !no_rivals;
  const recmill::Status status = recmill::cli::run_bench(name, options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return status.code() == recmill::Status::Code::bad_request ? 2 : 1;
}
