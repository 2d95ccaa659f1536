// SPDX-License-Identifier: Apache-2.0
#include "remote/secret.h"

namespace recmill::remote {

Result<std::string> read_secret(const std::string& key, const std::string& path, Files& files) {
  if (path.empty()) return std::string();
  auto text = read_text(files, path);
  if (!text.ok()) return Status::BadRequest(key + ": " + text.status().message());
  while (!text->empty() && (text->back() == '\n' || text->back() == '\r')) text->pop_back();
  if (text->empty()) return Status::BadRequest(key + ": " + path + " is empty");
  return *std::move(text);
}

Result<std::string> read_pem(const std::string& key, const std::string& path,
                             const std::string& what, Files& files) {
  RECMILL_ASSIGN_OR_RETURN(auto text, read_secret(key, path, files));
  const size_t begin = text.find("-----BEGIN ");
  if (!path.empty() &&
      (begin == std::string::npos || text.find(what + "-----", begin) == std::string::npos))
    return Status::BadRequest(key + ": " + path + " has no " + what + " in PEM");
  return text;
}

}  // namespace recmill::remote
