// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "base/random.h"

namespace recmill {

/// One to four random edits, a function of `seed`: bytes changed, doubled, removed, cut off, or one
/// of those that tell text formats apart put in.
inline std::string mutated(std::string text, uint64_t seed) {
  const Random random(seed, Purpose::test);
  constexpr std::string_view kTelling =
      "\t\n\r,\"'-+.0123456789abcdefABCDEFxz|;: {}[]()=#\\\xC3\xE2\xFF\x00";
  const auto edits = 1 + random.below(4, 0, 1000);
  for (uint64_t edit = 1; edit <= edits && !text.empty(); ++edit) {
    const size_t at = random.below(text.size(), edit, 0);
    const char telling = kTelling[random.below(kTelling.size(), edit, 1)];
    switch (random.below(6, edit, 2)) {
      case 0:
        text[at] = telling;
        break;
      case 1:
        text[at] = static_cast<char>(random.bits(edit, 3));
        break;
      case 2:
        text.insert(at, 1, telling);
        break;
      case 3:
        text.erase(at, 1 + random.below(6, edit, 3));
        break;
      case 4:
        text.insert(at, text.substr(at, random.below(20, edit, 3)));
        break;
      default:
        text.resize(at);
        break;
    }
  }
  return text;
}

}  // namespace recmill
