// SPDX-License-Identifier: Apache-2.0
// Of the C interface of CUDA's driver (libcuda.so.1, version 13) what is called: types, numbers and
// names are its own.
#pragma once

#include <cstddef>
#include <cstdint>

namespace recmill::cuda {

using Result = int;  // CUresult; 0: it went well
constexpr Result kOutOfMemory = 2, kNoImage = 209, kNotReady = 600;
/// Errors of what a kernel does, after which the context is of no use: CUDA_ERROR_ILLEGAL_ADDRESS,
/// LAUNCH_TIMEOUT, ASSERT, and HARDWARE_STACK_ERROR to LAUNCH_FAILED.
constexpr bool is_of_kernels(Result error) {
  return error == 700 || error == 702 || error == 710 || (error >= 714 && error <= 719);
}

using Device = int;
using Address = unsigned long long;  // CUdeviceptr
using Handle = void*;                // a context, stream, event, module or function
struct MemoryHandle {                // CUipcMemHandle
  std::byte bytes[64];
};

// CUdevice_attribute
enum Attribute : int {
  kSms = 16,
  kMemoryKilohertz = 36,
  kMemoryBits = 37,
  kThreadsPerSm = 39,
  kComputeMajor = 75,
  kComputeMinor = 76,
  kSharedPerSm = 81,
  kRegistersPerSm = 82,
  kSharedOfBlockOptIn = 97,
  kBlocksPerSm = 106,
  kSharedReserved = 111,
};
constexpr int kMostThreads = 0, kShared = 1, kMostDynamicShared = 8;  // CUfunction_attribute
constexpr unsigned kNonBlocking = 1;                                  // CUstream_flags
constexpr int kCaptureRelaxed = 2;  // CUstreamCaptureMode: libraries may allocate meanwhile
constexpr unsigned kPortable = 1, kMapped = 2;  // CU_MEMHOSTALLOC_*
constexpr unsigned kLazyPeerAccess = 1;         // CUipcMem_flags

/// Each is called as the library's function of the name beside it.
struct Api {
  Result (*init)(unsigned);                                     // cuInit
  Result (*driver_version)(int*);                               // cuDriverGetVersion
  Result (*error_string)(Result, const char**);                 // cuGetErrorString
  Result (*device_count)(int*);                                 // cuDeviceGetCount
  Result (*device)(Device*, int);                               // cuDeviceGet
  Result (*device_name)(char*, int, Device);                    // cuDeviceGetName
  Result (*device_id)(std::byte*, Device);                      // cuDeviceGetUuid_v2
  Result (*device_attribute)(int*, Attribute, Device);          // cuDeviceGetAttribute
  Result (*device_memory)(size_t*, Device);                     // cuDeviceTotalMem_v2
  Result (*retain_context)(Handle*, Device);                    // cuDevicePrimaryCtxRetain
  Result (*release_context)(Device);                            // cuDevicePrimaryCtxRelease_v2
  Result (*set_context)(Handle);                                // cuCtxSetCurrent
  Result (*allocate)(Address*, size_t);                         // cuMemAlloc_v2
  Result (*free)(Address);                                      // cuMemFree_v2
  Result (*memory_info)(size_t* free, size_t* all);             // cuMemGetInfo_v2
  Result (*share)(MemoryHandle*, Address);                      // cuIpcGetMemHandle
  Result (*open_shared)(Address*, MemoryHandle, unsigned);      // cuIpcOpenMemHandle_v2
  Result (*close_shared)(Address);                              // cuIpcCloseMemHandle
  Result (*allocate_host)(void**, size_t, unsigned);            // cuMemHostAlloc
  Result (*address_of_host)(Address*, void*, unsigned);         // cuMemHostGetDevicePointer_v2
  Result (*free_host)(void*);                                   // cuMemFreeHost
  Result (*open_stream)(Handle*, unsigned, int priority);       // cuStreamCreateWithPriority
  Result (*close_stream)(Handle);                               // cuStreamDestroy_v2
  Result (*query_stream)(Handle);                               // cuStreamQuery
  Result (*wait_event)(Handle stream, Handle event, unsigned);  // cuStreamWaitEvent
  Result (*copy)(Address, Address, size_t, Handle);             // cuMemcpyAsync
  Result (*fill)(Address, unsigned char, size_t, Handle);       // cuMemsetD8Async
  Result (*open_event)(Handle*, unsigned);                      // cuEventCreate
  Result (*close_event)(Handle);                                // cuEventDestroy_v2
  Result (*record)(Handle event, Handle stream);                // cuEventRecord
  Result (*query_event)(Handle);                                // cuEventQuery
  Result (*elapsed)(float* milliseconds, Handle, Handle);       // cuEventElapsedTime
  Result (*begin_capture)(Handle stream, int mode);             // cuStreamBeginCapture_v2
  Result (*end_capture)(Handle stream, Handle* graph);          // cuStreamEndCapture
  Result (*instantiate)(Handle* executable, Handle graph,
                        unsigned long long flags);                  // cuGraphInstantiateWithFlags
  Result (*launch_graph)(Handle executable, Handle stream);         // cuGraphLaunch
  Result (*close_executable)(Handle);                               // cuGraphExecDestroy
  Result (*close_graph)(Handle);                                    // cuGraphDestroy
  Result (*load_module)(Handle*, const void*);                      // cuModuleLoadData
  Result (*function)(Handle*, Handle module, const char*);          // cuModuleGetFunction
  Result (*set_function)(Handle, int attribute, int value);         // cuFuncSetAttribute
  Result (*function_attribute)(int* value, int attribute, Handle);  // cuFuncGetAttribute
  Result (*launch)(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                   Handle stream, void** arguments, void** extra);  // cuLaunchKernel
};

}  // namespace recmill::cuda
