// SPDX-License-Identifier: Apache-2.0
// Device code as the program carries it.
#pragma once

#include <string_view>

namespace recmill::bench {

std::string_view fill_pattern_text();
std::string_view fill_rows_text();

}  // namespace recmill::bench
