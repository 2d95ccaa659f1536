// SPDX-License-Identifier: Apache-2.0
// Source compiled into shared libraries, each once for a compiler, its flags and a processor:
//
//   FOLDER/NAME/source.cc, library.so, checksum     NAME: digest of the source and all of those;
//                                                   beside them its headers and further sources
//   FOLDER/NAME.failed/source.cc, errors.txt        what did not compile, and why
//   FOLDER/NAME.HOST.PROCESS.DIGITS.tmp, .lock      beside: what that process of HOST is making
//
// A library is made in a folder beside and renamed, so that it is there whole or not at all. What a
// killed process left beside, the next one of its machine that compiles removes. Machines, and
// containers that give processes the same numbers, may share a cache.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/status.h"
#include "kernels/codegen/compiler.h"

namespace recmill::kernels::codegen {

/// A loaded shared library; its functions are there while it lives.
class Library {
 public:
  static Result<std::shared_ptr<const Library>> load(const std::string& path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// The function or variable of that name; null: there is none.
  void* symbol(const char* name) const;
  const std::string& path() const { return path_; }

 private:
  Library(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}
  void* const handle_;
  const std::string path_;
};

struct LibraryCacheOptions {
  std::string folder;
  CompilerOptions compiler;
  std::string processor;  // what -march=native means here
};

/// A source, and what it needs beside the system's headers, (name, text), and all sources' flags.
struct LibrarySource {
  std::string text;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::vector<std::string> flags = {};
  std::vector<std::pair<std::string, std::string>> further = {};  // sources of the same library
  std::string name = {};  // what errors call the text; empty: the file that it is kept in
};

class LibraryCache {
 public:
  LibraryCache(LibraryCacheOptions options, Files& files);

  /// The sources' libraries; those that are not there yet are compiled. Fails in one line, naming
  /// the file, without a compiler, where one fails (with its first error), where the folder cannot
  /// be written, and where a library is not what was written.
  Result<std::vector<std::shared_ptr<const Library>>> load(std::span<const LibrarySource> sources);

  const std::string& folder() const { return options_.folder; }
  /// Sources that had to be compiled so far.
  int64_t compilations() const { return compilations_; }

 private:
  class FolderBeside;
  struct Entry;
  Result<std::shared_ptr<const Library>> open(const Entry& entry) const;
  Status write_parts(const LibrarySource& source, const std::string& folder);
  Status publish(const Entry& entry, const Outcome& outcome);
  Status keep_errors(const Entry& entry, const Outcome& outcome);
  Status compile(std::span<Entry> entries, const Compiler& compiler);

  const LibraryCacheOptions options_;
  Files& files_;
  int64_t compilations_ = 0;
};

}  // namespace recmill::kernels::codegen
