// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "schema/options.h"

namespace recmill {

/// Where rows are stored (store/): in the memory of the ranks, split over them or where a plan puts
/// them; at a home, with those that the next batches use in a cache; or whole in the one rank of
/// the reference.
enum class StoreKind { local, placed, cached, plain };

template <>
struct EnumNames<StoreKind> {
  static constexpr std::array names{std::pair{StoreKind::local, std::string_view{"local"}},
                                    std::pair{StoreKind::placed, std::string_view{"placed"}},
                                    std::pair{StoreKind::cached, std::string_view{"cached"}},
                                    std::pair{StoreKind::plain, std::string_view{"plain"}}};
};

}  // namespace recmill
