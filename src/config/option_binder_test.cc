// SPDX-License-Identifier: Apache-2.0
#include "config/option_binder.h"

#include <gtest/gtest.h>

namespace recmill {
namespace {

enum class Color { red, green };

struct Inner {
  int64_t size = 3;
  std::vector<double> weights;
  std::optional<double> own_rate;
};
template <typename Visitor>
void describe(Visitor& v, Inner& o) {
  v("size", o.size, "how many", between(0, 100));
  v("weights", o.weights, "one each", any_number());
  v("own_rate", o.own_rate, "in place of rate", at_least(0));
}

struct Outer {
  bool on = false;
  double rate = 0.5;
  std::string name = "x";
  Color color = Color::red;
  Inner inner;
  std::vector<Inner> parts;
};
template <typename Visitor>
void describe(Visitor& v, Outer& o) {
  v("on", o.on, "a switch");
  v("rate", o.rate, "a rate", between(0, 10));
  v("name", o.name, "a name");
  v("color", o.color, "a color");
  v("inner", o.inner, "a section");
  v("parts", o.parts, "sections");
}

struct Lists {
  std::vector<std::string> names = {"a", "b"};
  std::vector<int64_t> sizes = {2};
};
template <typename Visitor>
void describe(Visitor& v, Lists& o) {
  v("names", o.names, "some");
  v("sizes", o.sizes, "more");
}

}  // namespace

template <>
struct EnumNames<Color> {
  static constexpr std::array names{std::pair{Color::red, std::string_view{"red"}},
                                    std::pair{Color::green, std::string_view{"green"}}};
};

namespace config {
namespace {

Status bind_text(const std::string& text, Outer& options) {
  auto node = parse_toml(text, "a.toml");
  if (!node.ok()) return node.status();
  return bind_options(*node, options);
}

std::string error_of(const std::string& text) {
  Outer options;
  const Status status = bind_text(text, options);
  EXPECT_EQ(status.code(), Status::Code::bad_request) << text;
  return status.message();
}

}  // namespace

TEST(OptionBinder, reads_every_type) {
  Outer options;
  ASSERT_TRUE(bind_text("on = true\nrate = 2\nname = 'n'\ncolor = 'green'\n"
                        "[inner]\nsize = 7\nweights = [1, 2.5]\n[[parts]]\nsize = 1\n[[parts]]\n",
                        options)
                  .ok());
  EXPECT_TRUE(options.on);
  EXPECT_EQ(options.rate, 2.0);
  EXPECT_EQ(options.color, Color::green);
  EXPECT_EQ(options.inner.size, 7);
  EXPECT_EQ(options.inner.weights, (std::vector<double>{1, 2.5}));
  ASSERT_EQ(options.parts.size(), 2u);
  EXPECT_EQ(options.parts[0].size, 1);
  EXPECT_EQ(options.parts[1].size, 3);
}

TEST(OptionBinder, one_value_stands_for_a_list_of_one) {
  Outer options;
  ASSERT_TRUE(bind_text("inner.weights = 4", options).ok());
  EXPECT_EQ(options.inner.weights, std::vector<double>{4});
}

TEST(OptionBinder, errors_name_file_line_key_and_the_nearest_known_one) {
  EXPECT_EQ(error_of("on = true\nrat = 1"),
            "a.toml:2: rat is not a known key; did you mean 'rate'?");
  EXPECT_EQ(error_of("[inner]\nsize = -1"),
            "a.toml:2: inner.size: must be at least 0 and at most 100, is -1");
  EXPECT_EQ(error_of("[[parts]]\nsize = 1\n[[parts]]\nsize = 101\n[[parts]]\n"),
            "a.toml:4: parts[1].size: must be at least 0 and at most 100, is 101");
  EXPECT_EQ(error_of("[inner]\n\nsize = 'x'"), "a.toml:3: inner.size must be an integer, not text");
  EXPECT_EQ(error_of("color = 'gren'"), "a.toml:1: color must be one of red, green, not 'gren'");
  EXPECT_EQ(error_of("inner = 3"), "a.toml:1: inner must be a section");
  EXPECT_EQ(error_of("inner.weights = [1, 'a']"),
            "a.toml:1: inner.weights[1] must be a number, not text");
  EXPECT_NE(error_of("on = = 3").find("a.toml:1: "), std::string::npos);
}

TEST(OptionBinder, set_overrides_the_file_and_is_named_in_errors) {
  auto node = parse_toml("name = 'file'\ninner.size = 2", "a.toml");
  ASSERT_TRUE(node.ok());
  ASSERT_TRUE(apply_set(*node, "name=plain words").ok());
  ASSERT_TRUE(apply_set(*node, "inner.size=9").ok());
  Outer options;
  ASSERT_TRUE(bind_options(*node, options).ok());
  EXPECT_EQ(options.name, "plain words");
  EXPECT_EQ(options.inner.size, 9);
  ASSERT_TRUE(apply_set(*node, "inner.size=true").ok());
  EXPECT_EQ(bind_options(*node, options).message(),
            "--set inner.size=true: inner.size must be an integer, not true or false");
  EXPECT_FALSE(apply_set(*node, "nothing").ok());
}

TEST(OptionBinder, an_optional_value_is_absent_unless_given_and_is_then_written) {
  Outer options;
  ASSERT_TRUE(bind_text("inner.size = 1", options).ok());
  EXPECT_FALSE(options.inner.own_rate.has_value());
  ASSERT_TRUE(bind_text("inner.own_rate = 0.25", options).ok());
  EXPECT_EQ(options.inner.own_rate, 0.25);
  EXPECT_EQ(OptionWriter::write(options.inner).dump(),
            R"({"size":1,"weights":[],"own_rate":0.25})");
  EXPECT_EQ(error_of("inner.own_rate = 'x'"),
            "a.toml:1: inner.own_rate must be a number, not text");
}

TEST(OptionWriter, what_it_writes_binds_to_the_same_values) {
  Outer options;
  options.color = Color::green;
  options.parts.resize(1);
  EXPECT_EQ(OptionWriter::write(options).dump(),
            R"({"on":false,"rate":0.5,"name":"x","color":"green",)"
            R"("inner":{"size":3,"weights":[]},"parts":[{"size":3,"weights":[]}]})");
}

TEST(OptionReference, lists_nested_keys_with_defaults) {
  const std::string page = OptionReference::markdown<Outer>("top");
  EXPECT_NE(page.find("| `top.inner.size` | `3` | how many; at least 0 and at most 100 |"),
            std::string::npos)
      << page;
  EXPECT_NE(page.find("| `top.inner.own_rate` | `` | in place of rate; at least 0 |"),
            std::string::npos)
      << page;
  EXPECT_NE(page.find("| `top.parts[].weights` | `[]` | one each; any finite number |"),
            std::string::npos)
      << page;
}

TEST(OptionReference, tells_the_defaults_of_lists) {
  EXPECT_EQ(OptionReference::markdown<Lists>("top"),
            "| key | default | meaning |\n|---|---|---|\n"
            "| `top.names` | `[\"a\",\"b\"]` | some |\n| `top.sizes` | `[2]` | more |\n");
}

}  // namespace config
}  // namespace recmill
