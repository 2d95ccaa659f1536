// SPDX-License-Identifier: Apache-2.0
// What NCCL is between GPUs that the emulator plays.
#pragma once

#include "comm/nccl/nccl_api.h"

namespace recmill {

/// A stand-in for the library, over comm/threads: ranks are threads of this process, each with an
/// emulated GPU. As of the library, calls return before anything has moved; what is enqueued on a
/// stream happens in its order, the messages of a group together; where a rank is missing a stream
/// is not done until its communicator is aborted. Sizes that differ are kInvalidUsage. A group has
/// one stream for each communicator, and no messages of a rank to itself.
nccl::Api emulated_nccl();

}  // namespace recmill
