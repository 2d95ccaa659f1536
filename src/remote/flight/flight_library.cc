// SPDX-License-Identifier: Apache-2.0
#include "remote/flight/flight_library.h"

#include <dlfcn.h>

#include <cstdlib>

#include "remote/flight/flight_build.h"

namespace recmill::remote {

Result<Transport*> open_flight_library(const std::string& file) {
  // What goes wrong is told in a line of ours, not beside it by gRPC, unless somebody asks for
  // that.
  setenv("GRPC_VERBOSITY", "NONE", /*overwrite=*/0);
  void* const opened = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (opened == nullptr)
    return Status::Failed(std::string("Arrow Flight: ") + dlerror() + "; " + file +
                          " belongs beside a program that was built, or into lib/recmill of an "
                          "installation: `make build` and `make install` put it there");
  const auto entry =
      reinterpret_cast<decltype(&recmill_flight_library)>(dlsym(opened, "recmill_flight_library"));
  Transport* const transport = entry == nullptr ? nullptr : entry(flight_build());
  if (transport == nullptr)
    return Status::Failed("Arrow Flight: " + file +
                          " is of another build of Recmill than this program; build or install "
                          "both anew");
  return transport;
}

Result<Transport*> flight_transport() {
  static const Result<Transport*> transport = open_flight_library("librecmill_flight.so");
  return transport;
}

}  // namespace recmill::remote
