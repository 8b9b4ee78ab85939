/* The queue manager as a process of its own: a thread for each client socket, and
 * one that sees sockets close while their thread is busy or waits. */
#define _GNU_SOURCE
#include "client.h"
#include "qmgr.h"
#include <errno.h>
#include <mqstandin.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#define MOST (2 * MQS_MAX_MSG_LENGTH) /* bytes a request may carry */

static int hangups = -1; /* epoll */

/* ---- clients that go ---- */

/* Sessions whose socket a thread here serves; an ended one stays until its thread
 * is through, so that a held call hears of its client's death. */
static MqsSession *served;

static MqsSession *servedById(uint64_t id) {
  MqsSession *s = served;
  while (s && s->id != id) s = s->nextServed;
  return s;
}

/* The socket is closed: the queue manager notices at once. */
static void gone(MqsSession *s) {
  s->gone = true;
  if (!s->cut) {
    s->cut = true;
    mqsEnd(s, MQRC_CONNECTION_BROKEN);
  }
  mqsWakeHeld();
}

static void *watch(void *unused) {
  (void)unused;
  for (;;) {
    struct epoll_event e;
    if (epoll_wait(hangups, &e, 1, -1) != 1) continue;
    pthread_mutex_lock(&mqsLock);
    MqsSession *s = servedById(e.data.u64); /* by number, as it may be through meanwhile */
    if (s && !s->cut) gone(s); /* where we cut it off ourselves, this is no sign of the client's */
    pthread_mutex_unlock(&mqsLock);
  }
  return NULL;
}

typedef struct ServedLink {
  struct ServedLink *next;
  int64_t id;
} ServedLink;

static ServedLink *links;

static bool linkKnown(int64_t id) {
  bool known = false;
  pthread_mutex_lock(&mqsLock);
  for (ServedLink *l = links; l; l = l->next) known |= l->id == id;
  pthread_mutex_unlock(&mqsLock);
  return known;
}

/* Ends every session of a process that is dead, frozen or out of reach. */
static void linkOver(int64_t id) {
  pthread_mutex_lock(&mqsLock);
  for (ServedLink **at = &links; *at; at = &(*at)->next)
    if ((*at)->id == id) {
      ServedLink *l = *at;
      *at = l->next;
      free(l);
      break;
    }
  for (MqsSession *s = mqsQmgr.sessions, *next; s; s = next) {
    next = s->next;
    if (s->link != id || s->cut) continue;
    if (s->fd >= 0) shutdown(s->fd, SHUT_RDWR);
    gone(s);
  }
  pthread_mutex_unlock(&mqsLock);
}

static MQLONG heartbeat(void) {
  pthread_mutex_lock(&mqsLock);
  MQLONG ms = mqsQmgr.heartbeatMs > 0 ? mqsQmgr.heartbeatMs : 1;
  pthread_mutex_unlock(&mqsLock);
  return ms;
}

static int64_t addLink(void) {
  static int64_t next;
  ServedLink *l = mqsAlloc(sizeof *l);
  pthread_mutex_lock(&mqsLock);
  int64_t id = l->id = ++next;
  l->next = links;
  links = l;
  pthread_mutex_unlock(&mqsLock);
  return id;
}

/* Asks four times in each heartbeat time, and in each second; a question without an answer for the
 * whole of it is the end. The time may change while a link lives, so it is looked
 * at anew each moment, and silence counts from a question only. */
static void serveLink(int fd) {
  int64_t id = addLink(), asked = 0, open = 0, since = 0;
  MqsReply r = {.value = id, .rc = heartbeat()};
  bool alive = mqsSend(fd, &r, sizeof r, NULL, 0, NULL, 0);
  while (alive) {
    MQLONG ms = heartbeat(), echo;
    int64_t now = mqsNowMs();
    if (open && now - since >= ms) break;
    if (now - asked >= (ms < 1000 ? ms / 4 : 250)) {
      if (!open++) since = now;
      asked = now;
      alive = mqsSend(fd, &ms, sizeof ms, NULL, 0, NULL, 0);
    }
    struct pollfd p = {.fd = fd, .events = POLLIN};
    if (alive && poll(&p, 1, ms < 80 ? 1 + ms / 8 : 10) > 0) {
      alive = mqsReceive(fd, &echo, sizeof echo);
      since = mqsNowMs();
      open--;
    }
  }
  linkOver(id);
}

