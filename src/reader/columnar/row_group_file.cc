// SPDX-License-Identifier: Apache-2.0
#include "reader/columnar/row_group_file.h"

#include "reader/arrow/arrow_files.h"

namespace recmill::reader {

Status RowGroupFile::start(RowGroupFile& file, Files& files, const std::string& path) {
  file.path_ = path;
  RECMILL_ASSIGN_OR_RETURN(auto bytes, files.open(path));
  if (bytes->size() == 0) return Status::Failed(path + ": is empty");
  auto input = arrow_input(std::move(bytes));
  return without_exceptions(path, [&] { return file.read_footer(std::move(input)); });
}

}  // namespace recmill::reader
