// SPDX-License-Identifier: Apache-2.0
// Golden samples are in testing/golden; RECMILL_RENEW_GOLDEN=1 build/tests/codegen_test writes
// them anew.
#include "kernels/codegen/pool_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "base/files.h"
#include "kernels/codegen/embedded_texts.h"

namespace recmill::kernels::codegen {
namespace {

PoolFunction function(const std::string& schedule, int64_t dim) {
  PoolFunction made{*parse_schedule(schedule), dim, dim * 4};
  return made;
}

/// The source without the prelude, which is the same for all.
std::string own_text(const PoolSource& source) {
  const std::string_view all = pool_prelude_text();
  const std::string prelude(all.substr(all.find("// Stands")));
  std::string text = source.text;
  const size_t at = text.find(prelude);
  RECMILL_CHECK(at != std::string::npos);
  return text.replace(at, prelude.size(), "// (kernels/codegen/pool_prelude.h)\n");
}

void expect_golden(const std::string& name, std::vector<PoolFunction> functions,
                   Dispatch dispatch = Dispatch::branches) {
  const auto sources = pool_sources(functions, {"the test of golden samples", dispatch, 16, 100});
  ASSERT_EQ(sources.size(), 1u);
  const std::string path = std::string(RECMILL_GOLDEN) + "/" + name + ".txt";
  if (std::getenv("RECMILL_RENEW_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_atomically(posix_files(), path, own_text(sources[0])).ok());
  }
  const auto golden = read_text(posix_files(), path);
  ASSERT_TRUE(golden.ok()) << golden.status().message();
  EXPECT_EQ(own_text(sources[0]), *golden);
}

TEST(PoolSource, is_the_golden_sample_of_each_template) {
  PoolFunction mean = function("bags fetch=16 held=2 store=1 stage=1 ids=0", 100);
  mean.pooling = Pooling::mean;
  mean.weighted = true;
  mean.precision = RowPrecision::bfloat16;
  mean.row_bytes = 200;
  expect_golden("bags", {function("bags fetch=64 held=8 store=0 stage=0 ids=512", 8), mean});
  expect_golden("one_each", {function("one_each fetch=64 store=2 stage=0 ids=512", 32)});
  expect_golden("bags_interleaved",
                {function("bags_interleaved ways=2 fetch=16 stage=0 ids=512", 8)});
  expect_golden("runs_interleaved",
                {function("runs_interleaved ways=2 fetch=0 stage=0 ids=512", 8)});
  PoolFunction copied = function("rows_copied fetch=32", 5);
  copied.pooling = Pooling::none;
  expect_golden("rows_copied", {copied});
}

TEST(PoolSource, of_pointers_and_of_a_template_without_generated_form_is_golden) {
  PoolFunction unknown = function("of_a_user size=3", 8);
  unknown.scratch_bytes = 320;
  expect_golden("pointers",
                {unknown, function("bags fetch=0 held=8 store=0 stage=0 ids=512", 4),
                 function("one_each fetch=0 store=0 stage=0 ids=512", 4)},
                Dispatch::pointers);
}

TEST(PoolSource, has_a_form_of_every_template_that_keeps_the_order) {
  for (const PoolTemplate& of : pool_templates())
    EXPECT_EQ(has_generated_form(of.name), of.order == Order::contract) << of.name;
  EXPECT_FALSE(has_generated_form("of_a_user"));
}

TEST(PoolSource, alike_features_share_a_function_whatever_their_order) {
  const PoolFunction a = function("bags fetch=64 held=8 store=0 stage=0 ids=512", 8),
                     b = function("bags fetch=64 held=8 store=0 stage=0 ids=512", 16),
                     c = function("one_each fetch=64 store=0 stage=0 ids=512", 16);
  const std::vector<PoolFunction> one = {a, b, a, c, c}, other = {c, b, a};
  const auto first = pool_sources(one, {"test"}), second = pool_sources(other, {"test"});
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].functions, (std::vector<PoolFunction>{a, b, c}));
  EXPECT_EQ(first[0].text, second[0].text);
}

TEST(PoolSource, beyond_a_hundred_functions_there_are_several_kernels) {
  std::vector<PoolFunction> many;
  for (int64_t dim = 1; dim <= 250; ++dim)
    many.push_back(function("bags fetch=64 held=8 store=0 stage=0 ids=512", dim));
  const auto sources = pool_sources(many, {"test"});
  ASSERT_EQ(sources.size(), 3u);
  std::vector<PoolFunction> all;
  for (const PoolSource& source : sources) {
    EXPECT_LE(source.functions.size(), 100u);
    all.insert(all.end(), source.functions.begin(), source.functions.end());
  }
  EXPECT_EQ(all, many);
}

}  // namespace
}  // namespace recmill::kernels::codegen
