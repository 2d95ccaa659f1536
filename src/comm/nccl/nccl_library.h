// SPDX-License-Identifier: Apache-2.0
// NCCL, which is loaded when it is asked for: nothing links it.
#pragma once

#include <string>

#include "base/status.h"
#include "comm/nccl/nccl_api.h"

namespace recmill {

/// The functions of the library, which stays loaded. Fails in one line: there is none, or one that
/// is too old.
Result<nccl::Api> load_nccl(const std::string& library = "libnccl.so.2");

}  // namespace recmill
