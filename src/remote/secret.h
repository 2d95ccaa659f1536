// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/files.h"
#include "base/status.h"

namespace recmill::remote {

/// The text of the file that `key` names, a token or certificates, without the end of its last
/// line; an empty path has none. Errors are bad requests, and name the key.
Result<std::string> read_secret(const std::string& key, const std::string& path, Files& files);
/// The same of a file in PEM, in which there has to be `what`, as "CERTIFICATE".
Result<std::string> read_pem(const std::string& key, const std::string& path,
                             const std::string& what, Files& files);

}  // namespace recmill::remote
