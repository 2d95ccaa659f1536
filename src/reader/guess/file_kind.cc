// SPDX-License-Identifier: Apache-2.0
#include "reader/guess/file_kind.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace recmill::reader {
namespace {

using std::string_view_literals::operator""sv;

struct Magic {
  std::string_view bytes;
  std::string_view what;  // "is " this
  std::string_view instead;
};

constexpr std::string_view kAsTable = "write it as CSV or Parquet";
constexpr std::string_view kUnpack = "unpack it";

constexpr std::array kMagics = {
    Magic{"PK\x03\x04"sv, "a zip archive (or an Excel, .npz or Keras file)", kAsTable},
    Magic{"\xD0\xCF\x11\xE0"sv, "an old Excel or Office file", kAsTable},
    Magic{"\x93NUMPY"sv, "a NumPy array (.npy)", kAsTable},
    Magic{"\x89HDF\r\n\x1A\n"sv, "an HDF5 file", kAsTable},
    Magic{"SQLite format 3\0"sv, "an SQLite database", kAsTable},
    Magic{"Obj\x01"sv, "an Avro file", kAsTable},
    Magic{"FEA1"sv, "a Feather file of version 1", kAsTable},
    Magic{"\x1F\x8B"sv, "compressed with gzip", "let its name end in .gz"},
    Magic{"\x28\xB5\x2F\xFD"sv, "compressed with Zstandard", "let its name end in .zst"},
    Magic{"\xFD\x37zXZ\0"sv, "compressed with xz", kUnpack},
    Magic{"\x04\x22\x4D\x18"sv, "compressed with LZ4", kUnpack},
    Magic{"BZh"sv, "compressed with bzip2", "let its name end in .bz2"},
    Magic{"7z\xBC\xAF\x27\x1C"sv, "a 7-zip archive", kUnpack},
    Magic{"Rar!\x1A"sv, "a RAR archive", kUnpack},
    Magic{"%PDF"sv, "a PDF", kAsTable},
    Magic{"\xFF\xFE"sv, "text of UTF-16", "write it as UTF-8"},
    Magic{"\xFE\xFF"sv, "text of UTF-16", "write it as UTF-8"},
    Magic{"RDX2\n"sv, "an R data file", kAsTable},
    Magic{"RDX3\n"sv, "an R data file", kAsTable},
    Magic{"$FL2@(#)"sv, "an SPSS file", kAsTable},
    Magic{"<stata_dta>"sv, "a Stata file", kAsTable},
    Magic{"<?xml"sv, "XML", kAsTable},
    Magic{"<!DOCTYPE"sv, "HTML", kAsTable},
    Magic{"<html"sv, "HTML", kAsTable},
    Magic{"@relation"sv, "an ARFF file (Weka)", kAsTable},
    Magic{"@RELATION"sv, "an ARFF file (Weka)", kAsTable},
};

Status refused(const std::string& path, std::string_view what, std::string_view instead) {
  return Status::BadRequest(path + ": is " + std::string(what) + ", which is not read; " +
                            std::string(instead));
}

bool is_binary(std::string_view head) {
  return std::any_of(head.begin(), head.end(), [](char c) { return c >= 0 && c < '\t'; });
}

/// Letters alone may begin a text too ("ORCID,name").
bool is_word(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](unsigned char c) { return std::isalnum(c); });
}

bool is_pickle(std::string_view head) {
  return head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5;
}

bool is_tar(std::string_view head) {
  return head.size() > 262 && head.substr(257, 5) == "ustar";
}

