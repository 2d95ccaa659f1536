// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "schema/options.h"

namespace recmill {

/// `emulated`: a GPU that the CPU plays.
enum class DeviceKind { cpu, cuda, emulated };
template <>
struct EnumNames<DeviceKind> {
  static constexpr std::array names{std::pair{DeviceKind::cpu, std::string_view{"cpu"}},
                                    std::pair{DeviceKind::cuda, std::string_view{"cuda"}},
                                    std::pair{DeviceKind::emulated, std::string_view{"emulated"}}};
};

}  // namespace recmill
