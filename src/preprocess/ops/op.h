// SPDX-License-Identifier: Apache-2.0
// An operation on a column: from raw values towards dense values and rows. An op is made from its
// name and parameters (ops/registry.h), keeps no state, and may be run by any thread on any piece
// of a column: pieces do not change an answer.
//
// Each kind of op has two ways that are bitwise equal: `run`, which is fast and works on a piece of
// a column, and `plain`, its definition, for one value or one bag.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json_fwd.h"
#include "base/status.h"
#include "preprocess/ops/formulas.h"
#include "preprocess/ops/gpu_op.h"

namespace recmill::preprocess {

/// An op as data: {"sigrid_hash", {"rows": 1000, "salt": 7}}.
struct OpSpec {
  std::string op;
  JsonObject parameters;
  bool operator==(const OpSpec&) const = default;
};

class Op {
 public:
  enum class Kind { dense, id, bag, bucket };
  virtual ~Op() = default;
  virtual Kind kind() const = 0;
  /// What a kernel runs (cuda_ops.cuh), bitwise plain(); its pointers are to this op's own memory.
  /// None: the CPU runs the chains that have this op.
  virtual std::optional<GpuOp> on_gpu() const { return std::nullopt; }
};

/// Dense values to dense values, one by one. NaN means missing; an op that does not fill it in
/// hands NaN on.
class DenseOp : public Op {
 public:
  Kind kind() const final { return Kind::dense; }
  virtual float plain(float value) const = 0;
  /// out[i] = plain(in[i]); sizes are equal; `out` may be `in`.
  virtual void run(std::span<const float> in, std::span<float> out) const = 0;
  /// What it keeps apart; by default all values.
  virtual KeptRange kept() const { return {}; }
};

/// Counts what `op` is about to flatten.
inline void count_flattened(const DenseOp& op, std::span<const float> in, FlattenedCounts& counts) {
  const auto [low, high] = op.kept();
  int64_t values = 0, below = 0, above = 0;
  for (const float x : in) {
    values += x == x ? 1 : 0;
    below += x < low ? 1 : 0;
    above += x > high ? 1 : 0;
  }
  counts.add({values, below, above});
}

/// Ids to ids, one by one; the last op of a feature yields rows, or kNoRow for an id that is
/// dropped or refused.
class IdOp : public Op {
 public:
  Kind kind() const final { return Kind::id; }
  virtual uint64_t plain(uint64_t id, IdCounts& counts) const = 0;
  /// out[i] = plain(in[i]); sizes are equal; `out` may be `in`.
  virtual void run(std::span<const uint64_t> in, std::span<uint64_t> out,
                   IdCounts& counts) const = 0;
};

/// The bags of consecutive samples. Trivially copyable.
struct BagView {
  const int64_t* offsets = nullptr;  // [samples + 1], into ids; offsets[0] need not be 0
  const uint64_t* ids = nullptr;
  const float* weights = nullptr;  // beside ids, or null: all 1
  int64_t samples = 0;
};

struct Bag {
  std::vector<uint64_t> ids;
  std::vector<float> weights;  // beside ids
};

/// Bags to bags. The length of a bag after the op is a function of its length before it alone, so
/// that every piece knows where it writes.
class BagOp : public Op {
 public:
  Kind kind() const final { return Kind::bag; }
  virtual int64_t length(int64_t before) const = 0;
  virtual Bag plain(const Bag& bag) const = 0;
  /// Whether a bag of one id always stays as it is; then a column of such bags may skip the op.
  virtual bool keeps_single() const { return false; }
  /// Writes bag s of `in` to out + (out_offsets[s] - out_offsets[0]), its weights alike unless
  /// `weights` is null; out_offsets [in.samples + 1] are the sums of length(). Not in place.
  virtual void run(const BagView& in, const int64_t* out_offsets, uint64_t* out,
                   float* weights) const = 0;
};

/// Dense values to one id each.
class BucketOp : public Op {
 public:
  Kind kind() const final { return Kind::bucket; }
  virtual uint64_t plain(float value) const = 0;
  virtual void run(std::span<const float> in, std::span<uint64_t> out) const = 0;
};

}  // namespace recmill::preprocess
