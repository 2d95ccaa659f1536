// SPDX-License-Identifier: Apache-2.0
// Numbers of known sizes for what the CPU and kernels both read: NVRTC has no <cstdint>.
#pragma once

namespace recmill {

using u8 = unsigned char;
using i16 = short;
using u16 = unsigned short;
using i32 = int;
using u32 = unsigned;
using i64 = long;
using u64 = unsigned long;
static_assert(sizeof(i32) == 4 && sizeof(i64) == 8);  // int32_t and int64_t, on Linux

}  // namespace recmill
