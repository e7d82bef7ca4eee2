/* SPDX-License-Identifier: MIT */
/* Linux AIO by its system calls: reads, writes, vectors, syncs; several at once; refused. */
#include "expect.h"

#include <linux/aio_abi.h>

static void setup(void) { make_file("data", 1 * MIB); }

static aio_context_t g_context;
static struct iocb g_blocks[8];
static struct iovec g_vector[2];

static struct iocb *block(int i, int code, const char *name, long offset, long size)
{
    g_blocks[i] = (struct iocb){.aio_data = (unsigned)i,
                                .aio_lio_opcode = (unsigned short)code,
                                .aio_fildes = (unsigned)fd_(name),
                                .aio_buf = (unsigned long)(g_buffer + i * 65536L),
                                .aio_nbytes = (unsigned long)size,
                                .aio_offset = offset};
    return &g_blocks[i];
}
/* `needs`: the request that read what this one writes. */
static void say_submit(int i, const char *request, const char *name, const char *list, long size, const char *needs)
{
    const struct iocb *const b = &g_blocks[i];
    say("aio_submit %s offset=%ld size=%ld flags=%d arg=%d list=%s request=%s needs=%s result=0", on(name),
        (long)b->aio_offset, size, (int)b->aio_rw_flags, b->aio_lio_opcode, list, request, needs);
}
/* One event, of the request that was submitted alone. */
static void reap(const char *request, long size, long want)
{
    struct io_event event;
    WANT(CALL5(SYS_io_getevents, g_context, 1, 1, &event, 0), 1);
    say("aio_reap size=1 arg=1 result=1");
    say("aio_complete request=%s size=%ld result=%ld", request, size, WANT(event.res, want));
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    WANT(CALL2(SYS_io_setup, 8, &g_context), 0);
    do_open("a", "data", O_RDONLY, 0, ANY_FD);
    do_open("b", "out", O_CREAT | O_RDWR, 0644, ANY_FD);
    struct iocb *list[3];
    list[0] = block(0, IOCB_CMD_PREAD, "a", 4096, 8192);
    WANT(CALL3(SYS_io_submit, g_context, 1, list), 1);
    say_submit(0, "r0", "a", "", 8192, "-");
    reap("r0", 8192, 8192);
    list[0] = block(0, IOCB_CMD_PREAD, "a", 1 * MIB - 100, 8192);
    WANT(CALL3(SYS_io_submit, g_context, 1, list), 1);
    say_submit(0, "r1", "a", "", 8192, "-"); /* the same block again: another request */
    reap("r1", 8192, 100);
    list[0] = block(1, IOCB_CMD_PWRITE, "b", 1000, 5000);
    WANT(CALL3(SYS_io_submit, g_context, 1, list), 1);
    say_submit(1, "w0", "b", "", 5000, "-"); /* from memory that none has read */
    reap("w0", 5000, 5000);

    /* What r1 read last to there; it was less than this. */
    list[0] = block(0, IOCB_CMD_PWRITE, "b", 10000, 8192);
    WANT(CALL3(SYS_io_submit, g_context, 1, list), 1);
    say_submit(0, "w1", "b", "", 8192, "r1,r0");
    reap("w1", 8192, 8192);

    g_vector[0] = (struct iovec){g_buffer, 100};
    g_vector[1] = (struct iovec){g_buffer + 4096, 200};
    list[0] = block(2, IOCB_CMD_PREADV, "a", 50000, 2);
    list[0]->aio_buf = (unsigned long)g_vector;
    WANT(CALL3(SYS_io_submit, g_context, 1, list), 1);
    say_submit(2, "v0", "a", "100,200", 300, "-");
    reap("v0", 300, 300);
    list[0] = block(3, IOCB_CMD_FSYNC, "b", 0, 0);
    list[0]->aio_buf = 0;
    WANT(CALL3(SYS_io_submit, g_context, 1, list), 1);
    say_submit(3, "s0", "b", "", 0, "-");
    reap("s0", 0, 0);

    /* Three at once; buffered ones are done in the order of submission. */
    for (int i = 0; i < 3; i++)
        list[i] = block(4 + i, IOCB_CMD_PREAD, "a", i * 100000L, 1000 + i);
    WANT(CALL3(SYS_io_submit, g_context, 3, list), 3);
    static const char *const names[3] = {"t0", "t1", "t2"};
    for (int i = 0; i < 3; i++)
        say_submit(4 + i, names[i], "a", "", 1000 + i, "-");
    struct io_event events[3];
    WANT(CALL5(SYS_io_getevents, g_context, 3, 3, events, 0), 3);
    say("aio_reap size=3 arg=3 result=3");
    for (int i = 0; i < 3; i++)
        say("aio_complete request=%s size=%ld result=%ld", names[events[i].data - 4], (long)(1000 + events[i].data - 4),
            (long)events[i].res);

    /* Nothing to take, and not waited for. */
    WANT(CALL5(SYS_io_getevents, g_context, 0, 3, events, 0), 0);
    say("aio_reap size=3 arg=0 result=0");
    do_close("b");
    do_close("a");
    CALL1(SYS_io_destroy, g_context);
    return 0;
}
