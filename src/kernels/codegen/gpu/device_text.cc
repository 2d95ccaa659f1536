// SPDX-License-Identifier: Apache-2.0
#include "kernels/codegen/gpu/device_text.h"

#include <algorithm>

#include "kernels/codegen/embedded_texts.h"

namespace recmill::kernels::codegen {

std::string device_text(std::initializer_list<std::string_view> headers) {
  std::string all;
  for (const std::string_view text : headers) {
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view line = text.substr(at, end - at);
      // The emulator's own headers stay: NVRTC does not come by.
      const bool is_left_out =
          line.starts_with("#pragma once") || line.starts_with("// SPDX") ||
          (line.starts_with("#include") && line.find("/emulation/") == line.npos);
      if (!is_left_out) all.append(line).append("\n");
      at = end + 1;
    }
  }
  return all;
}

const char* weight_type(RowPrecision precision) {
  return precision == RowPrecision::float32    ? "Float32"
         : precision == RowPrecision::bfloat16 ? "BFloat16"
                                               : "Float16";
}

std::vector<std::pair<std::string, std::string>> emulated_headers() {
  return {{"device/grid.h", std::string(grid_text())},
          {"device/kernel_types.h", std::string(kernel_types_text())},
          {"device/emulation/thread_state.h", std::string(thread_state_text())},
          {"device/emulation/kernel_language.h", std::string(kernel_language_text())}};
}

}  // namespace recmill::kernels::codegen
