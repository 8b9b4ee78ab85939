/* Sockets, for both ends: addresses, whole reads and writes, one exchange. */
#define _GNU_SOURCE
#include "client.h"
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

bool mqsReceive(int fd, void *to, size_t n) {
  for (char *at = to; n;) {
    ssize_t got = recv(fd, at, n, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    n -= (size_t)got;
  }
  return true;
}

bool mqsSend(int fd, const void *head, size_t n, const void *data, MQLONG length, const void *props, MQLONG propsLength) {
  struct iovec part[3] = {{(void *)head, n}, {(void *)data, (size_t)length}, {(void *)props, (size_t)propsLength}};
  struct msghdr m = {.msg_iov = part, .msg_iovlen = 3};
  while (m.msg_iovlen) {
    ssize_t sent = sendmsg(fd, &m, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) return false;
    while (m.msg_iovlen && (size_t)sent >= m.msg_iov->iov_len) {
      sent -= (ssize_t)m.msg_iov->iov_len;
      m.msg_iov++;
      m.msg_iovlen--;
    }
    if (!m.msg_iovlen) break;
    m.msg_iov->iov_base = (char *)m.msg_iov->iov_base + sent;
    m.msg_iov->iov_len -= (size_t)sent;
  }
  return true;
}

/* False: no whole answer came, the connection is of no more use. */
bool mqsExchange(int fd, const MqsRequest *q, MqsReply *r) {
  void *buffer = r->buffer;
  if (!mqsSend(fd, q, sizeof *q, q->data, q->length, q->props, q->propsLength)) return false;
  bool whole = mqsReceive(fd, r, sizeof *r);
  r->buffer = buffer;
  r->props = NULL;
  if (!whole || r->length < 0 || r->length > q->room || r->propsLength < 0) return false;
  if (r->propsLength) r->props = mqsAlloc((size_t)r->propsLength);
  if (mqsReceive(fd, buffer, (size_t)r->length) && mqsReceive(fd, r->props, (size_t)r->propsLength)) return true;
  free(r->props);
  r->props = NULL;
  return false;
}

/* ---- addresses ---- */

static int dialUnix(const char *path) {
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof a.sun_path) return -1;
  snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a)) {
    close(fd);
    return -1;
  }
  return fd;
}

static int dialTcp(const char *host, const char *port) {
  struct addrinfo hint = {.ai_socktype = SOCK_STREAM}, *all;
  int fd = -1, one = 1;
  if (getaddrinfo(host, port, &hint, &all)) return -1;
  for (struct addrinfo *a = all; a && fd < 0; a = a->ai_next) {
    fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, a->ai_addr, a->ai_addrlen)) {
      close(fd);
      fd = -1;
    }
  }
  freeaddrinfo(all);
  if (fd >= 0) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
  return fd;
}

/* "host(port),host(port)", tried in that order; the port's default is 1414. */
static int dialChannel(const char *connectionName) {
  char list[265], *rest;
  int fd = -1;
  mqsField(list, sizeof list, connectionName, 264);
  for (char *one = strtok_r(list, ",", &rest); one && fd < 0; one = strtok_r(NULL, ",", &rest)) {
    char *port = strchr(one, '(');
    if (port) {
      *port++ = 0;
      port[strcspn(port, ")")] = 0;
    }
    fd = dialTcp(one, port ? port : "1414");
  }
  return fd;
}

int mqsDial(const char *address, const char *connectionName) {
  if (!strncmp(address, "unix:", 5)) return dialUnix(address + 5);
  if (strncmp(address, "tcp:", 4)) return -1;
  if (!address[4]) return dialChannel(connectionName);
  char host[300];
  snprintf(host, sizeof host, "%s", address + 4);
  char *port = strrchr(host, ':');
  if (!port) return -1;
  *port++ = 0;
  return dialTcp(host, port);
}
