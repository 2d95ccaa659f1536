// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "schema/options.h"

namespace recmill::kernels::codegen {

/// How a piece finds its function in generated code: by branches, which the compiler fills with the
/// functions themselves, or by a table of pointers (RecFlex, section IV-B).
enum class Dispatch { branches, pointers };

}  // namespace recmill::kernels::codegen

namespace recmill {
template <>
struct EnumNames<kernels::codegen::Dispatch> {
  static constexpr std::array names{
      std::pair{kernels::codegen::Dispatch::branches, std::string_view{"branches"}},
      std::pair{kernels::codegen::Dispatch::pointers, std::string_view{"pointers"}}};
};
}  // namespace recmill
