// SPDX-License-Identifier: Apache-2.0
#include "kernels/codegen/user_templates.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "base/temporary_folder.h"
#include "kernels/codegen/testing/documented_template.h"
#include "kernels/embedding_pool/fused_pool.h"
#include "kernels/testing/random_bags.h"

namespace recmill::kernels::codegen {
namespace {

class UserTemplates : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() + "/" + name; }

  LibraryCacheOptions options() const {
    LibraryCacheOptions options;
    options.folder = path("cache");
    options.compiler.program = RECMILL_COMPILER;
    return options;
  }
  Result<std::span<const PoolTemplate>> load(const std::vector<std::string>& texts) {
    std::vector<std::string> paths;
    for (const std::string& text : texts) {
      paths.push_back(path(std::to_string(paths.size()) + ".cc"));
      RECMILL_CHECK(write_atomically(posix_files(), paths.back(), text).ok());
    }
    LibraryCache cache(options(), posix_files());
    return pool_templates_with(paths, cache, posix_files());
  }
  std::string error_of(const std::vector<std::string>& texts) {
    const auto loaded = load(texts);
    return loaded.ok() ? "" : loaded.status().message();
  }
  TemporaryFolder folder_;
};

TEST_F(UserTemplates, the_documented_one_stands_behind_our_own) {
  const auto all = load({documented_template()});
  ASSERT_TRUE(all.ok()) << all.status().message();
  ASSERT_EQ(all->size(), pool_templates().size() + 1);
  for (size_t t = 0; t < pool_templates().size(); ++t)
    EXPECT_EQ((*all)[t].name, pool_templates()[t].name);
  const PoolTemplate& own = all->back();
  EXPECT_EQ(own.name, "bags_by_column");
  EXPECT_EQ(own.order, Order::contract);
  FeatureShape shape;
  shape.dim = 8;
  const DeviceSpec device{.name = "cpu0"};
  std::vector<std::string> names;
  for (const Schedule& schedule : candidates(own, shape, device)) names.push_back(schedule.name());
  EXPECT_EQ(names, (std::vector<std::string>{"bags_by_column ahead=0", "bags_by_column ahead=16"}));
  shape.precision = RowPrecision::bfloat16;
  EXPECT_TRUE(candidates(own, shape, device).empty());
  EXPECT_EQ(own.scratch_bytes(shape, {}), 0);
  // The same files once more: the same templates.
  EXPECT_EQ(load({documented_template()})->data(), all->data());
}

TEST_F(UserTemplates, the_documented_one_equals_the_reference) {
  const auto all = load({documented_template()});
  ASSERT_TRUE(all.ok()) << all.status().message();
  ThreadPool pool(2);
  for (const char* schedule : {"bags_by_column ahead=0", "bags_by_column ahead=16"}) {
    for (int64_t dim : {1, 5, 16, 129}) {
      for (int64_t longest : {0, 5, 300}) {
        const SparseFeature bags = random_bags({40, longest}, 7);
        const auto rows = random_floats(100 * dim, 3);
        std::vector<float> expected(40 * dim, -1.0f), found = expected;
        PoolTask task{bags.view(40), RowStorage::of(rows.data(), 100, dim), Pooling::sum,
                      expected.data(), dim};
        embedding_pool_reference(task);
        task.out = found.data();
        const FusedPool fused({*find_pool_kernel(*parse_schedule(schedule), *all)}, 7);
        TaskMap map;
        fused.map({&task, 1}, 2, map);
        fused.run({&task, 1}, map, pool);
        ASSERT_EQ(std::memcmp(expected.data(), found.data(), expected.size() * 4), 0)
            << schedule << " dim " << dim << " longest " << longest;
      }
    }
  }
}

TEST_F(UserTemplates, are_told_nothing_of_bags_when_they_are_asked_for_scratch) {
  const std::string text =
      replaced(documented_template(), "const RecmillPoolTemplate kTemplate",
               "int64_t scratch(const RecmillPoolShape* s, const int64_t*) {\n"
               "  const bool bags = s->one_each || s->mean_lookups || s->deviation ||\n"
               "                    s->empty_share || s->longest || s->l2_bytes;\n"
               "  return bags ? 0 : s->rows * s->dim;\n"
               "}\nconst RecmillPoolTemplate kTemplate");
  const auto all = load({replaced(text, "nullptr,  // no scratch", "scratch,")});
  ASSERT_TRUE(all.ok()) << all.status().message();
  const auto kernel = *find_pool_kernel(*parse_schedule("bags_by_column ahead=0"), *all);
  const RowStorage rows = RowStorage::of(nullptr, 100, 8);
  EXPECT_EQ(scratch_bytes(kernel, rows, Pooling::sum, false), 800);
}

TEST_F(UserTemplates, what_they_say_of_themselves_is_checked) {
  const std::string good = documented_template();
  const std::pair<std::string, std::string> wrong[] = {
      {replaced(good, "\"bags_by_column\",", "\"bags by column\","),
       "its template has no name of lower case letters, digits and underscores"},
      {replaced(good, "\"bags_by_column\",", "\"bags\","), "there is already a template 'bags'"},
      {replaced(good, "kAhead, 2}", "kAhead, 0}"),
       "its template has a tunable without name or values"},
      {replaced(good, "{RECMILL_POOL_TEMPLATE_VERSION", "{99"),
       "its template is of version 99, this program takes 2"},
      {replaced(good, "                                       pool};",
                "                                       nullptr};"),
       "its template has no valid() or no pool()"},
      {"int answer = 42;", "defines no recmill_pool_template()"}};
  for (const auto& [text, problem] : wrong)
    EXPECT_EQ(error_of({text}), path("0.cc") + ": " + problem);
  EXPECT_EQ(error_of({good, good}),
            path("1.cc") + ": there is already a template 'bags_by_column'");
}

TEST_F(UserTemplates, have_a_digest_of_their_texts) {
  const auto digest = [&](const std::vector<std::string>& texts) {
    std::vector<std::string> paths;
    for (const std::string& text : texts) {
      paths.push_back(path(std::to_string(paths.size()) + ".cc"));
      RECMILL_CHECK(write_atomically(posix_files(), paths.back(), text).ok());
    }
    return *templates_digest(paths, posix_files());
  };
  EXPECT_EQ(digest({}), "");
  EXPECT_EQ(digest({"a", "b"}), digest({"a", "b"}));
  EXPECT_EQ(digest({"a", "b"}).size(), 16u);
  for (const std::vector<std::string>& other :
       {std::vector<std::string>{"a", "c"}, {"b", "a"}, {"ab"}, {"a", "b", ""}})
    EXPECT_NE(digest(other), digest({"a", "b"}));
  const std::string missing = path("none.cc");
  EXPECT_EQ(templates_digest({&missing, 1}, posix_files()).status().message().find(missing), 0u);
}

TEST_F(UserTemplates, a_file_that_does_not_compile_or_is_not_there_is_named) {
  const std::string error = error_of({"#include \"recmill_pool_template.h\"\nint f( {}\n"});
  EXPECT_EQ(error.find(path("0.cc") + ": " + path("cache/")), 0u) << error;
  EXPECT_NE(error.find("fails with status 1: " + path("0.cc:2:")), std::string::npos) << error;
  EXPECT_NE(error.find("; what it says is in " + path("cache/")), std::string::npos) << error;
  LibraryCache cache(options(), posix_files());
  const std::string missing = path("none.cc");
  const auto loaded = pool_templates_with({&missing, 1}, cache, posix_files());
  EXPECT_EQ(loaded.status().message().find(missing), 0u);
}

}  // namespace
}  // namespace recmill::kernels::codegen
