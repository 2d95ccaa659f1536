// SPDX-License-Identifier: Apache-2.0
#include "cli/launched.h"

#include <unistd.h>

#include <cstdlib>

#include "server/rank_guard.h"

namespace recmill::cli {

void note_begin() {
  const char* const descriptor = std::getenv(kNoteVariable);
  if (descriptor == nullptr) return;
  const char note = static_cast<char>(server::RankNote::has_begun);
  // Who does not hear it begins anew, which is as right.
  (void)!::write(std::atoi(descriptor), &note, 1);
}

}  // namespace recmill::cli
