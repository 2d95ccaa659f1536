// SPDX-License-Identifier: Apache-2.0
// The one list of benchmarks.
#include <cstdio>
#include <map>

#include "cli/bench/bench.h"
#include "cli/bench/embedding/embedding_bench.h"
#include "cli/bench/reader/reader_bench.h"

namespace recmill::cli {

Status run_bench(const std::string& name, const BenchOptions& options) {
  const std::map<std::string, Bench> benches{{"embedding", run_embedding_bench},
                                             {"reader", run_reader_bench}};
  const auto found = benches.find(name);
  if (found == benches.end()) {
    std::string names;
    for (const auto& [known, bench] : benches) names += (names.empty() ? "" : ", ") + known;
    return Status::BadRequest("no benchmark '" + name + "'; there are: " + names);
  }
  return found->second(options, [&](const BenchLine& line) {
    std::printf("%s\n", to_json(line, options).dump().c_str());
    std::fflush(stdout);
  });
}

}  // namespace recmill::cli
