// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense_layer/onednn_version.h"

#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>

#include "kernels/dense_layer/open_onednn.h"

namespace recmill::kernels::dense_layer {

std::string onednn_version() {
  if (const Status opened = open_onednn(); !opened.ok()) return opened.message();
  const dnnl_version_t& version = *dnnl_version();
  return fmt::format("{}.{}.{}, ISA {:#x}", version.major, version.minor, version.patch,
                     static_cast<unsigned>(dnnl_get_effective_cpu_isa()));
}

}  // namespace recmill::kernels::dense_layer
