/* SPDX-License-Identifier: MIT */
/* Current directory, umask and descriptors that a thread takes for itself, and that processes share. */
#include "expect.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

static pthread_barrier_t turn;

static void setup(void)
{
    if (mkdir(full("one"), 0755) != 0)
        give_up("setup");
    make_file("data", 100);
    make_file("one/data", 200);
}

/* `given` is what the call names, `path` what it means. */
static void rel(const char *name, const char *given, const char *path)
{
    say_open(name, path, O_RDONLY, 0, WANT(CALL4(SYS_openat, AT_FDCWD, given, O_RDONLY, 0), ANY_FD));
}
static void rel_stat(const char *given, const char *path)
{
    struct stat st;
    say("stat file=%s flags=0 result=%ld", path, WANT(CALL2(SYS_stat, given, &st), 0));
}
static void rel_mkdir(const char *given, const char *path, int mode)
{
    say("mkdir file=%s mode=%d result=%ld", path, mode, WANT(CALL2(SYS_mkdir, given, 0755), 0));
}

static void *of_its_own(void *none)
{
    WANT(CALL1(SYS_unshare, CLONE_FS), 0);
    WANT(CALL1(SYS_chdir, "one"), 0);
    WANT(CALL1(SYS_umask, 077), 0);
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn); /* the other looked */
    rel_stat("data", "one/data");
    rel("t", "data", "one/data");
    do_read("t", 1000, 0, 200);
    do_close("t");
    rel_mkdir("made", "one/made", 0700);
    const int child = do_fork(); /* has the thread's */
    if (child == 0) {
        rel_stat("data", "one/data");
        _exit(0);
    }
    do_wait(child);
    /* One number, two open instances. */
    WANT(CALL1(SYS_unshare, CLONE_FILES), 0);
    do_open("mine", "one/data", O_RDONLY, 0, ANY_FD);
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
    do_read("mine", 50, 0, 50);
    pthread_barrier_wait(&turn);
    do_close("mine");
    return none;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    begin(argc, argv, NULL);
    WANT(CALL1(SYS_chdir, full("")), 0);
    pthread_barrier_init(&turn, NULL, 2);
    if (pthread_create(&thread, NULL, of_its_own, NULL) != 0)
        give_up("no thread");
    pthread_barrier_wait(&turn);
    rel_stat("data", "data");
    rel("m", "data", "data");
    do_read("m", 1000, 0, 100);
    do_close("m");
    rel_mkdir("made", "made", 0755);
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
    rel("theirs", "data", "data");
    do_read("theirs", 30, 0, 30);
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn);
    do_read("theirs", 30, 30, 30);
    do_close("theirs");
    pthread_join(thread, NULL);
    rel_stat("data", "data");
    /* A child that shares the directory moves its parent, too. */
    const int child = (int)WANT(CALL5(SYS_clone, CLONE_FS | SIGCHLD, 0, 0, 0, 0), ANY_FD);
    if (child == 0) {
        WANT(CALL1(SYS_chdir, "one"), 0);
        rel_stat("data", "one/data");
        _exit(0);
    }
    do_wait(child);
    rel_stat("data", "one/data");
    rel("n", "data", "one/data");
    do_close("n");
    return 0;
}
