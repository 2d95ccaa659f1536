// SPDX-License-Identifier: Apache-2.0
#include "cli/launched.h"

#include <unistd.h>

#include <cstdlib>

#include "server/guard.h"

namespace recmill::cli {

void note_begin() {
  const char* const descriptor = std::getenv(kNoteVariable);
  if (descriptor == nullptr) return;
  // Who does not hear it begins anew, which is as right.
  (void)!::write(std::atoi(descriptor), server::kBegunNote.data(), server::kBegunNote.size());
}

}  // namespace recmill::cli
