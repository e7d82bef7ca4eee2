/* A job that does as CUDA's driver does: loads what CUDA_INJECTION64_PATH names when it starts. Reads a file, and works.
 * SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static char data[8192];
    int (*begin)(void) = NULL;
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_NOW) : NULL;
    void *symbol = library ? dlsym(library, "InitializeInjection") : NULL;
    const struct timespec work = {0, 60000000};
    int fd;

    if (argc < 2 || symbol == NULL)
        return 3;
    memcpy(&begin, &symbol, sizeof begin);
    begin();
    fd = open(argv[1], O_RDONLY);
    if (fd < 0 || read(fd, data, sizeof data) != (ssize_t)sizeof data)
        return 4;
    close(fd);
    nanosleep(&work, NULL);
    return 0;
}
