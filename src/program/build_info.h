// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace recmill::program {

/// Version of the project, the commit that was built ("unknown" outside a checkout, "-dirty" behind
/// it when the checkout had changes), and CMake's build type.
std::string build_version();
std::string build_commit();
std::string build_type();

}  // namespace recmill::program
