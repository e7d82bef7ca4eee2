/* SPDX-License-Identifier: MIT */
/* io_uring: which results a job had taken when it made a request or waited, and which read a write needs. Every call
 * waits for all that is in flight, so that where results are posted is known; how many of them it takes, and when, is
 * what each part does in its own way. */
#include "ring.h"

#include <linux/time_types.h>

enum { MOST = 128, PIECE = 4096 };
static struct {
    int code;
    const char *name; /* of the descriptor */
    long offset, size, needs;
} g_asked[MOST];
static long g_requests, g_entered; /* made; submitted */
static unsigned g_posted;          /* results that were told */
static long g_news = -1;           /* the request whose result was taken last, until that is told */

static void setup(void)
{
    make_file("data", 1 * MIB);
    need_ring(0);
}

static char *piece(long i) { return g_buffer + i * PIECE; }
static const char *label(long request)
{
    static char room[4][16];
    static unsigned next;
    char *const out = room[next++ % 4];
    snprintf(out, sizeof room[0], request < 0 ? "-" : "q%ld", request);
    return out;
}

/* `needs`: the request that read what this one writes, -1: none. */
static long ask(int code, const char *name, char *at, long offset, long size, long needs)
{
    request(code, name == NULL ? -1 : fd_(name), at, size, offset, 0);
    g_asked[g_requests].code = code;
    g_asked[g_requests].name = name;
    g_asked[g_requests].offset = offset;
    g_asked[g_requests].size = size;
    g_asked[g_requests].needs = needs;
    return g_requests++;
}
static long ask_read(long to, long offset) { return ask(IORING_OP_READ, "a", piece(to), offset, PIECE, -1); }

/* Takes the oldest result; returns whose it is. */
static long take(void)
{
    g_news = (long)g_ring.done[*g_ring.done_head & g_ring.done_mask].user_data;
    take_completion();
    return g_news;
}
static long news(void)
{
    const long out = g_news;
    g_news = -1;
    return out;
}

static void say_posted(void)
{
    for (; g_posted != *g_ring.done_tail; g_posted++) {
        const struct io_uring_cqe *const done = &g_ring.done[g_posted & g_ring.done_mask];
        say("uring_complete request=%s size=%ld result=%d", label((long)done->user_data),
            g_asked[done->user_data].size, done->res);
    }
}

/* Submits what was asked, and waits until `missing` of all that was ever submitted are not done. */
static void go_but(long missing)
{
    const long submits = g_requests - g_entered;
    const long wait = missing == submits ? 0 : g_requests - (long)*g_ring.done_head - missing;
    say_posted();
    const unsigned before = g_posted;
    enter_for(submits, wait);
    for (; g_entered < g_requests; g_entered++) {
        const long i = g_entered;
        say("uring_submit handle=%s fd=%d file=- offset=%ld size=%ld flags=0 arg=%d list= request=%s reaped=%s needs=%s "
            "result=0",
            g_asked[i].name == NULL ? "-" : handle_(g_asked[i].name), g_asked[i].name == NULL ? -1 : fd_(g_asked[i].name),
            g_asked[i].offset, g_asked[i].size, g_asked[i].code, label(i), label(news()), label(g_asked[i].needs));
    }
    say("uring_enter %s size=%ld arg=%ld reaped=%s result=%ld", on("ring"), submits, wait, label(wait == 0 || *g_ring.done_tail == before ? -1 : news()), submits);
    say_posted();
}
static void go(void) { go_but(0); }

static void drain(void)
{
    while (*g_ring.done_head != *g_ring.done_tail)
        take();
}

/* Four in flight: each result makes room for one request. */
static void fixed_depth(void)
{
    for (long i = 0; i < 4; i++)
        ask_read(i, i * 10000);
    go();
    for (long i = 4; i < 12; i++) {
        take();
        ask_read(i % 4, i * 10000);
        go();
    }
    drain();
}

static void batches(void)
{
    for (long batch = 0; batch < 3; batch++) {
        for (long i = 0; i < 5; i++)
            ask_read(i, batch * 50000 + i * PIECE);
        go();
        drain();
    }
}

/* Each piece is read, and then written while the next one is read to other memory. */
static void two_stages(void)
{
    long done = ask_read(0, 0);
    go();
    for (long i = 1; i < 5; i++) {
        drain();
        const long next = ask_read(i % 2, i * PIECE);
        ask(IORING_OP_WRITE, "b", piece((i - 1) % 2), i * PIECE, PIECE, done);
        go();
        done = next;
    }
    drain();
    ask(IORING_OP_WRITE, "b", piece(0) + 100, 0, 1000, done); /* from amid it */
    ask(IORING_OP_WRITE, "b", piece(40), 0, 1000, -1);        /* what no request has read */
    ask(IORING_OP_WRITE, "b", piece(0), 0, 500, done); /* once more */
    go();
    drain();
}

/* Three streams; each goes on when its own request is done, whichever is done first. */
static void streams(void)
{
    long at[3], of[MOST];
    for (long i = 0; i < 3; i++) {
        at[i] = i * 300000;
        of[ask_read(i, at[i])] = i;
    }
    go();
    for (long n = 0; n < 9; n++) {
        const long stream = of[take()];
        at[stream] += PIECE;
        of[ask_read(stream, at[stream])] = stream;
        go();
    }
    drain();
}

/* A call that submits nothing and waits: only what is posted meanwhile shows what was taken before it. */
static void waits(void)
{
    ask_read(0, 0);
    go();
    static struct __kernel_timespec soon = {.tv_nsec = 500000000}; /* after the next call began, as a rule */
    ask(IORING_OP_TIMEOUT, NULL, (char *)&soon, 0, 1, -1);
    go_but(1);
    take();
    go();
    drain();
}

int main(int argc, char **argv)
{
    begin(argc, argv, NULL);
    make_ring(0);
    do_open("a", "data", O_RDONLY, 0, ANY_FD);
    do_open("b", "out", O_CREAT | O_RDWR, 0644, ANY_FD);
    fixed_depth();
    batches();
    two_stages();
    streams();
    waits();
    ask_read(0, 0); /* these nobody takes */
    ask_read(1, PIECE);
    go();
    do_close("b");
    do_close("a");
    return 0;
}
