// SPDX-License-Identifier: Apache-2.0
// What makes a parser fuzzed: one source file defines both functions, and recmill_fuzz() in
// cmake/rooms.cmake makes of it a test that mutates the seeds, and in the fuzz build a libFuzzer
// program that starts from them.
#pragma once

#include <string>
#include <vector>

namespace recmill::fuzz {

/// Input of each kind that the parser knows, whole; small.
std::vector<std::string> seeds();

/// Hands `bytes` to the parser and CHECKs what holds of every outcome. A refusal is no fault; a
/// crash, an exception or memory without bound is.
void feed(const std::string& bytes);

}  // namespace recmill::fuzz
