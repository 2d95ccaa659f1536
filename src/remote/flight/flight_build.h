// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace recmill::remote {

/// What a program and its librecmill_flight.so have to be alike in: the version, the compiler, and
/// the layout of what goes between the two.
const char* flight_build();

}  // namespace recmill::remote
