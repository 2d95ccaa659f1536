// SPDX-License-Identifier: Apache-2.0
#include "base/proc_bytes.h"

#include <fstream>
#include <string>

namespace recmill {

int64_t proc_bytes(const char* path, std::string_view key) {
  std::ifstream file(path);
  std::string found, rest;
  while (file >> found) {
    if (int64_t value = 0; found == key && file >> value) return value * 1024;
    std::getline(file, rest);
  }
  return 0;
}

}  // namespace recmill
