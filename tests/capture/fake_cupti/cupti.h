/* As much of CUPTI's interface as the collector uses, declared by ourselves, so that it can be built and run against
 * fake_cupti.cpp where CUPTI is not. Not the real layouts.
 * SPDX-License-Identifier: MIT */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define CUPTIAPI
#define CUPTI_API_VERSION 28

typedef enum {
    CUPTI_SUCCESS = 0,
    CUPTI_ERROR_MAX_LIMIT_REACHED = 12,
    CUPTI_ERROR_MULTIPLE_SUBSCRIBERS = 39
} CUptiResult;
typedef enum {
    CUPTI_ACTIVITY_KIND_MEMCPY = 1,
    CUPTI_ACTIVITY_KIND_MEMSET = 2,
    CUPTI_ACTIVITY_KIND_KERNEL = 3,
    CUPTI_ACTIVITY_KIND_DRIVER = 4,
    CUPTI_ACTIVITY_KIND_RUNTIME = 5,
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL = 10,
    CUPTI_ACTIVITY_KIND_SYNCHRONIZATION = 38,
} CUpti_ActivityKind;
typedef enum { CUPTI_CB_DOMAIN_DRIVER_API = 1, CUPTI_CB_DOMAIN_RUNTIME_API = 2 } CUpti_CallbackDomain;
typedef enum { CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE = 3 } CUpti_ActivitySynchronizationType;
typedef struct CUctx_st* CUcontext;

typedef struct {
    CUpti_ActivityKind kind;
} CUpti_Activity;
typedef struct {
    CUpti_ActivityKind kind;
    uint64_t start, end;
    uint32_t deviceId, contextId, streamId, correlationId;
    const char* name;
} CUpti_ActivityKernel9;
typedef struct {
    CUpti_ActivityKind kind;
    uint64_t start, end;
    uint32_t deviceId, contextId, streamId, correlationId;
} CUpti_ActivityMemcpy, CUpti_ActivityMemset;
typedef struct {
    CUpti_ActivityKind kind;
    uint32_t cbid;
    uint64_t start, end;
    uint32_t processId, threadId, correlationId;
} CUpti_ActivityAPI;
typedef struct {
    CUpti_ActivityKind kind;
    CUpti_ActivitySynchronizationType type;
    uint64_t start, end;
    uint32_t correlationId, contextId, streamId;
} CUpti_ActivitySynchronization;

#ifdef __cplusplus
extern "C" {
#endif
typedef uint64_t (*CUpti_TimestampCallbackFunc)(void);
typedef void (*CUpti_BuffersCallbackRequestFunc)(uint8_t**, size_t*, size_t*);
typedef void (*CUpti_BuffersCallbackCompleteFunc)(CUcontext, uint32_t, uint8_t*, size_t, size_t);
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc);
CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc);
CUptiResult cuptiActivityEnable(CUpti_ActivityKind);
CUptiResult cuptiActivityFlushAll(uint32_t);
CUptiResult cuptiActivityGetNextRecord(uint8_t*, size_t, CUpti_Activity**);
CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext, uint32_t, size_t*);
CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain, uint32_t, const char**);
#ifdef __cplusplus
}
#endif
