// SPDX-License-Identifier: Apache-2.0
#include "server/shared_segments.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <set>

namespace recmill::server {
namespace {

/// Of Open MPI 4 and 5, and of MPICH.
constexpr std::array<std::string_view, 3> kPrefixes{"/dev/shm/vader_segment.",
                                                    "/dev/shm/sm_segment.", "/dev/shm/mpich_shm_"};
constexpr std::string_view kDeleted = " (deleted)";

}  // namespace

std::vector<std::string> mpi_shared_segments(pid_t process) {
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  std::set<std::string> found;
  for (std::string line; std::getline(maps, line);) {
    const size_t begin = line.find('/');
    if (begin == std::string::npos || line.ends_with(kDeleted)) continue;
    const std::string path = line.substr(begin);
    if (std::ranges::any_of(kPrefixes, [&](std::string_view p) { return path.starts_with(p); }))
      found.insert(path);
  }
  return {found.begin(), found.end()};
}

}  // namespace recmill::server
