// SPDX-License-Identifier: Apache-2.0
#include "preprocess/ops/sigrid_hash.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "preprocess/ops/sigrid_hash.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h, as it asks for.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace recmill::preprocess::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// Hashes whole vectors; returns how many ids that were. rows < 2^32: then the high word of the
/// 128-bit product needs two 32-bit multiplications.
size_t hash_vectors(const uint64_t* in, uint64_t* out, size_t count, uint64_t salt, uint64_t rows) {
#if HWY_TARGET == HWY_SCALAR
  return 0;
#else
  const hn::ScalableTag<uint64_t> d;
  const hn::Repartition<uint32_t, decltype(d)> d32;
  const size_t lanes = hn::Lanes(d);
  const auto rows32 = hn::BitCast(d32, hn::Set(d, rows));
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    auto x =
        hn::Add(hn::Xor(hn::LoadU(d, in + i), hn::Set(d, salt)), hn::Set(d, 0x9E3779B97F4A7C15ull));
    x = hn::Mul(hn::Xor(x, hn::ShiftRight<30>(x)), hn::Set(d, 0xBF58476D1CE4E5B9ull));
    x = hn::Mul(hn::Xor(x, hn::ShiftRight<27>(x)), hn::Set(d, 0x94D049BB133111EBull));
    x = hn::Xor(x, hn::ShiftRight<31>(x));
    const auto low = hn::MulEven(hn::BitCast(d32, x), rows32);
    const auto high = hn::MulEven(hn::BitCast(d32, hn::ShiftRight<32>(x)), rows32);
    hn::StoreU(hn::ShiftRight<32>(hn::Add(high, hn::ShiftRight<32>(low))), d, out + i);
  }
  return i;
#endif
}

}  // namespace recmill::preprocess::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "base/json/json.h"
#include "preprocess/ops/parameters.h"

namespace recmill::preprocess {

HWY_EXPORT(hash_vectors);

void SigridHash::run(std::span<const uint64_t> in, std::span<uint64_t> out, IdCounts&) const {
  size_t i = 0;
  if (formula_.rows >> 32 == 0) {
    i = HWY_DYNAMIC_DISPATCH(hash_vectors)(in.data(), out.data(), in.size(), formula_.salt,
                                           formula_.rows);
  }
  for (; i < in.size(); ++i) out[i] = formula_(in[i]);
}

Result<std::unique_ptr<Op>> make_sigrid_hash(const Json& parameters) {
  RECMILL_ASSIGN_OR_RETURN(const int64_t rows, count_parameter(parameters, "rows"));
  RECMILL_ASSIGN_OR_RETURN(const uint64_t salt, id_parameter(parameters, "salt"));
  return std::unique_ptr<Op>(new SigridHash(static_cast<uint64_t>(rows), salt));
}

}  // namespace recmill::preprocess
#endif  // HWY_ONCE
