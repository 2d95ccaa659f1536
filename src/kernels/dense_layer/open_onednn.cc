// SPDX-License-Identifier: Apache-2.0
// oneDNN's functions, each a jump to the one in the library that open_onednn() opened. A program
// does not link that library: LibTorch has another oneDNN inside, and both export instances of
// templates by the same names. Of two that see each other the one sets up the other's kernels, and
// what LibTorch computes in bfloat16 has other bits where AVX-512 lacks its bfloat16 extension. A
// library that is opened locally is seen by nobody else.
#include "kernels/dense_layer/open_onednn.h"

#include <dlfcn.h>

#include <string>

// Those that dense_layer.cc and onednn_version.cc call.
#define RECMILL_ONEDNN_FUNCTIONS                    \
  FUNCTION(dnnl_engine_create)                      \
  FUNCTION(dnnl_engine_destroy)                     \
  FUNCTION(dnnl_get_effective_cpu_isa)              \
  FUNCTION(dnnl_matmul_desc_init)                   \
  FUNCTION(dnnl_memory_create)                      \
  FUNCTION(dnnl_memory_desc_get_size)               \
  FUNCTION(dnnl_memory_desc_init_by_strides)        \
  FUNCTION(dnnl_memory_desc_init_by_tag)            \
  FUNCTION(dnnl_memory_destroy)                     \
  FUNCTION(dnnl_memory_set_data_handle_v2)          \
  FUNCTION(dnnl_post_ops_append_eltwise)            \
  FUNCTION(dnnl_post_ops_append_sum)                \
  FUNCTION(dnnl_post_ops_create)                    \
  FUNCTION(dnnl_post_ops_destroy)                   \
  FUNCTION(dnnl_primitive_attr_create)              \
  FUNCTION(dnnl_primitive_attr_destroy)             \
  FUNCTION(dnnl_primitive_attr_set_post_ops)        \
  FUNCTION(dnnl_primitive_attr_set_scratchpad_mode) \
  FUNCTION(dnnl_primitive_create)                   \
  FUNCTION(dnnl_primitive_desc_destroy)             \
  FUNCTION(dnnl_primitive_desc_iterator_create)     \
  FUNCTION(dnnl_primitive_desc_iterator_destroy)    \
  FUNCTION(dnnl_primitive_desc_iterator_fetch)      \
  FUNCTION(dnnl_primitive_desc_query_md)            \
  FUNCTION(dnnl_primitive_destroy)                  \
  FUNCTION(dnnl_primitive_execute)                  \
  FUNCTION(dnnl_stream_create)                      \
  FUNCTION(dnnl_stream_destroy)                     \
  FUNCTION(dnnl_version)

// Where each is; hidden, so that the jump need not look that up.
extern "C" {
#define FUNCTION(name) __attribute__((visibility("hidden"))) void* recmill_at_##name = nullptr;
RECMILL_ONEDNN_FUNCTIONS
#undef FUNCTION
}

#define FUNCTION(name)                                                          \
  asm(".pushsection .text, \"ax\", @progbits\n"                                 \
      ".globl " #name "\n.hidden " #name "\n.type " #name ", @function\n" #name \
      ":\n"                                                                     \
      "  jmp *recmill_at_" #name                                                \
      "(%rip)\n"                                                                \
      ".size " #name ", . - " #name "\n.popsection");
RECMILL_ONEDNN_FUNCTIONS
#undef FUNCTION

namespace recmill::kernels::dense_layer {
namespace {

Status find_functions() {
  void* const library = dlopen(RECMILL_ONEDNN_LIBRARY, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return Status::Failed(std::string("oneDNN: ") + dlerror());
  void* found = nullptr;
#define FUNCTION(name)                                                                  \
  found = dlsym(library, #name);                                                        \
  if (found == nullptr) return Status::Failed(RECMILL_ONEDNN_LIBRARY " has no " #name); \
  recmill_at_##name = found;
  RECMILL_ONEDNN_FUNCTIONS
#undef FUNCTION
  return {};
}

}  // namespace

Status open_onednn() {
  static const Status opened = find_functions();
  return opened;
}

}  // namespace recmill::kernels::dense_layer
