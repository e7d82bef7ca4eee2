/* SPDX-License-Identifier: MIT */
/* Stands in for libcufile. STANDIN_CUFILE=gds: a driver moves the data (driver.c, at STANDIN_DRIVER), and no system
 * call of this process does. STANDIN_CUFILE=compat: pread and pwrite, of batches and streams by threads of its own. */
#include "cufile.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "area.h"

struct work {
    int fd, writes, busy;
    long offset, size, memory;
    ssize_t *done;   /* of a stream: where the result goes */
    void *owner;     /* batch or stream */
    void *cookie;
    pthread_t thread;
    int slot;
};
static struct work g_works[SLOTS];
static struct area *g_area;
static int g_gds;
static const CUfileError_t g_fine = {0, 0}, g_bad = {5001, 0};

__attribute__((constructor)) static void begin(void)
{
    const char *const mode = getenv("STANDIN_CUFILE");
    g_gds = mode != NULL && strcmp(mode, "gds") == 0;
    const char *const driver = getenv("STANDIN_DRIVER");
    const int fd = g_gds && driver != NULL ? open(driver, O_RDWR | O_CLOEXEC) : -1;
    g_area = mmap(NULL, sizeof *g_area, PROT_READ | PROT_WRITE,
                  MAP_POPULATE | MAP_SHARED | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
    if (g_area == MAP_FAILED || (g_gds && fd < 0))
        abort();
}

char *standin_memory(void) { return g_area->memory; }

/* --- by the driver */

static void fill(struct work *work)
{
    for (work->slot = 0; work->slot < SLOTS; work->slot++) {
        struct slot *const slot = &g_area->slots[work->slot];
        int state = FREE;
        if (atomic_compare_exchange_strong(&slot->state, &state, FILLED)) {
            slot->pid = getpid();
            slot->fd = work->fd;
            slot->writes = work->writes;
            slot->offset = work->offset;
            slot->size = work->size;
            slot->memory = work->memory;
            atomic_store(&slot->state, ASKED);
            return;
        }
    }
    abort();
}
static int is_done(const struct work *work) { return atomic_load(&g_area->slots[work->slot].state) == DONE; }
static ssize_t take(const struct work *work)
{
    const ssize_t result = g_area->slots[work->slot].result;
    atomic_store(&g_area->slots[work->slot].state, FREE);
    return result;
}

/* --- by system calls */

static ssize_t by_calls(const struct work *work)
{
    char *const memory = g_area->memory + work->memory;
    return work->writes ? pwrite(work->fd, memory, (size_t)work->size, work->offset)
                        : pread(work->fd, memory, (size_t)work->size, work->offset);
}
static void *run(void *argument) { return (void *)by_calls(argument); }

static void start(struct work *work)
{
    if (g_gds)
        fill(work);
    else if (pthread_create(&work->thread, NULL, run, work) != 0)
        abort();
}
static ssize_t finish(struct work *work)
{
    void *result = NULL;
    work->busy = 0;
    if (g_gds)
        return take(work);
    pthread_join(work->thread, &result);
    return (ssize_t)result;
}
static struct work *new_work(void)
{
    for (int i = 0; i < SLOTS; i++)
        if (!g_works[i].busy) {
            g_works[i] = (struct work){.busy = 1};
            return &g_works[i];
        }
    abort();
}
static long place(const void *memory, off_t at) { return (long)((const char *)memory - g_area->memory + at); }
static int fd_of(CUfileHandle_t handle) { return *(const int *)handle; }

/* --- the interface */

CUfileError_t cuFileHandleRegister(CUfileHandle_t *handle, CUfileDescr_t *descriptor)
{
    if (descriptor->type != 1 || descriptor->handle.fd < 0)
        return g_bad;
    int *const kept = malloc(sizeof *kept);
    if (kept == NULL)
        abort();
    *kept = descriptor->handle.fd;
    *handle = kept;
    return g_fine;
}
void cuFileHandleDeregister(CUfileHandle_t handle) { free(handle); }

static ssize_t move(CUfileHandle_t handle, const void *memory, size_t size, off_t offset, off_t at, int writes)
{
    if (size > MEMORY) {
        errno = EINVAL;
        return -1;
    }
    struct work work = {.fd = fd_of(handle), .writes = writes, .offset = offset, .size = (long)size,
                        .memory = place(memory, at)};
    if (!g_gds)
        return by_calls(&work);
    fill(&work);
    wake_all(&g_area->asked);
    for (;;) {
        const int done = atomic_load(&g_area->done);
        if (is_done(&work))
            return take(&work);
        wait_while(&g_area->done, done);
    }
}
ssize_t cuFileRead(CUfileHandle_t handle, void *memory, size_t size, off_t offset, off_t at)
{
    return move(handle, memory, size, offset, at, 0);
}
ssize_t cuFileWrite(CUfileHandle_t handle, const void *memory, size_t size, off_t offset, off_t at)
{
    return move(handle, memory, size, offset, at, 1);
}

static CUfileError_t stream_move(CUfileHandle_t handle, void *memory, const size_t *size, const off_t *offset,
                                 const off_t *at, ssize_t *done, CUstream stream, int writes)
{
    struct work *const work = new_work();
    work->fd = fd_of(handle);
    work->writes = writes;
    work->offset = *offset;
    work->size = (long)*size;
    work->memory = place(memory, *at);
    work->done = done;
    work->owner = stream;
    start(work);
    if (g_gds)
        wake_all(&g_area->asked);
    return g_fine;
}
CUfileError_t cuFileReadAsync(CUfileHandle_t handle, void *memory, size_t *size, off_t *offset, off_t *at,
                              ssize_t *done, CUstream stream)
{
    return stream_move(handle, memory, size, offset, at, done, stream, 0);
}
CUfileError_t cuFileWriteAsync(CUfileHandle_t handle, void *memory, size_t *size, off_t *offset, off_t *at,
                               ssize_t *done, CUstream stream)
{
    return stream_move(handle, memory, size, offset, at, done, stream, 1);
}
void standin_wait(CUstream stream)
{
    for (int i = 0; i < SLOTS; i++) {
        struct work *const work = &g_works[i];
        if (!work->busy || work->done == NULL || work->owner != stream)
            continue;
        while (g_gds) {
            const int done = atomic_load(&g_area->done);
            if (is_done(work))
                break;
            wait_while(&g_area->done, done);
        }
        *work->done = finish(work);
    }
}

CUfileError_t cuFileBatchIOSetUp(CUfileBatchHandle_t *batch, unsigned count)
{
    *batch = malloc(count);
    return *batch == NULL ? g_bad : g_fine;
}
void cuFileBatchIODestroy(CUfileBatchHandle_t batch) { free(batch); }

CUfileError_t cuFileBatchIOSubmit(CUfileBatchHandle_t batch, unsigned count, CUfileIOParams_t *asked, unsigned flags)
{
    if (flags != 0)
        return g_bad;
    for (unsigned i = 0; i < count; i++) {
        struct work *const work = new_work();
        work->fd = fd_of(asked[i].fh);
        work->writes = asked[i].opcode == 1;
        work->offset = asked[i].u.batch.file_offset;
        work->size = (long)asked[i].u.batch.size;
        work->memory = place(asked[i].u.batch.devPtr_base, asked[i].u.batch.devPtr_offset);
        work->owner = batch;
        work->cookie = asked[i].cookie;
        start(work);
    }
    if (g_gds)
        wake_all(&g_area->asked);
    return g_fine;
}

CUfileError_t cuFileBatchIOGetStatus(CUfileBatchHandle_t batch, unsigned least, unsigned *count,
                                     CUfileIOEvents_t *events, struct timespec *limit)
{
    const unsigned most = *count;
    (void)limit;
    *count = 0;
    for (;;) {
        const int done = atomic_load(&g_area->done);
        for (int i = 0; i < SLOTS && *count < most; i++) {
            struct work *const work = &g_works[i];
            if (!work->busy || work->owner != batch || work->done != NULL || (g_gds && !is_done(work)))
                continue;
            const ssize_t result = finish(work);
            events[(*count)++] = (CUfileIOEvents_t){work->cookie, result < 0 ? 0x40 : 0x10, (size_t)result};
        }
        if (*count >= least || !g_gds)
            return g_fine;
        wait_while(&g_area->done, done);
    }
}
