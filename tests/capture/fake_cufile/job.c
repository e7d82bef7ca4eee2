/* SPDX-License-Identifier: MIT */
/* Reads and writes by libcufile: JOB ROOT EXPECT sync|batch|stream|odd|failing. It says what its log has to hold
 * (tests/programs/README.md) where a driver moves the data; of what the library does by system calls only the count
 * is known (check of the script). */
#include "cufile.h"
#include "tests/programs/expect.h"

#define PIECE (64 * KIB)
#define DEPTH 16

static void setup(void) { make_file("data", 2 * MIB); }

static CUfileHandle_t registered(const char *name)
{
    CUfileHandle_t handle = NULL;
    CUfileDescr_t descriptor = {.type = 1, .handle.fd = fd_(name)};
    WANT(cuFileHandleRegister(&handle, &descriptor).err, 0);
    return handle;
}

/* What make_file() puts there. */
static void same(const char *memory, long offset, long size)
{
    for (long i = 0; i < size; i++)
        if (memory[i] != (char)((offset + i) * 7 + (offset + i) / 4096))
            give_up("byte %ld is not that of the file", offset + i);
}

static void say_direct(const char *kind, const char *name, long offset, long size, long result)
{
    say("%s %s offset=%ld size=%ld flags=0 result=%ld", kind, on(name), offset, size, result);
}

static void sync_calls(char *memory)
{
    do_open("a", "data", O_RDONLY | O_DIRECT, 0, ANY_FD);
    do_open("b", "out", O_CREAT | O_RDWR | O_DIRECT, 0644, ANY_FD);
    const CUfileHandle_t a = registered("a"), b = registered("b");
    for (long i = 0; i < 8; i++) {
        WANT(cuFileRead(a, memory, PIECE, i * PIECE, 4096), PIECE);
        same(memory + 4096, i * PIECE, PIECE);
        say_direct("pread", "a", i * PIECE, PIECE, PIECE);
        WANT(cuFileWrite(b, memory, PIECE, i * PIECE, 4096), PIECE);
        say_direct("pwrite", "b", i * PIECE, PIECE, PIECE);
    }
    /* Beyond the end. */
    WANT(cuFileRead(a, memory, PIECE, 2 * MIB - 4096, 0), 4096);
    say_direct("pread", "a", 2 * MIB - 4096, PIECE, 4096);
    cuFileHandleDeregister(a);
    cuFileHandleDeregister(b);
    do_close("b");
    do_close("a");
}

static void batches(char *memory)
{
    do_open("a", "data", O_RDONLY | O_DIRECT, 0, ANY_FD);
    const CUfileHandle_t a = registered("a");
    CUfileBatchHandle_t batch = NULL;
    WANT(cuFileBatchIOSetUp(&batch, DEPTH).err, 0);
    static const char *const names[2][DEPTH] = {
        {"p0", "p1", "p2", "p3", "p4", "p5", "p6", "p7", "p8", "p9", "p10", "p11", "p12", "p13", "p14", "p15"},
        {"q0", "q1", "q2", "q3", "q4", "q5", "q6", "q7", "q8", "q9", "q10", "q11", "q12", "q13", "q14", "q15"}};
    for (int round = 0; round < 2; round++) {
        CUfileIOParams_t asked[DEPTH];
        memset(asked, 0, sizeof asked);
        for (long i = 0; i < DEPTH; i++) {
            asked[i].mode = 1;
            asked[i].u.batch.devPtr_base = memory;
            asked[i].u.batch.devPtr_offset = i * PIECE;
            asked[i].u.batch.file_offset = (round * DEPTH + i) * PIECE;
            asked[i].u.batch.size = PIECE;
            asked[i].fh = a;
            asked[i].cookie = (void *)i;
            say("aio_submit %s offset=%ld size=%ld flags=0 arg=0 list= request=%s result=0", on("a"),
                (round * DEPTH + i) * PIECE, PIECE, names[round][i]);
        }
        WANT(cuFileBatchIOSubmit(batch, DEPTH, asked, 0).err, 0);
        for (unsigned left = DEPTH; left > 0;) {
            CUfileIOEvents_t events[DEPTH];
            unsigned count = DEPTH;
            const unsigned least = left < 4 ? left : 4;
            WANT(cuFileBatchIOGetStatus(batch, least, &count, events, NULL).err, 0);
            say("aio_reap size=%u arg=%u result=%u", count, least, count);
            for (unsigned i = 0; i < count; i++) {
                WANT(events[i].status, 0x10);
                say("aio_complete request=%s size=%ld result=%ld", names[round][(long)events[i].cookie], PIECE,
                    WANT(events[i].ret, PIECE));
            }
            left -= count;
        }
        same(memory, round * MIB, MIB);
    }
    cuFileBatchIODestroy(batch);
    cuFileHandleDeregister(a);
    do_close("a");
}

