// SPDX-License-Identifier: Apache-2.0
// A checkpoint's part: other bytes than those that were written never pass for rows.
#include <cstdlib>

#include "base/testing/faulty_files.h"
#include "base/testing/fuzz.h"
#include "checkpoint/testing/small_checkpoint.h"

namespace recmill {
namespace {

const std::string kFolder = "checkpoints/" + checkpoint::folder_name(3);

// A small checkpoint and the content of its one part.
std::string& write_part(FaultyFiles& files) {
  RECMILL_CHECK(checkpoint::write_small(files, "checkpoints", 3).ok());
  const auto names = *files.list(kFolder);
  for (const std::string& name : names) {
    if (name != checkpoint::kManifestName) return files.content(kFolder + "/" + name);
  }
  RECMILL_CHECK(false, "no part");
  std::abort();
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  FaultyFiles files;
  return {write_part(files)};
}

void fuzz::feed(const std::string& bytes) {
  FaultyFiles files;
  std::string& content = write_part(files);
  const std::string written = std::exchange(content, bytes);
  const auto reader = checkpoint::Reader::open(files, kFolder);
  const bool taken = reader.ok() && checkpoint::check_small(**reader).ok();
  RECMILL_CHECK(taken == (bytes == written));
}

}  // namespace recmill
