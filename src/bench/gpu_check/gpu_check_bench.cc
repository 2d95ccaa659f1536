// SPDX-License-Identifier: Apache-2.0
// The benchmarks of `make gpu-check` that need no big third party, and its page.
//
//   gpu_check_bench embedding|kernels [OPTION VALUE]...   (bench_program.h)
//   gpu_check_bench page LINES.jsonl PAGE.html
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/json/json.h"
#include "bench/benches.h"
#include "bench/gpu_check/bench_program.h"
#include "bench/gpu_check/gpu_page.h"
#include "bench/kernels/gpu/gpu_kernels_bench.h"

namespace recmill::bench {
namespace {

Status write_page(const std::string& from, const std::string& to) {
  RECMILL_ASSIGN_OR_RETURN(const std::string text, read_text(posix_files(), from));
  std::vector<Json> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) lines.push_back(Json::parse(text.substr(at, end - at), nullptr, false));
    if (end > at && lines.back().is_discarded())
      return Status::Failed(from + ": line " + std::to_string(lines.size()) + " is not JSON");
    at = end + 1;
  }
  return write_atomically(posix_files(), to, gpu_page(lines));
}

}  // namespace
}  // namespace recmill::bench

int main(int count, char** values) {
  using namespace recmill::bench;
  const std::vector<std::string> arguments(values + 1, values + count);
  if (!arguments.empty() && arguments[0] == "embedding")
    return run_bench_program(arguments, run_embedding_bench);
  if (!arguments.empty() && arguments[0] == "kernels")
    return run_bench_program(arguments, run_gpu_kernels_bench);
  if (arguments.size() == 3 && arguments[0] == "page") {
    const recmill::Status status = write_page(arguments[1], arguments[2]);
    return status.ok() ? 0 : fail_bench_program(status);
  }
  std::fprintf(stderr,
               "usage: gpu_check_bench embedding|kernels [OPTION VALUE]... | page LINES "
               "PAGE\n");
  return 2;
}
