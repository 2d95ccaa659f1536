// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "schema/options.h"

namespace recmill {

/// Which ranks have a cached row in a slot (BagPipe, section 3.3): all; all, but for rows that one
/// rank uses alone; the rank that a hash names; or a rank that uses the row, to which the others
/// send their sums, and which hands the row over before a step that it has no part in.
enum class CacheDesign { replicated, lrpp, partitioned, forward };

template <>
struct EnumNames<CacheDesign> {
  static constexpr std::array names{
      std::pair{CacheDesign::replicated, std::string_view{"replicated"}},
      std::pair{CacheDesign::lrpp, std::string_view{"lrpp"}},
      std::pair{CacheDesign::partitioned, std::string_view{"partitioned"}},
      std::pair{CacheDesign::forward, std::string_view{"forward"}}};
};

/// Where rows are stored that are in no slot: in the processes that train, at servers, or on a
/// disk.
enum class CacheHome { embedded, remote, disk };

template <>
struct EnumNames<CacheHome> {
  static constexpr std::array names{std::pair{CacheHome::embedded, std::string_view{"embedded"}},
                                    std::pair{CacheHome::remote, std::string_view{"remote"}},
                                    std::pair{CacheHome::disk, std::string_view{"disk"}}};
};

}  // namespace recmill
