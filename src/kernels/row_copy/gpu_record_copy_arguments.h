// SPDX-License-Identifier: Apache-2.0
// What the kernel that copies records of rows is given. Read by the compilers of kernels too; all
// pointers are of the device.
#pragma once

#include "device/kernel_types.h"

namespace recmill::kernels::gpu {

constexpr int kRecordThreads = 256;     // of a block
constexpr int kMostRecordLists = 45;    // of a launch, whose arguments are 4 KiB at most
constexpr i64 kRecordsOfBlock = 16384;  // bytes of a block's records, or one record

/// Records of rows (table::RowRecord), one behind the other, and the slots of a table that they
/// come from or go to. No slot is named twice.
struct RecordList {
  u8* rows;          // RowStorage: data
  float* row_state;  // [slots]; null: there is none
  i64* row_of_slot;  // [slots]; null: nobody asks for it
  u8* records;       // [count][record_bytes]
  const i32* slots;  // [count]
  const i64* named;  // [count]: what is in row_of_slot from now on; null where that is
  i64 count;
  i32 stride;        // bytes from row to row
  i32 record_bytes;  // as many, or with the state by row
  i32 row_state_at;  // in a record
};

struct RecordCopyArguments {
  RecordList lists[kMostRecordLists];
  i64 end_block[kMostRecordLists];  // of the launch's blocks: those of each list follow each other
  i32 to_slots;                     // 0: from slots to records
};
static_assert(sizeof(RecordCopyArguments) <= 4096);

/// Of one block.
constexpr i64 copied_records_of_block(i64 record_bytes) {
  return record_bytes < kRecordsOfBlock ? kRecordsOfBlock / record_bytes : 1;
}

}  // namespace recmill::kernels::gpu
