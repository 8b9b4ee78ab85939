/* One socket of this process beside its connections, over which both ends show
 * that they live: a frozen process does not answer, and a frozen queue manager
 * does not ask. */
#define _GNU_SOURCE
#include "client.h"
#include "qmgr.h"
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t current; /* 0: none */
static char *of;        /* the address it goes to */

static void over(int64_t link, int fd) {
  pthread_mutex_lock(&lock);
  if (current == link) current = 0;
  pthread_mutex_unlock(&lock);
  close(fd);
  mqsSeverLink(link);
}

typedef struct {
  int fd;
  int64_t id;
  MQLONG heartbeatMs;
} Link;

/* Answers each ping; the ping says how often the next will come. */
static void *answer(void *arg) {
  Link l = *(Link *)arg;
  free(arg);
  for (;;) {
    struct pollfd p = {.fd = l.fd, .events = POLLIN};
    MQLONG ms;
    if (poll(&p, 1, 2 * l.heartbeatMs + 1000) <= 0 || !mqsReceive(l.fd, &ms, sizeof ms)) break;
    l.heartbeatMs = ms;
    if (!mqsSend(l.fd, &ms, sizeof ms, NULL, 0, NULL, 0)) break;
  }
  over(l.id, l.fd);
  return NULL;
}

int64_t mqsLink(const char *address, const char *connectionName) {
  pthread_mutex_lock(&lock);
  if (current && strcmp(of, address)) current = 0; /* the other one lives on for its connections */
  if (!current) {
    MqsRequest q = {.verb = MQS_LINK};
    MqsReply r = {0};
    int fd = mqsDial(address, connectionName);
    if (fd >= 0 && mqsExchange(fd, &q, &r)) {
      current = r.value;
      free(of);
      of = mqsCopy(address, strlen(address));
      Link l = {.fd = fd, .id = r.value, .heartbeatMs = r.rc /* sent in its place */};
      mqsThread(answer, mqsCopy(&l, sizeof l));
    } else if (fd >= 0) {
      close(fd);
    }
  }
  int64_t link = current;
  pthread_mutex_unlock(&lock);
  return link;
}
