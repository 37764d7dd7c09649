/* Copies a file from one process to another.
 *
 *     copy FILE            prints a ticket, and gives the file to the first who calls with it
 *     copy TICKET FILE     takes it
 */
#include <errno.h>
#include <fairwave.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void fail(const char *what)
{
    fprintf(stderr, "copy: %s: %s\n", what, g_strerror(errno));
    exit(1);
}

static void give(const char *path)
{
    char ticket[1024];
    socklen_t length = sizeof ticket;
    int file = open(path, O_RDONLY);
    int listening = g_socket(AF_INET6, SOCK_STREAM, 0);
    struct stat about;
    off_t offset = 0;
    int fd;

    if (file < 0 || fstat(file, &about) < 0)
        fail(path);
    if (listening < 0 || g_listen(listening, 1) < 0)
        fail("listen");
    if (g_getsockopt(listening, SOL_FAIRWAVE, FAIRWAVE_TICKET, ticket, &length) < 0)
        fail("ticket");
    puts(ticket);
    fflush(stdout);
    fd = g_accept(listening, NULL, NULL);
    if (fd < 0)
        fail("accept");
    while (offset < about.st_size)
        if (g_sendfile(fd, file, &offset, (size_t)(about.st_size - offset)) < 0)
            fail("sendfile");
    /* The end of the stream, and then the other's: it has all. */
    if (g_shutdown(fd, SHUT_WR) < 0)
        fail("shutdown");
    if (g_recv(fd, ticket, 1, 0) != 0)
        fail("the other end");
    g_close(fd);
    g_close(listening);
    close(file);
}

static void take(const char *ticket, const char *path)
{
    static char bytes[1 << 16];
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666);
    int fd = g_socket(AF_INET6, SOCK_STREAM, 0);
    ssize_t got;

    if (file < 0)
        fail(path);
    if (fd < 0 || g_setsockopt(fd, SOL_FAIRWAVE, FAIRWAVE_TICKET, ticket, (socklen_t)strlen(ticket)) < 0)
        fail("ticket");
    if (g_connect(fd, NULL, 0) < 0)
        fail("connect");
    while ((got = g_recv(fd, bytes, sizeof bytes, 0)) > 0)
        for (ssize_t done = 0, wrote; done < got; done += wrote)
            if ((wrote = write(file, bytes + done, (size_t)(got - done))) < 0)
                fail(path);
    /* A stream that was cut is an error here, never an end. */
    if (got < 0)
        fail("recv");
    if (close(file) < 0)
        fail(path);
    g_close(fd);
}

int main(int argc, char **argv)
{
    if (argc == 2)
        give(argv[1]);
    else if (argc == 3)
        take(argv[1], argv[2]);
    else {
        fprintf(stderr, "usage: copy FILE | copy TICKET FILE\n");
        return 2;
    }
    return 0;
}
