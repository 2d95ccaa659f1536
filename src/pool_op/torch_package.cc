// SPDX-License-Identifier: Apache-2.0
#include "pool_op/torch_package.h"

#include <charconv>
#include <utility>

#include "kernels/codegen/compiler.h"

namespace recmill::kernels::codegen {
namespace {

// Finding it is not importing it: that takes seconds, and libraries that compiling does not need.
constexpr const char* kFind =
    "import importlib.util as u; s = u.find_spec('torch'); "
    "print(s.submodule_search_locations[0] if s else '')";
constexpr double kSeconds = 60.0;
constexpr std::pair kLeast{2, 10};

/// The number behind `#define NAME `; -1: there is none.
int defined(const std::string& text, const std::string& name) {
  const std::string mark = "#define " + name + " ";
  const size_t at = text.find(mark);
  int number = -1;
  if (at != std::string::npos)
    std::from_chars(text.data() + at + mark.size(), text.data() + text.size(), number);
  return number;
}

}  // namespace

std::vector<std::string> TorchPackage::flags() const {
  return {"-DTORCH_TARGET_VERSION=0x020a000000000000",
          "-isystem",
          folder + "/include",
          "-L" + folder + "/lib",
          "-Wl,--no-as-needed",
          "-ltorch_cpu"};
}

Result<TorchPackage> find_torch(const std::string& python, Files& files) {
  const Command command{{python, "-c", kFind}};
  const auto outcomes = run_commands({&command, 1}, 1, kSeconds);
  if (!outcomes.ok()) return Status::BadRequest("python '" + python + "': cannot be started");
  const Outcome& outcome = (*outcomes)[0];
  std::string folder = outcome.said;
  while (!folder.empty() && folder.back() == '\n') folder.pop_back();
  if (outcome.status != 0 || outcome.late || folder.find('\n') != std::string::npos)
    return Status::BadRequest("python '" + python + "': finds no PyTorch, it says: " +
                              folder.substr(0, folder.find('\n')));
  if (folder.empty())
    return Status::BadRequest("python '" + python +
                              "': has no PyTorch (no module 'torch'); --python names another");
  const auto text = read_text(files, folder + "/include/torch/headeronly/version.h");
  const std::pair version{text.ok() ? defined(*text, "TORCH_VERSION_MAJOR") : -1,
                          text.ok() ? defined(*text, "TORCH_VERSION_MINOR") : -1};
  if (version < kLeast)
    return Status::BadRequest(folder +
                              ": a PyTorch before 2.10, the first with the interface that "
                              "compiled operators need");
  return TorchPackage{folder, std::to_string(version.first) + "." + std::to_string(version.second)};
}

}  // namespace recmill::kernels::codegen
