// SPDX-License-Identifier: Apache-2.0
// The benchmarks of `make gpu-check`: what `recmill bench ... --device cuda --json` prints, from a
// program that needs neither LibTorch nor any other big third party.
//
//   gpu_check_bench embedding|kernels [--device cuda] [--threads 2] [--pairs 7] [--scale 0]
//                   [--case NAME] [--python python3] [--scripts bench/rivals] [--commit unknown]
//                   [--no-rivals]
//   gpu_check_bench page LINES.jsonl PAGE.html
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "base/files.h"
#include "cli/bench/bench.h"
#include "cli/bench/embedding/embedding_bench.h"
#include "cli/bench/kernels/gpu_kernels_bench.h"
#include "cli/gpu_page.h"

namespace recmill::cli {
namespace {

int fail(const Status& status) {
  std::fprintf(stderr, "gpu_check_bench: %s\n", status.message().c_str());
  return status.code() == Status::Code::bad_request ? 2 : 1;
}

/// Every argument but --no-rivals has a value.
Result<BenchOptions> parse(const std::vector<std::string>& arguments) {
  BenchOptions options;
  options.device = DeviceKind::cuda;
  const std::map<std::string, std::string*> texts{{"--python", &options.python},
                                                  {"--scripts", &options.scripts},
                                                  {"--commit", &options.commit}};
  for (size_t i = 1; i < arguments.size(); ++i) {
    const std::string& name = arguments[i];
    if (name == "--no-rivals") {
      options.rivals = false;
      continue;
    }
    if (i + 1 == arguments.size()) return Status::BadRequest(name + ": a value is missing");
    const std::string& value = arguments[++i];
    if (const auto text = texts.find(name); text != texts.end()) {
      *text->second = value;
    } else if (name == "--device") {
      if (value != "cuda" && value != "emulated")
        return Status::BadRequest("--device: '" + value + "' is neither cuda nor emulated");
      options.device = value == "cuda" ? DeviceKind::cuda : DeviceKind::emulated;
    } else if (name == "--case") {
      options.cases.push_back(value);
    } else if (name == "--threads") {
      options.threads = std::max(1, std::atoi(value.c_str()));
    } else if (name == "--pairs") {
      options.pairs = std::max(1, std::atoi(value.c_str()));
    } else if (name == "--scale") {
      options.scale = std::atof(value.c_str());
    } else {
      return Status::BadRequest("'" + name + "' is no argument");
    }
  }
  return options;
}

using Bench = Status (*)(const BenchOptions&, const BenchSink&);

int bench(const std::vector<std::string>& arguments, Bench run) {
  const auto options = parse(arguments);
  if (!options.ok()) return fail(options.status());
  const Status status = run(*options, [&](const BenchLine& line) {
    std::printf("%s\n", to_json(line, *options).dump().c_str());
    std::fflush(stdout);
  });
  return status.ok() ? 0 : fail(status);
}

Status write_page(const std::string& from, const std::string& to) {
  RECMILL_ASSIGN_OR_RETURN(const std::string text, read_text(posix_files(), from));
  std::vector<Json> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) lines.push_back(Json::parse(text.substr(at, end - at), nullptr, false));
    if (end > at && lines.back().is_discarded())
      return Status::Failed(from + ": line " + std::to_string(lines.size()) + " is no JSON");
    at = end + 1;
  }
  return write_atomically(posix_files(), to, gpu_page(lines));
}

}  // namespace
}  // namespace recmill::cli

int main(int count, char** values) {
  using namespace recmill::cli;
  const std::vector<std::string> arguments(values + 1, values + count);
  if (!arguments.empty() && arguments[0] == "embedding")
    return bench(arguments, run_embedding_bench);
  if (!arguments.empty() && arguments[0] == "kernels")
    return bench(arguments, run_gpu_kernels_bench);
  if (arguments.size() == 3 && arguments[0] == "page") {
    const recmill::Status status = write_page(arguments[1], arguments[2]);
    return status.ok() ? 0 : fail(status);
  }
  std::fprintf(stderr,
               "usage: gpu_check_bench embedding|kernels [OPTION VALUE]... | page LINES PAGE\n");
  return 2;
}
