// SPDX-License-Identifier: Apache-2.0
// What a rank that `recmill launch` started knows from its environment.
#pragma once

#include "server/unit_start.h"

namespace recmill::cli {

inline constexpr const char* kNoteVariable = "RECMILL_NOTE_DESCRIPTOR";
inline const server::GuardVariables kGuardVariables{
    "RECMILL_SUPERVISOR", "RECMILL_SUPERVISOR_TOKEN", "RECMILL_SUPERVISOR_LEASE"};

/// Tells who watches this rank, if anybody, that the run's folder is this job's.
void note_begin();

}  // namespace recmill::cli
