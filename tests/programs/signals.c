/* SPDX-License-Identifier: MIT */
/* A signal ends a blocked read: with EINTR, and with SA_RESTART, where the kernel makes the call again. */
#include "expect.h"

#include <signal.h>
#include <time.h>

static void setup(void) { make_file("data", 1000); }

static void handler(int number) { (void)number; }

/* A child that signals us when we have slept in the kernel for a while, then feeds the pipe. */
static int disturb(int fd, int times)
{
    const int parent = getpid();
    const int child = do_fork();
    if (child == 0) {
        const struct timespec pause = {0, 50 * 1000 * 1000};
        for (int i = 0; i < times; i++) {
            nanosleep(&pause, NULL);
            kill(parent, SIGUSR1);
        }
        nanosleep(&pause, NULL);
        if (write(fd, "0123456789", 10) != 10)
            _exit(1);
        _exit(0);
    }
    return child;
}

int main(int argc, char **argv)
{
    begin(argc, argv, "receive");
    int fds[2];
    WANT(CALL2(SYS_pipe2, fds, 0), 0);
    bind_fd("r", "r", fds[0]);
    struct sigaction action = {.sa_handler = handler};
    do_open("a", "data", O_RDONLY, 0, ANY_FD);
    do_read("a", 100, 0, 100);

    sigaction(SIGUSR1, &action, NULL);
    int child = disturb(fds[1], 1);
    /* The kernel tells a recorder only that the call may be made again: a wait. EINTR is decided afterwards. */
    WANT(CALL3(SYS_read, fds[0], g_buffer, 100), -EINTR);
    say("receive %s offset=0 size=100 result=%ld", on("r"), WANT(CALL3(SYS_read, fds[0], g_buffer, 100), 10));
    do_wait(child);

    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, NULL);
    child = disturb(fds[1], 2);
    say("receive %s offset=10 size=100 result=%ld", on("r"), WANT(CALL3(SYS_read, fds[0], g_buffer, 100), 10));
    do_wait(child);
    do_read("a", 100, 100, 100);
    do_close("a");
    return 0;
}
