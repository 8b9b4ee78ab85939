/* Sessions: how they begin, are cut off, and end. */
#define _GNU_SOURCE
#include "qmgr.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>

pthread_mutex_t mqsLock = PTHREAD_MUTEX_INITIALIZER;

void mqsCondInit(pthread_cond_t *cond) {
  pthread_condattr_t a;
  pthread_condattr_init(&a);
  pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
  pthread_cond_init(cond, &a);
  pthread_condattr_destroy(&a);
}

void mqsCondWaitUntil(pthread_cond_t *cond, int64_t at) {
  if (at < 0) {
    pthread_cond_wait(cond, &mqsLock);
    return;
  }
  struct timespec t = {.tv_sec = at / 1000, .tv_nsec = (at % 1000) * 1000000};
  pthread_cond_timedwait(cond, &mqsLock, &t);
}

/* A detached thread that takes none of the host program's signals. */
void mqsThread(void *(*run)(void *), void *arg) {
  pthread_t t;
  pthread_attr_t a;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_init(&a);
  pthread_attr_setdetachstate(&a, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&a, 512 * 1024);
  if (pthread_create(&t, &a, run, arg)) abort();
  pthread_attr_destroy(&a);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

MqsSession *mqsNewSession(int fd) {
  static uint64_t next;
  MqsSession *s = mqsAlloc(sizeof *s);
  s->id = ++next;
  s->fd = fd;
  s->holders = 1;
  s->next = mqsQmgr.sessions;
  if (s->next) s->next->prev = s;
  mqsQmgr.sessions = s;
  mqsQmgr.live++;
  return s;
}

static void freeIfDone(MqsSession *s) {
  if (s->ended && s->holders == 0) free(s);
}

void mqsRelease(MqsSession *s) {
  s->holders--;
  freeIfDone(s);
}

void mqsDropObject(MqsObject *o) {
  if (o->open && !o->isQmgr) {
    if (o->holdsInput) o->queue->openInput--;
    if (o->holdsExclusive) o->queue->exclusive = false;
    if (o->options & MQOO_OUTPUT) o->queue->openOutput--;
  }
  o->open = false;
}

static void wakeWaits(MqsSession *s) {
  for (MqsQueue *q = mqsQmgr.queues; q; q = q->next)
    for (MqsWaiter *w = q->waitHead; w; w = w->next)
      if (w->session == s) pthread_cond_signal(&w->cond);
}

/* The queue manager knows that the session is over. */
void mqsEnd(MqsSession *s, MQLONG reason) {
  if (s->ended) return;
  s->ended = true;
  s->endReason = reason;
  mqsDropOrphanGets(s);
  mqsBackOut(s);
  for (size_t i = 0; i < s->objects; i++) mqsDropObject(&s->object[i]);
  free(s->object);
  s->object = NULL;
  s->objects = s->objectRoom = 0;
  *(s->prev ? &s->prev->next : &mqsQmgr.sessions) = s->next;
  if (s->next) s->next->prev = s->prev;
  mqsQmgr.live--;
  wakeWaits(s);
  mqsWakeHeld();
  freeIfDone(s);
}

/* ---- a client out of reach, and the queue manager that notices ---- */

static pthread_cond_t noticeChanged;

static void *notice(void *unused) {
  (void)unused;
  pthread_mutex_lock(&mqsLock);
  for (;;) {
    int64_t now = mqsNowMs(), at = -1;
    for (MqsSession *s = mqsQmgr.sessions, *next; s; s = next) {
      next = s->next;
      if (!s->cut || s->noticeAt < 0) continue;
      if (s->noticeAt <= now) mqsEnd(s, MQRC_CONNECTION_BROKEN);
      else if (at < 0 || s->noticeAt < at) at = s->noticeAt;
    }
    mqsCondWaitUntil(&noticeChanged, at);
  }
  return NULL;
}

/* From now on the client's calls fail. The queue manager notices after the set
 * time; until then it keeps the messages, the handles and a waiting get. */
void mqsCut(MqsSession *s) {
  static bool noticing;
  if (s->cut) return;
  s->cut = true;
  if (s->fd >= 0) shutdown(s->fd, SHUT_RDWR);
  if (mqsQmgr.detectMs == 0) {
    mqsEnd(s, MQRC_CONNECTION_BROKEN);
    return;
  }
  s->noticeAt = mqsQmgr.detectMs < 0 ? -1 : mqsNowMs() + mqsQmgr.detectMs + 1; /* never early */
  if (!noticing) {
    noticing = true;
    mqsCondInit(&noticeChanged);
    mqsThread(notice, NULL);
  }
  pthread_cond_signal(&noticeChanged);
  wakeWaits(s);
  mqsWakeHeld();
}