static void streams(char *memory)
{
    do_open("a", "data", O_RDONLY | O_DIRECT, 0, ANY_FD);
    do_open("b", "out", O_CREAT | O_WRONLY | O_DIRECT, 0644, ANY_FD);
    const CUfileHandle_t a = registered("a"), b = registered("b");
    const CUstream stream = (CUstream)0x5700, other = (CUstream)0x5800;
    static const char *const names[8] = {"r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7"};
    static size_t sizes[8];
    static off_t offsets[8], places[8];
    static ssize_t done[8], written;
    for (long i = 0; i < 8; i++) {
        sizes[i] = PIECE;
        offsets[i] = i * PIECE;
        places[i] = i * PIECE;
        done[i] = 0;
        WANT(cuFileReadAsync(a, memory, &sizes[i], &offsets[i], &places[i], &done[i], i < 6 ? stream : other).err, 0);
        say("aio_submit %s offset=%ld size=%ld flags=0 arg=0 list= request=%s result=0", on("a"), i * PIECE, PIECE,
            names[i]);
    }
    WANT(cuStreamSynchronize(stream), 0);
    say("aio_reap size=6 arg=6 result=6");
    for (int i = 0; i < 6; i++)
        say("aio_complete request=* size=%ld result=%ld", PIECE, WANT(done[i], PIECE));
    WANT(cuStreamSynchronize(other), 0);
    say("aio_reap size=2 arg=2 result=2");
    for (int i = 6; i < 8; i++)
        say("aio_complete request=* size=%ld result=%ld", PIECE, WANT(done[i], PIECE));
    same(memory, 0, 8 * PIECE);
    WANT(cuFileWriteAsync(b, memory, &sizes[0], &offsets[0], &places[0], &written, stream).err, 0);
    say("aio_submit %s offset=0 size=%ld flags=0 arg=1 list= request=w result=0", on("b"), PIECE);
    WANT(cuStreamSynchronize(stream), 0);
    say("aio_reap size=1 arg=1 result=1");
    say("aio_complete request=w size=%ld result=%ld", PIECE, WANT(written, PIECE));
    cuFileHandleDeregister(a);
    cuFileHandleDeregister(b);
    do_close("b");
    do_close("a");
}

/* No O_DIRECT, and no whole blocks. */
static void odd(char *memory)
{
    do_open("a", "data", O_RDONLY, 0, ANY_FD);
    const CUfileHandle_t a = registered("a");
    say("open file=data handle=direct flags=%d mode=0 result=*", O_RDONLY | O_DIRECT);
    WANT(cuFileRead(a, memory, PIECE, PIECE, 0), PIECE);
    say("pread handle=direct fd=* offset=%ld size=%ld flags=0 result=%ld", PIECE, PIECE, PIECE);
    WANT(cuFileRead(a, memory, 1000, 5000, 0), 1000);
    same(memory, 5000, 1000);
    say("pread handle=direct fd=* offset=4096 size=4096 flags=0 result=4096");
    WANT(cuFileRead(a, memory, 10000, 2 * MIB - 5000, 0), 5000);
    say("pread handle=direct fd=* offset=%ld size=16384 flags=0 result=8192", 2 * MIB - 8192);
    do_pread("a", 100, 0, 100);
    cuFileHandleDeregister(a);
    say("close handle=direct fd=* result=0");
    do_close("a");
    do_open("b", "out", O_CREAT | O_RDWR | O_DIRECT, 0644, ANY_FD);
    const CUfileHandle_t b = registered("b");
    WANT(cuFileWrite(b, memory, PIECE, 0, 0), PIECE);
    say_direct("pwrite", "b", 0, PIECE, PIECE);
    say("open file=out handle=cached flags=%d mode=0 result=*", O_RDWR);
    WANT(cuFileWrite(b, memory, 1000, PIECE, 0), 1000);
    say("pwrite handle=cached fd=* offset=%ld size=1000 flags=0 result=1000", PIECE);
    cuFileHandleDeregister(b);
    say("close handle=cached fd=* result=0");
    do_close("b");
}

static void failing(char *memory)
{
    do_open("a", "data", O_RDONLY | O_DIRECT, 0, ANY_FD);
    const CUfileHandle_t a = registered("a");
    WANT(cuFileRead(a, memory, 16 * MIB, 0, 0), -1);
    WANT(cuFileBatchIOSubmit(NULL, 0, NULL, 1).err, 5001);
    do_close("a");
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    char *const memory = standin_memory();
    const char *const what = argc > 3 ? argv[3] : "";
    if (strcmp(what, "sync") == 0)
        sync_calls(memory);
    else if (strcmp(what, "batch") == 0)
        batches(memory);
    else if (strcmp(what, "stream") == 0)
        streams(memory);
    else if (strcmp(what, "odd") == 0)
        odd(memory);
    else if (strcmp(what, "failing") == 0)
        failing(memory);
    else
        give_up("what?");
    return 0;
}
