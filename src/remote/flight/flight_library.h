// SPDX-License-Identifier: Apache-2.0
// librecmill_flight.so, which has all that sees Arrow Flight. A program opens it when rows are on
// servers: the library of gRPC takes time to load.
#pragma once

#include <string>

#include "base/status.h"
#include "remote/stream.h"

namespace recmill::remote {

/// The library, opened by the first call in a process. Fails where it is missing, or is of another
/// build than the program.
Result<Transport*> flight_transport();

/// The same of a file, or of a name that the dynamic linker finds.
Result<Transport*> open_flight_library(const std::string& file);

}  // namespace recmill::remote

/// The library's one function. Null where `build` is not its own flight_build().
extern "C" recmill::remote::Transport* recmill_flight_library(const char* build);
