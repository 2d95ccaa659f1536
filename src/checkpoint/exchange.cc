// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/exchange.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/json/json.h"
#include "checkpoint/export_folder.h"
#include "checkpoint/npy.h"
#include "checkpoint/safetensors.h"

namespace recmill::checkpoint {
namespace {

constexpr int64_t kPieceBytes = int64_t{1} << 20;
constexpr std::string_view kNpy = ".npy";

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

/// A tensor of a file.
struct Source {
  const TensorReader* file = nullptr;  // null: none
  size_t tensor = 0;
};

/// The place of the entry with this outside name; -1: none.
int64_t find_named(const Reader& base, const std::string& name) {
  const auto& entries = base.entries();
  const auto found = std::ranges::find_if(
      entries, [&](const Entry& entry) { return tensor_name(entry.spec.name) == name; });
  return found == entries.end() ? -1 : found - entries.begin();
}

/// What replaces each entry. Every tensor must replace one.
Result<std::vector<Source>> match(const Reader& base,
                                  std::span<const std::unique_ptr<TensorReader>> files) {
  std::vector<Source> sources(base.entries().size());
  for (const auto& file : files) {
    for (size_t t = 0; t < file->tensors().size(); ++t) {
      const EntrySpec& tensor = file->tensors()[t].spec;
      const int64_t e = tensor.name.empty() ? -1 : find_named(base, tensor.name);
      if (e < 0) {
        return Status::BadRequest(file->path() + ": " + base.path() + " has no tensor '" +
                                  tensor.name + "' to replace");
      }
      const EntrySpec& entry = base.entries()[e].spec;
      if (entry.type != tensor.type || entry.shape != tensor.shape) {
        return Status::BadRequest(file->path() + ": tensor '" + tensor.name + "' is " +
                                  tensor.text() + ", and in " + base.path() + " " + entry.text());
      }
      if (sources[e].file != nullptr) {
        return Status::BadRequest(file->path() + ": tensor '" + tensor.name + "' is also in " +
                                  sources[e].file->path());
      }
      sources[e] = {file.get(), t};
    }
  }
  return sources;
}

/// A name is one file; a table may be called anything.
std::string file_stem(std::string tensor) {
  std::replace(tensor.begin(), tensor.end(), '/', '_');
  return tensor;
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
  tensors.reserve(entries.size());
  for (const Entry* entry : entries) {
    tensors.push_back({tensor_name(entry->spec.name), entry->spec.type, entry->spec.shape});
  }
  RECMILL_ASSIGN_OR_RETURN(
      auto writer,
      create_safetensors(files, path, tensors, {{"step", std::to_string(reader.step())}}));
  for (const Entry* entry : entries) RECMILL_RETURN_IF_ERROR(copy_entry(reader, *entry, *writer));
  return writer->close();
}

Result<int64_t> export_npy(Files& files, Reader& reader, const std::string& folder) {
  RECMILL_ASSIGN_OR_RETURN(const auto out,
                           ExportFolder::create(files, folder, [](const std::string& name) {
                             return name.ends_with(kNpy);
                           }));
  std::set<std::string> stems;
  for (const Entry* entry : exported(reader)) {
    const std::string stem = file_stem(tensor_name(entry->spec.name));
    if (!stems.insert(stem).second) {
      return Status::Failed(folder + "/" + stem + ".npy: is the name of two tensors");
    }
    RECMILL_ASSIGN_OR_RETURN(auto writer,
                             create_npy(files, out->path() + "/" + stem + ".npy", entry->spec));
    RECMILL_RETURN_IF_ERROR(copy_entry(reader, *entry, *writer));
    RECMILL_RETURN_IF_ERROR(writer->close());
  }
  RECMILL_RETURN_IF_ERROR(out->publish());
  return static_cast<int64_t>(stems.size());
}

std::string tensor_of_npy(const Reader& base, const std::string& stem) {
  for (const Entry* entry : exported(base)) {
    const std::string name = tensor_name(entry->spec.name);
    if (file_stem(name) == stem) return name;
  }
  return stem;
}

Result<std::vector<std::unique_ptr<TensorReader>>> open_npy_folder(Files& files, const Reader& base,
                                                                   const std::string& folder) {
  RECMILL_ASSIGN_OR_RETURN(const auto names, files.list(folder));
  std::vector<std::unique_ptr<TensorReader>> readers;
  for (const std::string& name : names) {
    const std::string path = folder + "/" + name;
    if (!name.ends_with(kNpy)) return Status::BadRequest(path + ": is not a .npy file");
    const std::string stem = name.substr(0, name.size() - kNpy.size());
    RECMILL_ASSIGN_OR_RETURN(auto reader, open_npy(files, path, tensor_of_npy(base, stem)));
    readers.push_back(std::move(reader));
  }
  if (readers.empty()) return Status::BadRequest(folder + ": holds no .npy file");
  return readers;
}

Status import_tensors(Files& files, Reader& base,
                      std::span<const std::unique_ptr<TensorReader>> sources,
                      const std::string& folder, ExistingCheckpoint existing) {
  RECMILL_ASSIGN_OR_RETURN(const auto replaced_by, match(base, sources));
  RECMILL_ASSIGN_OR_RETURN(auto writer, Writer::create(files, folder, base.step(), existing));
  RECMILL_ASSIGN_OR_RETURN(auto part, PartWriter::create(files, writer->path(), 0));
  for (size_t e = 0; e < base.entries().size(); ++e) {
    const Entry& entry = base.entries()[e];
    const Source& source = replaced_by[e];
    // Once in any case: an entry without rows is there too.
    RECMILL_RETURN_IF_ERROR(part->add(entry.spec, {}));
    RECMILL_RETURN_IF_ERROR(for_each_piece(
        entry.spec,
        [&](int64_t first, int64_t count, std::span<std::byte> bytes) {
          return source.file == nullptr
                     ? base.read(entry, first, count, bytes)
                     : source.file->read(source.tensor, first * entry.spec.row_bytes(), bytes);
        },
        [&](int64_t first, std::span<const std::byte> bytes) {
          const std::string& from = source.file == nullptr ? base.path() : source.file->path();
          RECMILL_RETURN_IF_ERROR(check_finite(entry.spec, {first, {}, bytes}).at(from));
          return part->add(entry.spec, first, bytes);
        }));
  }
  RECMILL_ASSIGN_OR_RETURN(PartContents contents, part->finish());
  return writer->finish({std::move(contents)}, base.properties());
}

}  // namespace recmill::checkpoint
