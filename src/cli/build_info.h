// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace recmill::cli {

/// Version of the project, and the commit that was built ("unknown" outside a checkout, "-dirty"
/// behind it when the checkout had changes).
std::string build_version();
std::string build_commit();

}  // namespace recmill::cli
