/* SPDX-License-Identifier: MIT */
/* As much of libcufile's and CUDA's interface as the tests call. Written from the public documentation; the layouts are
 * those that capture/bpf/cufile.h reads. */
#ifndef REPRISE_TESTS_CUFILE_H
#define REPRISE_TESTS_CUFILE_H

#include <stddef.h>
#include <sys/types.h>
#include <time.h>

typedef struct {
    int err; /* 0: success */
    int cu_err;
} CUfileError_t;
typedef void* CUfileHandle_t;
typedef void* CUfileBatchHandle_t;
typedef void* CUstream;

typedef struct {
    int type; /* 1: a descriptor */
    union {
        int fd;
        void* handle;
    } handle;
    const void* fs_ops;
} CUfileDescr_t;

typedef struct {
    int mode; /* 1: batch */
    union {
        struct {
            void* devPtr_base;
            off_t file_offset;
            off_t devPtr_offset;
            size_t size;
        } batch;
    } u;
    CUfileHandle_t fh;
    int opcode; /* 0: read, 1: write */
    void* cookie;
} CUfileIOParams_t;

typedef struct {
    void* cookie;
    int status; /* 0x10: complete, 0x40: failed */
    size_t ret;
} CUfileIOEvents_t;

CUfileError_t cuFileHandleRegister(CUfileHandle_t* handle, CUfileDescr_t* descriptor);
void cuFileHandleDeregister(CUfileHandle_t handle);
ssize_t cuFileRead(CUfileHandle_t handle, void* memory, size_t size, off_t offset, off_t at);
ssize_t cuFileWrite(CUfileHandle_t handle, const void* memory, size_t size, off_t offset, off_t at);
CUfileError_t cuFileReadAsync(CUfileHandle_t handle, void* memory, size_t* size, off_t* offset, off_t* at,
                              ssize_t* done, CUstream stream);
CUfileError_t cuFileWriteAsync(CUfileHandle_t handle, void* memory, size_t* size, off_t* offset, off_t* at,
                               ssize_t* done, CUstream stream);
CUfileError_t cuFileBatchIOSetUp(CUfileBatchHandle_t* batch, unsigned count);
CUfileError_t cuFileBatchIOSubmit(CUfileBatchHandle_t batch, unsigned count, CUfileIOParams_t* asked, unsigned flags);
CUfileError_t cuFileBatchIOGetStatus(CUfileBatchHandle_t batch, unsigned least, unsigned* count,
                                     CUfileIOEvents_t* events, struct timespec* limit);
void cuFileBatchIODestroy(CUfileBatchHandle_t batch);
int cuStreamSynchronize(CUstream stream);

/* The stand-in's own: the memory of its accelerator, and what cuStreamSynchronize() waits by. */
char* standin_memory(void);
void standin_wait(CUstream stream);

#endif
