// SPDX-License-Identifier: Apache-2.0
#include "cli/versions.h"

#include "base/json/json.h"
#include "device/instruction_set.h"
#include "kernels/dense_layer/onednn_version.h"
#include "model/torch_build.h"
#include "program/build_info.h"
#include "program/open_world.h"
#include "reader/arrow/arrow_version.h"

namespace recmill::cli {

Json versions() {
  return {{"version", program::build_version()}, {"commit", program::build_commit()},
          {"build", program::build_type()},      {"compiler", __VERSION__},
          {"instructions", instruction_set()},   {"MPI", program::mpi_library()},
          {"LibTorch", model::torch_version()},  {"oneDNN", kernels::dense_layer::onednn_version()},
          {"Arrow", reader::arrow_version()}};
}

std::string versions_text() {
  const Json all = versions();
  std::string text;
  for (const auto& [name, value] : all.items())
    text += name + " " + value.get<std::string>() + "\n";
  return text;
}

}  // namespace recmill::cli
