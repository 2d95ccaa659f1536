// SPDX-License-Identifier: Apache-2.0
// What libFuzzer calls.
#include <cstdint>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/temporary_folder.h"
#include "base/testing/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  recmill::fuzz::feed({reinterpret_cast<const char*>(bytes), size});
  return 0;
}

// Gives the seeds as the last folder of the corpus.
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  static const recmill::TemporaryFolder folder;
  int number = 0;
  for (const std::string& seed : recmill::fuzz::seeds()) {
    const std::string path = folder.path() + "/" + std::to_string(number++);
    RECMILL_CHECK(recmill::write_atomically(recmill::posix_files(), path, seed).ok(), path);
  }
  static std::string path = folder.path();
  static std::vector<char*> arguments(*argv, *argv + *argc);
  arguments.push_back(path.data());
  *argc = static_cast<int>(arguments.size());
  arguments.push_back(nullptr);
  *argv = arguments.data();
  return 0;
}