/* ---- calls ---- */

typedef struct {
  MqsRequest q;
  char *in, *out;
  size_t inRoom, outRoom;
} Frame;

static bool receiveFrame(int fd, Frame *f) {
  MqsRequest *q = &f->q;
  if (!mqsReceive(fd, q, sizeof *q)) return false;
  if (q->length < 0 || q->propsLength < 0 || q->room < 0 || q->length > MOST || q->propsLength > MOST || q->room > MOST)
    return false;
  size_t in = (size_t)q->length + (size_t)q->propsLength;
  if (in + 1 > f->inRoom) f->in = mqsGrow(f->in, f->inRoom = in + 1);
  if ((size_t)q->room > f->outRoom) f->out = mqsGrow(f->out, f->outRoom = (size_t)q->room);
  f->in[in] = 0;
  q->data = f->in;
  q->props = f->in + q->length;
  return mqsReceive(fd, f->in, in);
}

static bool sendReply(int fd, const MqsReply *r) {
  return mqsSend(fd, r, sizeof *r, r->buffer, r->length, r->props, r->propsLength);
}

static MqsSession *connectFrame(int fd, const Frame *f) {
  MqsReply r = {0};
  const MqsConnect *c = f->q.data;
  if (f->q.length != sizeof *c || !linkKnown(c->link)) return NULL;
  MqsSession *s = mqsServeConnect(&f->q, &r, fd);
  if (s) {
    pthread_mutex_lock(&mqsLock);
    s->nextServed = served;
    served = s;
    pthread_mutex_unlock(&mqsLock);
    struct epoll_event e = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.u64 = s->id};
    epoll_ctl(hangups, EPOLL_CTL_ADD, fd, &e);
  }
  sendReply(fd, &r); /* a client that does not get it is seen to hang up */
  return s;
}

static void serveSession(int fd, MqsSession *s, Frame *f) {
  bool more = true;
  while (more && receiveFrame(fd, f)) {
    MqsReply r = {.buffer = f->out};
    mqsServe(s, &f->q, &r);
    bool over = f->q.verb == MQS_DISC && r.cc != MQCC_FAILED;
    more = sendReply(fd, &r) && !over; /* over a cut link nothing goes out: its socket is shut down */
    free(r.props);
  }
  pthread_mutex_lock(&mqsLock);
  gone(s);
  s->fd = -1;
  MqsSession **at = &served;
  while (*at != s) at = &(*at)->nextServed;
  *at = s->nextServed;
  mqsRelease(s);
  pthread_mutex_unlock(&mqsLock);
}

static void serveControl(int fd, const Frame *f) {
  MqsReply r = {.value = mqsServeControl(f->q.object, f->q.data, f->q.arg[0], f->q.arg[1])};
  sendReply(fd, &r);
}

static void *client(void *arg) {
  int fd = *(int *)arg;
  free(arg);
  Frame f = {0};
  if (receiveFrame(fd, &f)) {
    MqsSession *s;
    if (f.q.verb == MQS_CONTROL) serveControl(fd, &f);
    else if (f.q.verb == MQS_LINK) serveLink(fd);
    else if (f.q.verb == MQS_CONNX && (s = connectFrame(fd, &f))) serveSession(fd, s, &f);
  }
  free(f.in);
  free(f.out);
  close(fd);
  return NULL;
}

/* ---- accepting ---- */

API void mqstandin_serve(int fd) {
  pthread_mutex_lock(&mqsLock);
  mqsStart();
  pthread_mutex_unlock(&mqsLock);
  hangups = epoll_create1(EPOLL_CLOEXEC);
  mqsThread(watch, NULL);
  for (;;) {
    int one = 1, c = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    if (c < 0) {
      if (errno == EINTR || errno == ECONNABORTED) continue;
      return;
    }
    setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* fails on a unix socket, which has no delay */
    mqsThread(client, mqsCopy(&c, sizeof c));
  }
}
