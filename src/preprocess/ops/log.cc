// SPDX-License-Identifier: Apache-2.0
#include "preprocess/ops/log.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "preprocess/ops/log.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h, as it asks for.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace recmill::preprocess::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D, class V>
HWY_INLINE V log_of(D d, V x) {
  using namespace log_plus_one;
  const hn::RebindToSigned<D> di;
  const V one = hn::Set(d, 1.0f);
  const V z = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Zero(d), x);
  const V u = hn::Add(z, one);
  const auto bits = hn::BitCast(di, u);
  const auto k = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, kTwoThirds)));
  // 2^-k would leave the normal range at k > 126, where its value is not used.
  const auto inverse = hn::Sub(hn::Set(di, 127), hn::Min(k, hn::Set(di, 126)));
  const V scale = hn::BitCast(d, hn::ShiftLeft<23>(inverse));
  const V small = hn::Add(hn::Mul(z, scale), hn::Sub(scale, one));
  const V large = hn::Sub(hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(k))), one);
  const V f = hn::IfThenElse(hn::Lt(z, hn::Set(d, kLarge)), small, large);
  V q = hn::Set(d, kQ[7]);
  for (int i = 6; i >= 0; --i) q = hn::Add(hn::Mul(q, f), hn::Set(d, kQ[i]));
  const V kf = hn::ConvertTo(d, k);
  const V square = hn::Mul(f, f);
  V y = hn::Add(hn::Mul(hn::Mul(square, f), q), hn::Mul(kf, hn::Set(d, kLow)));
  y = hn::Sub(y, hn::Mul(square, hn::Set(d, 0.5f)));
  y = hn::Add(hn::Mul(kf, hn::Set(d, kHigh)), hn::Add(f, y));
  // False for infinity and NaN, which stay.
  return hn::IfThenElse(hn::Lt(z, hn::Inf(d)), y, z);
}

void log_run(const float* HWY_RESTRICT in, float* out, size_t count) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) hn::StoreU(log_of(d, hn::LoadU(d, in + i)), d, out + i);
  if (i == count) return;
  HWY_ALIGN float rest[hn::MaxLanes(d)] = {};
  std::copy(in + i, in + count, rest);
  hn::Store(log_of(d, hn::Load(d, rest)), d, rest);
  std::copy(rest, rest + (count - i), out + i);
}

}  // namespace recmill::preprocess::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "base/json/json.h"
#include "preprocess/ops/parameters.h"

namespace recmill::preprocess {

HWY_EXPORT(log_run);

void Log::run(std::span<const float> in, std::span<float> out) const {
  HWY_DYNAMIC_DISPATCH(log_run)(in.data(), out.data(), in.size());
}

Result<std::unique_ptr<Op>> make_log(const Json& /*parameters*/) {
  return std::unique_ptr<Op>(new Log());
}

}  // namespace recmill::preprocess
#endif  // HWY_ONCE
