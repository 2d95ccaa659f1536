// SPDX-License-Identifier: Apache-2.0
#include "kernels/dense_layer/fma_peak.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/clock.h"
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/dense_layer/fma_peak.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace recmill::kernels::dense_layer::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Twelve independent sums fill two units of latency up to six, and leave registers for the operands
// on every instruction set. Named one by one: an array might live in memory. Returns operations.
double float32_rounds(int64_t rounds, float* sink) {
  const hn::ScalableTag<float> d;
  const auto x = hn::Set(d, sink[0]), y = hn::Set(d, sink[1]);
  // Sums that began alike would be computed once.
  auto a = hn::Set(d, sink[2]), b = hn::Set(d, sink[3]), c = hn::Set(d, sink[4]);
  auto e = hn::Set(d, sink[5]), f = hn::Set(d, sink[6]), g = hn::Set(d, sink[7]);
  auto h = hn::Set(d, sink[8]), i = hn::Set(d, sink[9]), j = hn::Set(d, sink[10]);
  auto k = hn::Set(d, sink[11]), l = hn::Set(d, sink[12]), m = hn::Set(d, sink[13]);
  for (int64_t round = 0; round < rounds; ++round) {
    a = hn::MulAdd(a, x, y), b = hn::MulAdd(b, x, y), c = hn::MulAdd(c, x, y);
    e = hn::MulAdd(e, x, y), f = hn::MulAdd(f, x, y), g = hn::MulAdd(g, x, y);
    h = hn::MulAdd(h, x, y), i = hn::MulAdd(i, x, y), j = hn::MulAdd(j, x, y);
    k = hn::MulAdd(k, x, y), l = hn::MulAdd(l, x, y), m = hn::MulAdd(m, x, y);
  }
  const auto first = hn::Add(hn::Add(hn::Add(a, b), hn::Add(c, e)), hn::Add(f, g));
  const auto second = hn::Add(hn::Add(hn::Add(h, i), hn::Add(j, k)), hn::Add(l, m));
  sink[2] = hn::GetLane(hn::SumOfLanes(d, hn::Add(first, second)));
  return static_cast<double>(rounds) * 12 * 2 * static_cast<double>(hn::Lanes(d));
}

}  // namespace recmill::kernels::dense_layer::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace recmill::kernels::dense_layer {
namespace {

HWY_EXPORT(float32_rounds);

double float32_operations(int64_t rounds, float* sink) {
  return HWY_DYNAMIC_DISPATCH(float32_rounds)(rounds, sink);
}

#if defined(__x86_64__)
bool has_bfloat16() {
  return __builtin_cpu_supports("avx512bf16") != 0;
}

// Highway 1.0 has no name for this instruction. Its latency wants more sums than float32's.
__attribute__((target("avx512f,avx512bf16"))) double bfloat16_operations(int64_t rounds,
                                                                         float* sink) {
  const auto x = reinterpret_cast<__m512bh>(_mm512_set1_ps(sink[0]));
  // Sums that began alike would be computed once.
  __m512 a = _mm512_set1_ps(sink[2]), b = _mm512_set1_ps(sink[3]), c = _mm512_set1_ps(sink[4]),
         d = _mm512_set1_ps(sink[5]), e = _mm512_set1_ps(sink[6]), f = _mm512_set1_ps(sink[7]);
  __m512 g = _mm512_set1_ps(sink[8]), h = _mm512_set1_ps(sink[9]), i = _mm512_set1_ps(sink[10]),
         j = _mm512_set1_ps(sink[11]), k = _mm512_set1_ps(sink[12]);
  __m512 l = _mm512_set1_ps(sink[13]), m = _mm512_set1_ps(sink[14]), n = _mm512_set1_ps(sink[15]),
         o = _mm512_set1_ps(sink[16]), p = _mm512_set1_ps(sink[17]);
  __m512 q = _mm512_set1_ps(sink[18]), r = _mm512_set1_ps(sink[19]), s = _mm512_set1_ps(sink[20]),
         t = _mm512_set1_ps(sink[21]);
  for (int64_t round = 0; round < rounds; ++round) {
    a = _mm512_dpbf16_ps(a, x, x), b = _mm512_dpbf16_ps(b, x, x), c = _mm512_dpbf16_ps(c, x, x);
    d = _mm512_dpbf16_ps(d, x, x), e = _mm512_dpbf16_ps(e, x, x), f = _mm512_dpbf16_ps(f, x, x);
    g = _mm512_dpbf16_ps(g, x, x), h = _mm512_dpbf16_ps(h, x, x), i = _mm512_dpbf16_ps(i, x, x);
    j = _mm512_dpbf16_ps(j, x, x), k = _mm512_dpbf16_ps(k, x, x), l = _mm512_dpbf16_ps(l, x, x);
    m = _mm512_dpbf16_ps(m, x, x), n = _mm512_dpbf16_ps(n, x, x), o = _mm512_dpbf16_ps(o, x, x);
    p = _mm512_dpbf16_ps(p, x, x), q = _mm512_dpbf16_ps(q, x, x), r = _mm512_dpbf16_ps(r, x, x);
    s = _mm512_dpbf16_ps(s, x, x), t = _mm512_dpbf16_ps(t, x, x);
  }
  const __m512 sum = a + b + c + d + e + f + g + h + i + j + k + l + m + n + o + p + q + r + s + t;
  sink[2] = sum[0];
  return static_cast<double>(rounds) * 20 * 4 * 16;
}
#else
bool has_bfloat16() {
  return false;
}
double bfloat16_operations(int64_t, float*) {
  return 0;
}
#endif

}  // namespace

double fma_peak(Precision precision, ThreadPool& pool) {
  if (precision == Precision::bfloat16 && !has_bfloat16()) return 0;
  const auto run = precision == Precision::float32 ? float32_operations : bfloat16_operations;
  const int64_t rounds = precision == Precision::float32 ? 3'000'000 : 2'000'000;
  struct alignas(64) Sink {
    std::array<float, 32> values{};
    double operations = 0;
  };
  std::vector<Sink> sinks(static_cast<size_t>(pool.threads()));
  for (Sink& sink : sinks) {
    for (size_t v = 0; v < sink.values.size(); ++v) sink.values[v] = 1 / static_cast<float>(v + 2);
  }
  double best = 0;
  for (int tries = 0; tries < 10; ++tries) {
    const Stopwatch watch;
    pool.run(pool.threads(), [&](int64_t task) {
      Sink& sink = sinks[static_cast<size_t>(task)];
      sink.operations = run(rounds, sink.values.data());
    });
    double operations = 0;
    for (const Sink& sink : sinks) operations += sink.operations;
    best = std::max(best, operations / watch.seconds());
  }
  return best;
}

}  // namespace recmill::kernels::dense_layer
#endif  // HWY_ONCE