std::string_view after_spaces(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

/// Of the first line the word behind the label.
std::string_view second_word(std::string_view text) {
  const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
  const size_t space = line.find_first_of(" \t");
  if (space == std::string_view::npos) return {};
  const std::string_view word = after_spaces(line.substr(space));
  return word.substr(0, std::min(word.find_first_of(" \t"), word.size()));
}

/// "label field:index:value ..."
bool is_libffm(std::string_view text) {
  const std::string_view word = second_word(text);
  return std::ranges::count(word, ':') == 2 &&
         word.find_first_not_of("0123456789:.-+e") == std::string_view::npos;
}

/// {"a":{"0":1,"1":2,"2":...},...} and no second line, as pandas writes it.
bool is_object_of_columns(std::string_view text) {
  if (!text.starts_with('{') || text.find("\n{") != std::string_view::npos) return false;
  size_t at = text.find(':');
  if (at == std::string_view::npos || !after_spaces(text.substr(at + 1)).starts_with('{'))
    return false;
  for (const char* row : {"{\"0\":", ",\"1\":", ",\"2\":"}) {
    const size_t next = text.find(row, at);
    if (next == std::string_view::npos || text.substr(at, next - at).find('}') < next - at)
      return false;
    at = next;
  }
  return true;
}

}  // namespace

bool is_libsvm(std::string_view head) {
  std::string_view line = head.substr(0, std::min(head.find('\n'), head.size()));
  line = line.substr(0, line.find('#'));
  int pairs = 0, words = 0;
  while (!(line = after_spaces(line)).empty()) {
    const std::string_view word = line.substr(0, std::min(line.find_first_of(" \t"), line.size()));
    line.remove_prefix(word.size());
    const size_t colon = word.find(':');
    if (word.find(':', colon + 1) != std::string_view::npos && colon < word.size()) return false;
    const bool pair = colon != std::string_view::npos && colon > 0 && colon + 1 < word.size() &&
                      word.find_first_not_of("0123456789") == colon;
    if (words++ == 0 ? pair : !pair) return false;
    pairs += pair;
  }
  return pairs > 1;
}

DataFormat columnar_kind(std::string_view head) {
  if (head.starts_with("PAR1")) return DataFormat::parquet;
  if (head.starts_with("ARROW1") || head.starts_with("\xFF\xFF\xFF\xFF")) {
    return DataFormat::arrow_ipc;
  }
  if (head.starts_with("ORC") && is_binary(head)) return DataFormat::orc;
  return DataFormat::csv;
}

Status refuse_unknown(const std::string& path, std::string_view head) {
  for (const Magic& magic : kMagics) {
    if (!head.starts_with(magic.bytes) || (is_word(magic.bytes) && !is_binary(head))) continue;
    return refused(path, magic.what, magic.instead);
  }
  if (is_pickle(head)) return refused(path, "a Python pickle", kAsTable);
  if (is_tar(head)) return refused(path, "a tar archive", kUnpack);
  if (head.find('\0') != std::string_view::npos) {
    return Status::BadRequest(path + ": is neither text nor a format that is read (it holds zero " +
                              "bytes); " + std::string(kAsTable));
  }
  const std::string_view text = after_spaces(head);
  if (text.starts_with("[{") || text.starts_with("[[") ||
      (text.starts_with('[') && after_spaces(text.substr(1)).starts_with('{'))) {
    return refused(path, "a JSON array", kAsTable);
  }
  if (is_libffm(text)) {
    return Status::BadRequest(path + ": is rows of libffm, which are not guessed; data.format = " +
                              "\"libsvm\" reads them, with data.libsvm.fields");
  }
  if (second_word(text).starts_with("qid:"))
    return refused(path, "rows of libsvm with groups (qid)", "leave the qid out");
  if (second_word(text).starts_with('|') && second_word(text).size() > 1)
    return refused(path, "rows of Vowpal Wabbit", kAsTable);
  if (is_object_of_columns(text)) return refused(path, "a JSON object of columns", kAsTable);
  const size_t carriage_return = text.find('\r');
  const bool is_within = carriage_return < text.size() && carriage_return + 1 < text.size();
  if (is_within && text.find('\n') == std::string_view::npos) {
    return refused(path, "text whose lines end with a carriage return alone",
                   "let them end with a line feed");
  }
  return {};
}

}  // namespace recmill::reader
