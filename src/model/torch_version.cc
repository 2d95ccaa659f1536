// SPDX-License-Identifier: Apache-2.0
#include "model/torch_version.h"

#include <ATen/Version.h>

#include "base/status.h"

namespace recmill::model {

// Headers know the version that was compiled against; only show_config() that which is loaded.
std::string torch_version() {
  const std::string config = at::show_config(), key = "TORCH_VERSION=";
  const size_t at = config.find(key);
  RECMILL_CHECK(at != std::string::npos, config);
  const size_t begin = at + key.size();
  return config.substr(begin, config.find(',', begin) - begin) + ", " + at::get_cpu_capability();
}

}  // namespace recmill::model
