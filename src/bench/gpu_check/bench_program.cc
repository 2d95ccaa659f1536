// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu_check/bench_program.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>

#include "base/json/json.h"

namespace recmill::bench {
namespace {

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

}  // namespace

int fail_bench_program(const Status& status) {
  std::fprintf(stderr, "gpu_check: %s\n", status.message().c_str());
  return status.code() == Status::Code::bad_request ? 2 : 1;
}

int run_bench_program(const std::vector<std::string>& arguments, const Bench& run) {
  const auto options = parse(arguments);
  if (!options.ok()) return fail_bench_program(options.status());
  const Status status = run(*options, [&](const BenchLine& line) {
    std::printf("%s\n", to_json(line, *options).dump().c_str());
    std::fflush(stdout);
  });
  return status.ok() ? 0 : fail_bench_program(status);
}

}  // namespace recmill::bench
