// SPDX-License-Identifier: Apache-2.0
// The one function of this library that a program finds.
#include <ATen/Version.h>

#include <map>
#include <string_view>

#include "model/torch/float64_model.h"
#include "model/torch/host.h"
#include "model/torch/tensor_models.h"
#include "model/torch/torch_device.h"
#include "model/torch/torch_layers.h"
#include "model/torch_build.h"

namespace caffe2 {
/// LibTorch's; no header of the wheel declares it.
const std::map<std::string, std::string>& GetBuildOptions();
}  // namespace caffe2

namespace recmill::model {
namespace {

const TorchHost* the_host = nullptr;

// Headers know the version that was compiled against; this is the one which is loaded.
// at::show_config() says it too, but looks for GPUs, which LibTorch does once in a process
// (torch_device.h).
std::string loaded_version() {
  const auto& options = caffe2::GetBuildOptions();
  const auto version = options.find("TORCH_VERSION");
  RECMILL_CHECK(version != options.end());
  return version->second + ", " + at::get_cpu_capability();
}

std::unique_ptr<Model> make_with_tensors(const ModelOptions& options, const ModelSpec& spec,
                                         uint64_t seed) {
  return make_tensor_model(options, spec, seed);
}

constexpr TorchLibrary kLibrary{loaded_version, make_with_tensors, make_float64_tensors,
                                load_torch_cuda, make_torch_layers};

}  // namespace

const TorchHost& host() {
  return *the_host;
}

}  // namespace recmill::model

extern "C" __attribute__((visibility("default"))) const recmill::model::TorchLibrary*
recmill_torch_library(const char* build, const recmill::model::TorchHost* host) {
  if (std::string_view(build) != recmill::model::torch_build()) return nullptr;
  recmill::model::the_host = host;
  return &recmill::model::kLibrary;
}
