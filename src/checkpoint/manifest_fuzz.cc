// SPDX-License-Identifier: Apache-2.0
// The text of a checkpoint's manifest, its checksum put right, beside whole parts: a reader takes
// what it says or refuses it. The same bytes as a message between ranks.
#include <fmt/format.h>

#include "base/hash.h"
#include "base/testing/faulty_files.h"
#include "base/testing/fuzz.h"
#include "checkpoint/testing/small_checkpoint.h"

namespace recmill {
namespace {

const std::string kFolder = "checkpoints/" + checkpoint::folder_name(3);
const std::string kManifest = kFolder + "/" + checkpoint::kManifestName;
constexpr size_t kHeaderBytes = 47;
constexpr int64_t kMostBytes = 1 << 20;

std::string with_header(const std::string& text) {
  const char version = text.find("\"rule\"") == std::string::npos ? '1' : '2';
  return fmt::format("recmill-checkpoint {} {:08x} {:016}\n", version,
                     crc32c(std::as_bytes(std::span(text))), text.size()) +
         text;
}

/// Rows of floats may be left out of blocks.
std::string with_rules(std::string text) {
  const std::string floats = "\"type\":\"float32\"";
  const std::string rule = "\"rule\":{\"kind\":\"uniform\",\"seed\":1,\"stream\":2,\"value\":0.5},";
  for (size_t at = 0; (at = text.find(floats, at)) != std::string::npos;
       at += rule.size() + floats.size())
    text.insert(at, rule);
  return text;
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  std::vector<std::string> seeds;
  for (const int parts : {1, 2}) {
    FaultyFiles files;
    RECMILL_CHECK(checkpoint::write_small(files, "checkpoints", 3, parts).ok());
    seeds.push_back(files.content(kManifest).substr(kHeaderBytes));
    seeds.push_back(with_rules(seeds.back()));
  }
  return seeds;
}

void fuzz::feed(const std::string& bytes) {
  (void)checkpoint::decode_part(with_header(bytes)).ok();
  FaultyFiles files;
  RECMILL_CHECK(checkpoint::write_small(files, "checkpoints", 3, 2).ok());
  files.content(kManifest) = with_header(bytes);
  const auto reader = checkpoint::Reader::open(files, kFolder);
  if (!reader.ok()) return;
  (void)(*reader)->verify().ok();
  for (const checkpoint::Entry& entry : (*reader)->entries()) {
    const int64_t rows = std::min<int64_t>(entry.spec.rows(), 1000);
    if (entry.spec.row_bytes() > kMostBytes / 1000) continue;
    std::vector<std::byte> out(rows * entry.spec.row_bytes());
    (void)(*reader)->read(entry, 0, rows, out).ok();
  }
}

}  // namespace recmill
