// SPDX-License-Identifier: Apache-2.0
// Headers that go with what is compiled at run time, as the program carries them.
#pragma once

#include <string_view>

namespace recmill::kernels::codegen {

/// kernels/codegen/pool_prelude.h.
std::string_view pool_prelude_text();
/// kernels/codegen/recmill_pool_template.h.
std::string_view recmill_pool_template_text();

}  // namespace recmill::kernels::codegen
