/* SPDX-License-Identifier: MIT */
/* Results of Linux AIO that are taken from the ring in memory, without a call, as QEMU takes them. Buffered reads are
 * done when io_submit returns: where results are posted is known. */
#include "expect.h"

#include <linux/aio_abi.h>
#include <sys/eventfd.h>

#define AIO_RING_MAGIC 0xa10a10a1

/* Kernel ABI that no header of user space has. */
struct aio_ring {
    unsigned id, entries;
    _Atomic unsigned head, tail;
    unsigned magic, compat, incompat, header_length;
    struct io_event events[];
};

static void setup(void) { make_file("data", 1 * MIB); }

static aio_context_t g_context;
static struct iocb g_blocks[4];
static int g_eventfd = -1;

/* Into buffer `i`, or out of it. `needs`: the request that read what this one writes. */
static void submit(int i, int code, const char *name, long offset, const char *request, const char *needs)
{
    g_blocks[i] = (struct iocb){.aio_data = (unsigned)i,
                                .aio_lio_opcode = (unsigned short)code,
                                .aio_fildes = (unsigned)fd_(name),
                                .aio_buf = (unsigned long)(g_buffer + i * 65536L),
                                .aio_nbytes = 4096,
                                .aio_offset = offset,
                                .aio_flags = g_eventfd < 0 ? 0 : IOCB_FLAG_RESFD,
                                .aio_resfd = (unsigned)g_eventfd};
    struct iocb *const list[1] = {&g_blocks[i]};
    WANT(CALL3(SYS_io_submit, g_context, 1, list), 1);
    say("aio_submit %s offset=%ld size=4096 flags=0 arg=%d list= request=%s needs=%s result=0", on(name), offset, code,
        request, needs);
}
static void say_taken(int arg, int count, const char *const *requests)
{
    say("aio_reap size=%d arg=%d result=%d", count, arg, count);
    for (int i = 0; i < count; i++)
        say("aio_complete request=%s size=4096 result=4096", requests[i]);
}
static struct aio_ring *ring(void) { return (struct aio_ring *)g_context; } /* NOLINT: that is what a context is */
static void let_go(unsigned count)
{
    struct aio_ring *const r = ring();
    if (r->magic != AIO_RING_MAGIC || (r->tail + r->entries - r->head) % r->entries < count)
        give_up("results are not in the ring");
    r->head = (r->head + count) % r->entries;
}
#define TAKEN(arg, ...) \
    say_taken(arg, sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *), (const char *[]){__VA_ARGS__})

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    WANT(CALL2(SYS_io_setup, 8, &g_context), 0);
    do_open("a", "data", O_RDONLY, 0, ANY_FD);
    do_open("b", "out", O_CREAT | O_RDWR, 0644, ANY_FD);

    /* One, then two at once, seen with the next call, whichever that is. */
    submit(0, IOCB_CMD_PREAD, "a", 4096, "r0", "-");
    let_go(1);
    TAKEN(0, "r0");
    submit(0, IOCB_CMD_PWRITE, "b", 0, "w0", "r0");
    submit(1, IOCB_CMD_PREAD, "a", 8192, "r1", "-");
    let_go(2);
    TAKEN(0, "w0", "r1");
    do_pread("a", 100, 0, 100);

    /* By the kernel: told once. */
    submit(2, IOCB_CMD_PREAD, "a", 0, "k0", "-");
    struct io_event event;
    WANT(CALL5(SYS_io_getevents, g_context, 1, 1, &event, 0), 1);
    TAKEN(1, "k0");

    /* Dealt with when the eventfd was read, and let go of only afterwards. */
    g_eventfd = eventfd(0, EFD_CLOEXEC);
    submit(0, IOCB_CMD_PREAD, "a", 0, "e0", "-");
    submit(1, IOCB_CMD_PREAD, "a", 40960, "e1", "-");
    uint64_t count = 0;
    WANT(CALL3(SYS_read, g_eventfd, &count, 8), 8);
    TAKEN(0, "e0", "e1");
    submit(0, IOCB_CMD_PWRITE, "b", 4096, "w1", "e0");
    let_go(2);
    submit(1, IOCB_CMD_PWRITE, "b", 8192, "w2", "e1");
    WANT(CALL3(SYS_read, g_eventfd, &count, 8), 8);
    TAKEN(0, "w1", "w2");
    let_go(2);

    /* More than the ring has entries. */
    g_eventfd = -1;
    static char names[300][8];
    for (int i = 0; i < 300; i++) {
        snprintf(names[i], sizeof names[i], "n%d", i);
        submit(3, IOCB_CMD_PREAD, "a", 4096L * (i % 256), names[i], "-");
        let_go(1);
        TAKEN(0, names[i]);
    }
    /* Another context where that one was: nothing was taken from it yet. */
    const aio_context_t first = g_context;
    WANT(CALL1(SYS_io_destroy, g_context), 0);
    g_context = 0;
    WANT(CALL2(SYS_io_setup, 8, &g_context), 0);
    if (g_context != first)
        fprintf(stderr, "the second context lies elsewhere\n");
    submit(0, IOCB_CMD_PREAD, "a", 4096, "s0", "-");
    submit(1, IOCB_CMD_PREAD, "a", 8192, "s1", "-");
    let_go(1);
    TAKEN(0, "s0");
    do_close("b");
    let_go(1);
    TAKEN(0, "s1");
    do_close("a");
    CALL1(SYS_io_destroy, g_context);
    return 0;
}
