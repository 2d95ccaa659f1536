// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "comm/nccl/nccl_api.h"

namespace recmill::testing {

/// What the stand-in of libnccl.so.2 is to be: its variable `fake_nccl`.
struct FakeNccl {
  int version = 22700;
  nccl::Api api = {};  // does what the library's functions are asked
};

}  // namespace recmill::testing
