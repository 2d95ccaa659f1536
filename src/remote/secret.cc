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

}  // namespace recmill::remote
