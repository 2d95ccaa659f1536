// SPDX-License-Identifier: Apache-2.0
// Records of rows brought to the slots of tables, or from there, as many bytes at a time as all
// of a list's records allow.
#pragma once

#include "device/kernel.cuh"
#include "kernels/embedding_pool/cuda_rows.cuh"
#include "kernels/row_copy/gpu_record_copy_arguments.h"

namespace recmill::kernels::gpu {

struct CopyRecords {
  RECMILL_DEVICE static void run(const RecordCopyArguments& arguments) {
    const i64 block = blockIdx.x;
    int l = 0;
    while (block >= arguments.end_block[l]) ++l;
    const RecordList& list = arguments.lists[l];
    const i64 of_block = copied_records_of_block(list.record_bytes);
    const i64 first = (block - (l == 0 ? 0 : arguments.end_block[l - 1])) * of_block;
    const i64 rest = list.count - first;
    const u32 count = static_cast<u32>(rest < of_block ? rest : of_block);
    const bool to_slots = arguments.to_slots != 0;
    const u64 places = reinterpret_cast<u64>(list.rows) | reinterpret_cast<u64>(list.records) |
                       static_cast<u64>(list.stride | list.record_bytes);
    if (places % 16 == 0) {
      copy<FloatLanes<4>>(list, first, count, to_slots);
    } else if (places % 8 == 0) {
      copy<FloatLanes<2>>(list, first, count, to_slots);
    } else if (places % 4 == 0) {
      copy<FloatLanes<1>>(list, first, count, to_slots);
    } else {
      copy<u16>(list, first, count, to_slots);
    }
    copy_what_is_apart(list, first, count, to_slots);
  }

 private:
  template <class Unit>
  RECMILL_DEVICE static void copy(const RecordList& list, i64 first, u32 count, bool to_slots) {
    const u32 of_row = static_cast<u32>(list.stride) / static_cast<u32>(sizeof(Unit));
    for (u32 i = threadIdx.x; i < count * of_row; i += kRecordThreads) {
      const i64 record = first + i / of_row, at = i % of_row;
      Unit* const in_record =
          reinterpret_cast<Unit*>(list.records + record * list.record_bytes) + at;
      Unit* const in_slot =
          reinterpret_cast<Unit*>(list.rows + i64{list.slots[record]} * list.stride) + at;
      if (to_slots) {
        *in_slot = *in_record;
      } else {
        *in_record = *in_slot;
      }
    }
  }

  /// Each row's state, which tables store apart, and its number.
  RECMILL_DEVICE static void copy_what_is_apart(const RecordList& list, i64 first, u32 count,
                                                bool to_slots) {
    for (u32 i = threadIdx.x; i < count; i += kRecordThreads) {
      const i64 record = first + i;
      const i64 slot = list.slots[record];
      if (to_slots && list.row_of_slot != nullptr) list.row_of_slot[slot] = list.named[record];
      if (list.row_state == nullptr) continue;
      u8* const in_record = list.records + record * list.record_bytes;
      float* const state = reinterpret_cast<float*>(in_record + list.row_state_at);
      if (to_slots) {
        list.row_state[slot] = *state;
      } else {
        *state = list.row_state[slot];
        if (list.row_state_at > list.stride)  // by two bytes, which are 0
          *reinterpret_cast<u16*>(in_record + list.stride) = 0;
      }
    }
  }
};

}  // namespace recmill::kernels::gpu
