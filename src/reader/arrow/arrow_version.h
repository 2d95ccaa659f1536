// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace recmill::reader {

/// Of the Arrow that is loaded.
std::string arrow_version();

}  // namespace recmill::reader
