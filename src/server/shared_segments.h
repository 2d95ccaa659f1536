// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace recmill::server {

/// Paths of the files in /dev/shm by which an MPI library shares memory with other ranks, of those
/// that `process` has mapped now. They stay where it is killed together with its launcher. Other
/// files there are somebody's data.
std::vector<std::string> mpi_shared_segments(pid_t process);

}  // namespace recmill::server
