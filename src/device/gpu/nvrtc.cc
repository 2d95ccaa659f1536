// SPDX-License-Identifier: Apache-2.0
#include "device/gpu/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>

namespace recmill {
namespace {

constexpr int kLeastMajor = 13;
using Program = void*;
/// Of all texts; what is declared and not used is no warning.
constexpr std::array kOptions{"--std=c++20", "--fmad=false", "-default-device",
                              "--ptxas-options=-v", "--diag-suppress=177"};
constexpr const char* kToolkit = "/usr/local/cuda/lib64/";  // where the loader may not look

void* open_library(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle != nullptr || library.find('/') != std::string::npos) return handle;
  return dlopen((kToolkit + library).c_str(), RTLD_NOW | RTLD_LOCAL);
}

}  // namespace

// Of the library's C interface what is used; every call returns 0 where it went well.
struct Nvrtc::Functions {
  int (*version)(int*, int*) = nullptr;
  const char* (*error_text)(int) = nullptr;
  int (*create)(Program*, const char* text, const char* name, int headers, const char* const* texts,
                const char* const* names) = nullptr;
  int (*destroy)(Program*) = nullptr;
  int (*compile)(Program, int count, const char* const* options) = nullptr;
  int (*log_size)(Program, size_t*) = nullptr;
  int (*log)(Program, char*) = nullptr;
  int (*cubin_size)(Program, size_t*) = nullptr;
  int (*cubin)(Program, char*) = nullptr;
  int (*ptx_size)(Program, size_t*) = nullptr;
  int (*ptx)(Program, char*) = nullptr;
  int (*architecture_count)(int*) = nullptr;
  int (*architectures)(int*) = nullptr;  // 75: sm_75
};

Result<std::shared_ptr<const Nvrtc>> Nvrtc::load(const std::string& library) {
  std::shared_ptr<Nvrtc> made(new Nvrtc);
  made->handle_ = open_library(library);
  if (made->handle_ == nullptr)
    return Status::Failed("the compiler of kernels, " + library +
                          ", cannot be loaded: 'make setup' installs it (" + dlerror() + ")");
  made->functions_ = std::make_unique<Functions>();
  bool complete = true;
  const auto find = [&](auto& function, const char* name) {
    void* symbol = dlsym(made->handle_, name);
    complete = complete && symbol != nullptr;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(symbol);
  };
  Functions& functions = *made->functions_;
  find(functions.version, "nvrtcVersion");
  find(functions.error_text, "nvrtcGetErrorString");
  find(functions.create, "nvrtcCreateProgram");
  find(functions.destroy, "nvrtcDestroyProgram");
  find(functions.compile, "nvrtcCompileProgram");
  find(functions.log_size, "nvrtcGetProgramLogSize");
  find(functions.log, "nvrtcGetProgramLog");
  find(functions.cubin_size, "nvrtcGetCUBINSize");
  find(functions.cubin, "nvrtcGetCUBIN");
  find(functions.ptx_size, "nvrtcGetPTXSize");
  find(functions.ptx, "nvrtcGetPTX");
  find(functions.architecture_count, "nvrtcGetNumSupportedArchs");
  find(functions.architectures, "nvrtcGetSupportedArchs");
  if (!complete) return Status::Failed(library + " is no NVRTC of CUDA 13");
  int major = 0, minor = 0;
  if (const int error = functions.version(&major, &minor); error != 0)
    return Status::Failed(library + ": its version: " + functions.error_text(error));
  made->version_ = std::to_string(major) + "." + std::to_string(minor);
  if (major < kLeastMajor)
    return Status::Failed(library + " is NVRTC " + made->version_ + ": 13.0 is the least");
  RECMILL_ASSIGN_OR_RETURN(made->identity_, made->build());
  for (const char* const option : kOptions) made->identity_ += std::string(" ") + option;
  return std::shared_ptr<const Nvrtc>(made);
}

