// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

namespace recmill {

/// A figure in KiB of a file of /proc, in bytes: `key` "VmRSS:" of "/proc/self/status". 0 where it
/// is not there.
int64_t proc_bytes(const char* path, std::string_view key);

}  // namespace recmill
