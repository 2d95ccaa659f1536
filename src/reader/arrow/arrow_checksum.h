// SPDX-License-Identifier: Apache-2.0
// Checksums of Arrow arrays: the IPC format itself has none.
#pragma once

#include <arrow/array.h>
#include <arrow/record_batch.h>

#include <string>

namespace recmill::reader {

/// The CRC-32C of each field's content, in decimal, separated by spaces. Fields are of fixed width,
/// or lists of such.
std::string crc_of_fields(const arrow::RecordBatch& batch);

/// True when `array` has the content that crc_of_fields() named for `field`.
bool crc_is(const arrow::Array& array, const std::string& crc_of_fields, int field);

}  // namespace recmill::reader