Nvrtc::~Nvrtc() {
  if (handle_ != nullptr) dlclose(handle_);
}

// What it writes above any text that it compiles, in one line: the same wherever the library is
// installed, and another one of each release.
Result<std::string> Nvrtc::build() const {
  Program program = nullptr;
  size_t size = 0;
  int error = functions_->create(&program, "", "build.cu", 0, nullptr, nullptr);
  if (error == 0) error = functions_->compile(program, 0, nullptr);
  if (error == 0) error = functions_->ptx_size(program, &size);
  std::string text(error == 0 ? size : 0, '\0');
  if (error == 0) error = functions_->ptx(program, text.data());
  if (program != nullptr) functions_->destroy(&program);
  if (error != 0)
    return Status::Failed("NVRTC " + version_ +
                          ": an empty text: " + functions_->error_text(error));
  std::string build = version_;
  for (size_t at = 0; text.compare(at, 2, "//") == 0; at = text.find('\n', at) + 1) {
    const size_t end = text.find('\n', at);
    if (end == std::string::npos) break;
    build += text.substr(at + 2, end - at - 2);
  }
  return build;
}

// What is no sm_NUMBER is the compiler's to refuse.
Status Nvrtc::check_architecture(const std::string& architecture) const {
  if (!architecture.starts_with("sm_")) return {};
  int count = 0;
  if (functions_->architecture_count(&count) != 0) return {};
  std::vector<int> known(count);
  if (functions_->architectures(known.data()) != 0) return {};
  const int number = std::atoi(architecture.c_str() + 3);
  if (std::ranges::find(known, number) != known.end()) return {};
  std::string all;
  for (const int of : known) all += (all.empty() ? "sm_" : ", sm_") + std::to_string(of);
  return Status::Failed("NVRTC " + version_ + " does not compile for " + architecture +
                        ", but for " + all);
}

Result<CompiledKernels> Nvrtc::compile(const std::string& text, const std::string& name,
                                       const std::string& architecture) const {
  RECMILL_RETURN_IF_ERROR(check_architecture(architecture));
  Program program = nullptr;
  if (const int error =
          functions_->create(&program, text.c_str(), name.c_str(), 0, nullptr, nullptr);
      error != 0)
    return Status::Failed(name + ": " + functions_->error_text(error));
  const std::string target = "--gpu-architecture=" + architecture;
  std::vector<const char*> options{target.c_str()};
  options.insert(options.end(), kOptions.begin(), kOptions.end());
  const int error = functions_->compile(program, static_cast<int>(options.size()), options.data());
  CompiledKernels compiled;
  size_t size = 0;
  if (functions_->log_size(program, &size) == 0 && size > 1) {
    compiled.said.resize(size);
    functions_->log(program, compiled.said.data());
    std::erase(compiled.said, '\0');
  }
  Status status;
  if (error != 0) {
    const size_t first = compiled.said.find("error");
    const size_t from = first == std::string::npos ? 0 : compiled.said.rfind('\n', first) + 1;
    const size_t end = compiled.said.find_last_not_of('\n') + 1;
    status = Status::Failed(name + ": " + functions_->error_text(error) + ": " +
                            compiled.said.substr(from, std::max(end, from) - from));
  } else {
    int of_cubin = functions_->cubin_size(program, &size);
    compiled.cubin.resize(of_cubin == 0 ? size : 0);
    if (of_cubin == 0)
      of_cubin = functions_->cubin(program, reinterpret_cast<char*>(compiled.cubin.data()));
    if (of_cubin != 0)
      status = Status::Failed(name + ": its binary: " + functions_->error_text(of_cubin));
    else if (compiled.cubin.empty())
      status = Status::Failed(name + ": " + architecture + " gives no binary");
  }
  functions_->destroy(&program);
  if (!status.ok()) return status;
  return compiled;
}

}  // namespace recmill
