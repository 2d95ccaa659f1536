// SPDX-License-Identifier: Apache-2.0
// Device code as one text that includes nothing which is not in it.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schema/table_spec.h"

namespace recmill::kernels::codegen {

/// The headers one after the other, each behind all that it includes, without their #include lines.
/// What they need of the standard library they have of device/std_for_kernels.cuh, and on the
/// emulator of device/emulation/kernel_language.h.
std::string device_text(std::initializer_list<std::string_view> headers);

/// The name in device code of how weights are stored.
const char* weight_type(RowPrecision precision);

/// What a text includes where it is compiled for the emulator: (name, text).
std::vector<std::pair<std::string, std::string>> emulated_headers();

}  // namespace recmill::kernels::codegen
