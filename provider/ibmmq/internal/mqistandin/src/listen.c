/* Where a queue manager in a process of its own can be reached. */
#define _GNU_SOURCE
#include "client.h"
#include <mqstandin.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static int listenUnix(const char *path) {
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof a.sun_path) return -1;
  strcpy(a.sun_path, path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof a)) return -1;
  return fd;
}

static int listenTcp(const char *hostPort) {
  char host[300];
  struct addrinfo hint = {.ai_socktype = SOCK_STREAM}, *a;
  int one = 1;
  snprintf(host, sizeof host, "%s", hostPort);
  char *port = strrchr(host, ':');
  if (!port) return -1;
  *port++ = 0;
  if (getaddrinfo(host, port, &hint, &a)) return -1;
  int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  int bad = fd < 0 || bind(fd, a->ai_addr, a->ai_addrlen);
  freeaddrinfo(a);
  return bad ? -1 : fd;
}

API int mqstandin_listen(const char *address) {
  int fd = -1;
  if (!strncmp(address, "unix:", 5)) fd = listenUnix(address + 5);
  else if (!strncmp(address, "tcp:", 4)) fd = listenTcp(address + 4);
  return fd < 0 || listen(fd, 1024) ? -1 : fd;
}

API int mqstandin_port(int fd) {
  struct sockaddr_storage a;
  socklen_t n = sizeof a;
  if (getsockname(fd, (struct sockaddr *)&a, &n)) return -1;
  if (a.ss_family == AF_INET) return ntohs(((struct sockaddr_in *)&a)->sin_port);
  return a.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&a)->sin6_port) : 0;
}
