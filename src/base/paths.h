// SPDX-License-Identifier: Apache-2.0
// Paths by which files are opened, from any working folder.
#pragma once

#include <string>

namespace recmill {

/// `path` from the root on, for an error to name what was tried.
std::string whole_path(const std::string& path);

/// `path` as seen from `folder`; itself where it is absolute, or nothing.
std::string path_from(const std::string& folder, const std::string& path);

/// `path` as seen from `folder` where it is below it, else itself.
std::string path_below(const std::string& folder, const std::string& path);

/// Whether both are there and the same, by whatever names.
bool same_place(const std::string& one, const std::string& other);

}  // namespace recmill
