/* libfairwave: sockets over Fairwave. The calls match their POSIX namesakes; differences: docs/reference/c.md. */
#ifndef FAIRWAVE_H
#define FAIRWAVE_H

#include <poll.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The level of the options below. */
#define SOL_FAIRWAVE 0x4657

/* char[]: what lets somebody in. Set before g_connect, read after g_listen; with a zero at its end. */
#define FAIRWAVE_TICKET 1
/* double, 1e-6 to 1e6: the share of a connection relative to others; before g_connect or g_listen. 1 if not set. */
#define FAIRWAVE_WEIGHT 2
/* uint64_t, bit/s: a rate that rules keep to which know of such; before g_connect or g_listen. 0 is none. */
#define FAIRWAVE_MINIMUM 3
/* uint64_t, bit/s of IP packets: this end sends no faster, at any time. 0 is no limit. */
#define FAIRWAVE_DESIRED 4
/* int, FAIRWAVE_PATH_...: what this end takes its path for; before g_bind. A path is dedicated if both ends say so. */
#define FAIRWAVE_PATH 5
#define FAIRWAVE_PATH_SHARED 0
#define FAIRWAVE_PATH_DEDICATED 1
/* int: whether data go without secrecy. Both ends must ask for it, before g_bind. */
#define FAIRWAVE_PLAIN 6
/* uint64_t, bytes, 64 KiB to 1 GiB: what is wanted ahead of what the program has taken; before g_connect or g_listen.
   It bounds the memory of a connection, and its rate on a long path: so much goes in a round trip. 4 MiB if not set. */
#define FAIRWAVE_AHEAD 7
/* uint64_t, bit/s: what this host can send and receive; before g_bind. 0 is what its network card tells. */
#define FAIRWAVE_CAPACITY 8
/* struct fairwave_stats, to be read. */
#define FAIRWAVE_STATS 9
/* char[], to be read: what has limited the connection since it was asked last, such as "path" or "peer node". */
#define FAIRWAVE_LIMITED_BY 10

/* What a connection has done. Later versions add to the end. */
struct fairwave_stats {
    uint64_t size;                 /* bytes of this structure that the library knows */
    uint64_t written_bytes;        /* that the program has written */
    uint64_t written_taken_bytes;  /* of those, that the other end is known to have taken */
    uint64_t came_bytes;           /* that came in order for the program */
    uint64_t came_taken_bytes;     /* of those, that the program took or that went into its descriptor */
    uint64_t sent_packets;         /* of data */
    uint64_t lost_packets;         /* of those that were sent */
    uint64_t sent_wire_bytes;      /* of IP packets */
    uint64_t received_packets;
    uint64_t received_wire_bytes;
    uint64_t rtt_us;               /* smoothed; 0 where it is not known */
    uint64_t expected_send_bps;    /* what is granted to this end; 0 where no capacity is known */
    uint64_t expected_receive_bps; /* what this end grants; 0 where no capacity is known */
};

int g_socket(int domain, int type, int protocol);
int g_bind(int fd, const struct sockaddr *address, socklen_t length);
int g_listen(int fd, int backlog);
int g_accept(int fd, struct sockaddr *address, socklen_t *length);
int g_connect(int fd, const struct sockaddr *address, socklen_t length);
ssize_t g_send(int fd, const void *bytes, size_t length, int flags);
ssize_t g_recv(int fd, void *room, size_t length, int flags);
ssize_t g_sendfile(int fd, int file, off_t *offset, size_t count);
int g_getsockopt(int fd, int level, int option, void *value, socklen_t *length);
int g_setsockopt(int fd, int level, int option, const void *value, socklen_t length);
int g_getsockname(int fd, struct sockaddr *address, socklen_t *length);
int g_getpeername(int fd, struct sockaddr *address, socklen_t *length);
int g_poll(struct pollfd *descriptors, nfds_t count, int timeout_ms);
int g_shutdown(int fd, int how);
int g_close(int fd);
const char *g_strerror(int error);
const char *g_version(void);

#ifdef __cplusplus
}
#endif

#endif
