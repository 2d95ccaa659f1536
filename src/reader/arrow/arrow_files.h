// SPDX-License-Identifier: Apache-2.0
// The file seam as Arrow wants it, and Arrow's errors as ours.
#pragma once

#include <arrow/io/interfaces.h>
#include <arrow/result.h>
#include <arrow/status.h>

#include <memory>
#include <string>

#include "base/files.h"

namespace recmill::reader {

/// The error of Arrow as one line behind `where` ("file: column 'C3'").
Status from_arrow(const arrow::Status& status, const std::string& where);

/// Calls `body`, which returns a Status, and turns whatever Parquet or the allocator throws into
/// one line behind `where`.
template <typename Body>
Status without_exceptions(const std::string& where, Body&& body);

/// A Files file as Arrow reads it. Safe to read from several threads by ReadAt().
std::shared_ptr<arrow::io::RandomAccessFile> arrow_input(std::unique_ptr<ReadableFile> file);

/// A Files file as Arrow writes it; Close() closes it. What a call of Files answered is kept in
/// `failure`, for Arrow words it anew.
std::shared_ptr<arrow::io::OutputStream> arrow_output(std::unique_ptr<WritableFile> file,
                                                      Status& failure);

namespace internal {
Status from_exception(const std::exception& error, const std::string& where);
}

template <typename Body>
Status without_exceptions(const std::string& where, Body&& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    return internal::from_exception(error, where);
  }
}

}  // namespace recmill::reader

/// Returns `where`'s Status from the enclosing function unless the arrow::Status is ok.
#define RECMILL_RETURN_IF_ARROW_ERROR(expression, where)                               \
  do {                                                                                 \
    const arrow::Status arrow_status = (expression);                                   \
    if (!arrow_status.ok()) return ::recmill::reader::from_arrow(arrow_status, where); \
  } while (false)

/// RECMILL_ASSIGN_FROM_ARROW(auto value, function(), where): the value, or the function returns.
#define RECMILL_ASSIGN_FROM_ARROW(target, expression, where)                                   \
  RECMILL_ASSIGN_FROM_ARROW_INNER(RECMILL_CONCAT(arrow_result_, __LINE__), target, expression, \
                                  where)
#define RECMILL_ASSIGN_FROM_ARROW_INNER(result, target, expression, where)        \
  auto result = (expression);                                                     \
  if (!result.ok()) return ::recmill::reader::from_arrow(result.status(), where); \
  target = std::move(result).ValueUnsafe()
