// SPDX-License-Identifier: Apache-2.0
// The first byte chooses gzip, Zstandard or bzip2, the others are the file: read from each point,
// it ends as it does when read from its start.
#include <bzlib.h>

#include <iterator>

#include "base/testing/faulty_files.h"
#include "base/testing/fuzz.h"
#include "reader/lines/byte_stream.h"
#include "reader/writers/compressed_file.h"

namespace recmill {
namespace {

constexpr const char* kNames[] = {"text.gz", "text.zst", "text.bz2"};
constexpr size_t kMostBytes = 1 << 20;  // a bomb is cut here

std::string bzip2(std::string text) {
  auto size = static_cast<unsigned>(2 * text.size() + 600);
  std::string stream(size, '\0');
  RECMILL_CHECK(BZ2_bzBuffToBuffCompress(stream.data(), &size, text.data(),
                                         static_cast<unsigned>(text.size()), 1, 0, 0) == BZ_OK);
  return stream.substr(0, size);
}

std::string compressed(size_t kind, const std::string& text) {
  if (kind == 2) return bzip2(text);
  FaultyFiles files;
  auto file = reader::compress_by_name(kNames[kind], *files.create(kNames[kind]));
  RECMILL_CHECK(file->append(std::as_bytes(std::span(text))).ok() && file->close().ok());
  return files.content(kNames[kind]);
}

// The next bytes, kMostBytes at most; nothing where the stream is damaged.
Result<std::string> rest_of(reader::ByteStream& stream) {
  std::string text(kMostBytes, '\0');
  RECMILL_ASSIGN_OR_RETURN(const size_t size, stream.read(text));
  text.resize(size);
  return text;
}

}  // namespace

std::vector<std::string> fuzz::seeds() {
  std::string text;
  for (int i = 0; i < 40; ++i) text += std::to_string(i * i) + "\t";
  std::vector<std::string> seeds;
  for (const size_t kind : {0, 1, 2}) {
    const std::string tag(1, static_cast<char>(kind));
    seeds.push_back(tag + compressed(kind, text));
    seeds.push_back(tag + compressed(kind, "a") + compressed(kind, text));
    seeds.push_back(tag + compressed(kind, text) + std::string(9, '\0'));
  }
  return seeds;
}

void fuzz::feed(const std::string& bytes) {
  if (bytes.empty()) return;
  const std::string name = kNames[static_cast<unsigned char>(bytes[0]) % std::size(kNames)];
  FaultyFiles files;
  RECMILL_CHECK(write_atomically(files, name, bytes.substr(1)).ok());
  std::vector<reader::AccessPoint> points;
  auto stream = *reader::open_byte_stream(files, name);
  stream->collect(8, points);
  const auto whole = rest_of(*stream);
  if (!whole.ok() || whole->size() == kMostBytes) return;
  stream = *reader::open_byte_stream(files, name);
  stream->use(points);
  for (const reader::AccessPoint& point : points) {
    RECMILL_CHECK(stream->seek(point.offset).ok());
    const auto rest = rest_of(*stream);
    RECMILL_CHECK(rest.ok(), rest.status().message());
    RECMILL_CHECK(*rest == whole->substr(point.offset));
  }
}

}  // namespace recmill
