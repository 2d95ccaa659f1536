// SPDX-License-Identifier: Apache-2.0
#include "model/torch_version.h"

#include <ATen/Version.h>

#include <map>

#include "base/status.h"

namespace caffe2 {
/// LibTorch's; no header of the wheel declares it.
const std::map<std::string, std::string>& GetBuildOptions();
}  // namespace caffe2

namespace recmill::model {

// Headers know the version that was compiled against; this is the one which is loaded.
// at::show_config() says it too, but looks for GPUs, which LibTorch does once in a process
// (torch_device.h).
std::string torch_version() {
  const auto& options = caffe2::GetBuildOptions();
  const auto version = options.find("TORCH_VERSION");
  RECMILL_CHECK(version != options.end());
  return version->second + ", " + at::get_cpu_capability();
}

}  // namespace recmill::model
