// SPDX-License-Identifier: Apache-2.0
#include "device/gpu/nvrtc.h"

#include <dlfcn.h>

#include <array>

namespace recmill {
namespace {

constexpr int kLeastMajor = 13;
using Program = void*;
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
  if (!complete) return Status::Failed(library + " is no NVRTC of CUDA 13");
  int major = 0, minor = 0;
  functions.version(&major, &minor);
  made->version_ = std::to_string(major) + "." + std::to_string(minor);
  if (major < kLeastMajor)
    return Status::Failed(library + " is NVRTC " + made->version_ + ": 13.0 is the least");
  return std::shared_ptr<const Nvrtc>(made);
}

Nvrtc::~Nvrtc() {
  if (handle_ != nullptr) dlclose(handle_);
}

Result<CompiledKernels> Nvrtc::compile(const std::string& text, const std::string& name,
                                       const std::string& architecture) const {
  Program program = nullptr;
  if (const int error =
          functions_->create(&program, text.c_str(), name.c_str(), 0, nullptr, nullptr);
      error != 0)
    return Status::Failed(name + ": " + functions_->error_text(error));
  const std::string target = "--gpu-architecture=" + architecture;
  const std::array options{
      target.c_str(),       "--std=c++20",        "--fmad=false", "-default-device",
      "--ptxas-options=-v", "--diag-suppress=177"};  // what is declared and not used
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
    status = Status::Failed(name + ": " + functions_->error_text(error) + ": " +
                            compiled.said.substr(from));
  } else if (functions_->cubin_size(program, &size) == 0) {
    compiled.cubin.resize(size);
    functions_->cubin(program, reinterpret_cast<char*>(compiled.cubin.data()));
  }
  functions_->destroy(&program);
  if (!status.ok()) return status;
  return compiled;
}

}  // namespace recmill
