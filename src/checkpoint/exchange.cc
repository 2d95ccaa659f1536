// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/exchange.h"

#include <algorithm>
#include <map>

#include "checkpoint/npy.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/writer.h"

namespace recmill::checkpoint {
namespace {

constexpr int64_t kPieceBytes = int64_t{1} << 20;

/// "prefix/T/suffix" is "T"; empty where prefix or suffix differ.
std::string between(const std::string& name, const std::string& prefix, const std::string& suffix) {
  if (name.size() <= prefix.size() + suffix.size() || !name.starts_with(prefix) ||
      !name.ends_with(suffix)) {
    return "";
  }
  return name.substr(prefix.size(), name.size() - prefix.size() - suffix.size());
}

/// Calls sink(first row, bytes) for the rows of an entry, piece by piece. `fill` reads a piece.
template <typename Fill, typename Sink>
Status for_each_piece(const EntrySpec& spec, const Fill& fill, const Sink& sink) {
  const int64_t row_bytes = spec.row_bytes();
  const int64_t rows = std::max<int64_t>(1, kPieceBytes / std::max<int64_t>(1, row_bytes));
  std::vector<std::byte> bytes;
  for (int64_t first = 0; first < spec.rows(); first += rows) {
    const int64_t count = std::min(rows, spec.rows() - first);
    bytes.resize(count * row_bytes);
    RECMILL_RETURN_IF_ERROR(fill(first, count, std::span(bytes)));
    RECMILL_RETURN_IF_ERROR(sink(first, std::span<const std::byte>(bytes)));
  }
  return {};
}

Status copy_entry(Reader& reader, const Entry& entry, TensorWriter& writer) {
  return for_each_piece(
      entry.spec,
      [&](int64_t first, int64_t count, std::span<std::byte> bytes) {
        return reader.read(entry, first, count, bytes);
      },
      [&](int64_t, std::span<const std::byte> bytes) { return writer.append(bytes); });
}

/// Entries that have a name outside.
std::vector<const Entry*> exported(const Reader& reader) {
  std::vector<const Entry*> list;
  for (const Entry& entry : reader.entries()) {
    if (!tensor_name(entry.spec.name).empty()) list.push_back(&entry);
  }
  return list;
}

/// Which tensor replaces each entry; -1: none. Every tensor must replace one.
Result<std::vector<int>> match(const Reader& base, const TensorReader& tensors) {
  std::vector<int> replaced_by(base.entries().size(), -1);
  for (size_t t = 0; t < tensors.tensors().size(); ++t) {
    const EntrySpec& tensor = tensors.tensors()[t].spec;
    bool found = false;
    for (size_t e = 0; e < base.entries().size(); ++e) {
      const EntrySpec& entry = base.entries()[e].spec;
      if (tensor_name(entry.name) != tensor.name) continue;
      if (entry.type != tensor.type || entry.shape != tensor.shape) {
        return Status::BadRequest("tensor '" + tensor.name + "' is " + tensor.text() + ", and in " +
                                  base.path() + " " + entry.text());
      }
      replaced_by[e] = static_cast<int>(t);
      found = true;
    }
    if (!found) {
      return Status::BadRequest(base.path() + ": has no tensor '" + tensor.name + "' to replace");
    }
  }
  return replaced_by;
}

}  // namespace

std::string tensor_name(const std::string& entry) {
  if (entry.starts_with("dense/")) return entry.substr(6);
  if (const auto table = between(entry, "table/", "/weight"); !table.empty()) {
    return "embeddings." + table + ".weight";
  }
  const auto dictionary = between(entry, "dictionary/", "");
  return dictionary.empty() ? "" : "dictionaries." + dictionary;
}

Status export_safetensors(Files& files, Reader& reader, const std::string& path) {
  const auto entries = exported(reader);
  std::vector<EntrySpec> tensors;
  for (const Entry* entry : entries) {
    tensors.push_back({tensor_name(entry->spec.name), entry->spec.type, entry->spec.shape});
  }
  RECMILL_ASSIGN_OR_RETURN(
      auto writer,
      create_safetensors(files, path, tensors, {{"step", std::to_string(reader.step())}}));
  for (const Entry* entry : entries) RECMILL_RETURN_IF_ERROR(copy_entry(reader, *entry, *writer));
  return writer->close();
}

Result<std::vector<std::string>> export_npy(Files& files, Reader& reader,
                                            const std::string& folder) {
  RECMILL_RETURN_IF_ERROR(files.make_folder(folder));
  std::vector<std::string> paths;
  for (const Entry* entry : exported(reader)) {
    std::string name = tensor_name(entry->spec.name);
    // A name is one file; a table may be called anything.
    std::replace(name.begin(), name.end(), '/', '_');
    paths.push_back(folder + "/" + name + ".npy");
    if (std::find(paths.begin(), paths.end() - 1, paths.back()) != paths.end() - 1) {
      return Status::Failed(paths.back() + ": is the name of two tensors");
    }
    RECMILL_ASSIGN_OR_RETURN(auto writer, create_npy(files, paths.back(), entry->spec));
    RECMILL_RETURN_IF_ERROR(copy_entry(reader, *entry, *writer));
    RECMILL_RETURN_IF_ERROR(writer->close());
  }
  return paths;
}

Status import_tensors(Files& files, Reader& base, const TensorReader& tensors,
                      const std::string& folder) {
  RECMILL_ASSIGN_OR_RETURN(const auto replaced_by, match(base, tensors));
  RECMILL_ASSIGN_OR_RETURN(auto writer, Writer::create(files, folder, base.step()));
  RECMILL_ASSIGN_OR_RETURN(auto part, PartWriter::create(files, writer->path(), 0));
  for (size_t e = 0; e < base.entries().size(); ++e) {
    const Entry& entry = base.entries()[e];
    // Once in any case: an entry without rows is there too.
    RECMILL_RETURN_IF_ERROR(part->add(entry.spec, {}));
    RECMILL_RETURN_IF_ERROR(for_each_piece(
        entry.spec,
        [&](int64_t first, int64_t count, std::span<std::byte> bytes) {
          return replaced_by[e] < 0 ? base.read(entry, first, count, bytes)
                                    : tensors.read(static_cast<size_t>(replaced_by[e]),
                                                   first * entry.spec.row_bytes(), bytes);
        },
        [&](int64_t first, std::span<const std::byte> bytes) {
          return part->add(entry.spec, first, bytes);
        }));
  }
  RECMILL_ASSIGN_OR_RETURN(PartContents contents, part->finish());
  return writer->finish({std::move(contents)}, base.properties());
}

}  // namespace recmill::checkpoint
