// SPDX-License-Identifier: Apache-2.0
// What a host's network interfaces count.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace recmill::bench {

/// Bytes that all interfaces but the loopback have sent, by the text of /proc/net/dev. None where
/// there is no such interface.
std::optional<uint64_t> sent_by_interfaces(std::string_view text);

/// Of the interfaces that this process sees, so far.
std::optional<uint64_t> sent_on_the_wire();

}  // namespace recmill::bench
