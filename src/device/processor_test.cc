// SPDX-License-Identifier: Apache-2.0
#include "device/processor.h"

#include <gtest/gtest.h>

#include <sstream>

namespace recmill {
namespace {

std::string model_of(const std::string& text) {
  std::istringstream cpuinfo(text);
  return processor_model(cpuinfo);
}

TEST(ProcessorModel, tells_processors_of_one_name_apart) {
  const std::string vendor = "processor\t: 0\nvendor_id\t: AuthenticAMD\n",
                    name = "model name\t: AMD EPYC\ncache size\t: 1024 KB\npower management:\n";
  const std::string second = "\nprocessor\t: 1\ncpu family\t: 1\nmodel\t\t: 2\n";
  EXPECT_EQ(model_of(vendor + "cpu family\t: 25\nmodel\t\t: 17\n" + name + second),
            "AMD EPYC family 25 model 17");
  EXPECT_EQ(model_of(vendor + "cpu family\t: 26\nmodel\t\t: 2\n" + name + second),
            "AMD EPYC family 26 model 2");
}

TEST(ProcessorModel, is_said_as_far_as_the_system_says_it) {
  EXPECT_EQ(model_of("processor\t: 0\nmodel name\t: Some Core\n"), "Some Core");
  EXPECT_EQ(model_of(""), "unknown processor");
}

TEST(ThisProcessor, has_a_name_cores_and_a_cache) {
  const Processor processor = this_processor();
  EXPECT_NE(processor.name.find(" cores"), std::string::npos) << processor.name;
  EXPECT_GT(processor.l2_bytes, 0);
}

}  // namespace
}  // namespace recmill
