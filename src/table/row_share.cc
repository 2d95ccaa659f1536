// SPDX-License-Identifier: Apache-2.0
#include "table/row_share.h"

#include <numeric>
#include <string>
#include <utility>

#include "base/status.h"
#include "table/row_map.h"

namespace recmill::table {
namespace {

/// x with x * factor = 1 mod `modulus`, which is prime to it (extended Euclid).
int64_t inverse_of(int64_t factor, int64_t modulus) {
  __int128 x = 0, next = 1, remainder = modulus, divisor = factor;
  while (divisor != 0) {
    const __int128 quotient = remainder / divisor;
    x = std::exchange(next, x - quotient * next);
    remainder = std::exchange(divisor, remainder - quotient * divisor);
  }
  return static_cast<int64_t>(x < 0 ? x + modulus : x);
}

}  // namespace

RowShare::RowShare(int64_t rows, int rank, int ranks, int home, int ranges)
    : rows_(rows), rank_(rank), ranks_(ranks), home_(home), ranges_(ranges) {
  RECMILL_CHECK(
      rows >= 0 && ranks >= 1 && rank >= 0 && rank < ranks && home >= 0 && home + ranges <= ranks,
      std::to_string(rows) + " " + std::to_string(rank) + " " + std::to_string(ranks));
  places_ = range_of(rank);
  slots_ = places_.size();
}

RowRange RowShare::range_of(int rank) const {
  const int64_t range = rank - home_;
  if (range < 0 || range >= ranges_) return {};
  const auto begin_of = [&](__int128 number) {
    return static_cast<int64_t>(number * rows_ / ranges_);
  };
  return {begin_of(range), begin_of(range + 1)};
}

int64_t RowShare::slots_of(int rank) const {
  return map_ != nullptr ? map_->slots(rank) : range_of(rank).size();
}

RowShare::RowShare(int64_t rows, int rank, int ranks) : RowShare(rows, rank, ranks, 0, ranks) {
  if (ranks == 1 || rows < 2) return;
  factor_ =
      std::max<int64_t>(static_cast<int64_t>(static_cast<double>(rows) * 0.6180339887498949), 1);
  while (std::gcd(factor_, rows) != 1) ++factor_;
  inverse_ = inverse_of(factor_, rows);
}

RowShare RowShare::by_range(int64_t rows, int rank, int ranks) {
  return {rows, rank, ranks, 0, ranks};
}

RowShare RowShare::whole(int64_t rows, int rank, int ranks, int home) {
  return {rows, rank, ranks, home, 1};
}

RowShare RowShare::placed(std::shared_ptr<const RowMap> map, int rank) {
  const int whole_at = map->whole_at();
  if (whole_at >= 0) return whole(map->rows(), rank, map->devices(), whole_at);
  RowShare share(map->rows(), rank, map->devices(), 0, 1);
  share.places_ = {};
  share.slots_ = map->slots(rank);
  share.has_copies_ = map->copied_rows() > 0;
  share.map_ = std::move(map);
  return share;
}

RowShare::Home RowShare::mapped_home(int64_t row) const {
  const RowMap::Address home = map_->home(map_->place(row));
  return {home.device, home.slot};
}

int64_t RowShare::mapped_slot(int64_t row) const {
  return map_->slot(map_->place(row), rank_);
}

int64_t RowShare::mapped_next(int64_t row, int64_t end, bool owned) const {
  return owned ? map_->next_owned(row, end, rank_) : map_->next_held(row, end, rank_);
}

RowRange RowShare::mapped_extent() const {
  return map_->extent(rank_);
}

}  // namespace recmill::table
