// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/status.h"
#include "remote/message.h"
#include "remote/stream.h"

namespace recmill::remote {

/// What a server answers somebody who is no rank, within some seconds.
Result<Message> ask_as_guest(const std::string& address, const Message& question,
                             Transport& transport, const StreamSecurity& security,
                             double seconds = 10.0);

}  // namespace recmill::remote
