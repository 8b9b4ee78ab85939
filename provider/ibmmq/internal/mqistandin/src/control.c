/* What a test can do to the queue manager and see in it, by name. */
#define _GNU_SOURCE
#include "qmgr.h"
#include <string.h>

typedef int64_t (*Control)(const char *text, int64_t a, int64_t b);

/* A session's end can free it: the next one is taken before. */
#define EACH_SESSION(s) \
  for (MqsSession *s = mqsQmgr.sessions, *next_ = s ? s->next : NULL; s; s = next_, next_ = s ? s->next : NULL)

static int64_t reset(const char *text, int64_t a, int64_t b) {
  (void)text, (void)a, (void)b;
  EACH_SESSION(s) if (s->cut) mqsEnd(s, MQRC_CONNECTION_BROKEN);
  for (MqsQueue *q = mqsQmgr.queues; q; q = q->next) {
    mqsPurge(q, false);
    q->getInhibited = q->putInhibited = false;
  }
  mqsDropFaults();
  mqsReleaseHolds();
  mqsQmgr.stop = 0;
  mqsQmgr.discBacksOut = false;
  mqsQmgr.downUntil = 0;
  mqsQmgr.maxConnections = -1;
  mqsQmgr.detectMs = mqsQmgr.latencyUs = 0;
  mqsQmgr.heartbeatMs = mqsDefaultHeartbeat();
  return 0;
}

static int64_t define(const char *text, int64_t a, int64_t b) {
  (void)a, (void)b;
  return mqsDefine(text);
}

/* ---- what can be seen; -1: no such queue or call ---- */

static int64_t available(const char *text, int64_t a, int64_t b) {
  (void)a, (void)b;
  MqsQueue *q = mqsFindQueue(text);
  return q ? q->availableTotal : -1;
}

static int64_t waiters(const char *text, int64_t a, int64_t b) {
  (void)a, (void)b;
  MqsQueue *q = mqsFindQueue(text);
  return q ? q->waiters : -1;
}

static int64_t uncommitted(const char *text, int64_t a, int64_t b) {
  (void)text, (void)a, (void)b;
  int64_t n = 0;
  EACH_SESSION(s) n += s->uowCount;
  return n;
}

static int64_t connections(const char *text, int64_t a, int64_t b) {
  (void)text, (void)a, (void)b;
  return mqsQmgr.live;
}

static int64_t unnoticed(const char *text, int64_t a, int64_t b) {
  (void)text, (void)a, (void)b;
  int64_t n = 0;
  EACH_SESSION(s) n += s->cut;
  return n;
}

static int64_t calls(const char *text, int64_t a, int64_t b) {
  (void)a, (void)b;
  int verb = mqsVerbOf(text);
  return verb < 0 ? -1 : mqsCounted(verb);
}

static int64_t held(const char *text, int64_t a, int64_t b) {
  (void)text, (void)a, (void)b;
  return mqsHeld();
}

/* ---- connections that break, units of work that are lost ---- */

static void sever(MqsSession *s, bool noticed) {
  if (noticed) {
    s->holders++; /* the first of the two may end it */
    mqsCut(s);
    mqsEnd(s, MQRC_CONNECTION_BROKEN);
    mqsRelease(s);
  } else {
    mqsCut(s);
  }
}

static int64_t breakAll(const char *appl, int64_t noticed, int64_t b) {
  (void)b;
  int64_t n = 0;
  EACH_SESSION(s) {
    if (s->cut || (*appl && strcmp(appl, s->appl))) continue;
    sever(s, noticed);
    n++;
  }
  return n;
}

static int64_t notice(const char *text, int64_t a, int64_t b) {
  (void)text, (void)a, (void)b;
  int64_t n = 0;
  EACH_SESSION(s) {
    if (!s->cut) continue;
    mqsEnd(s, MQRC_CONNECTION_BROKEN);
    n++;
  }
  return n;
}

static int64_t breakOldest(const char *text, int64_t count, int64_t noticed) {
  (void)text;
  int64_t n = 0;
  for (; n < count; n++) {
    MqsSession *oldest = NULL;
    EACH_SESSION(s)
      if (!s->cut && s->uowCount && (!oldest || s->uowSince < oldest->uowSince)) oldest = s;
    if (!oldest) break;
    sever(oldest, noticed);
  }
  return n;
}

/* As for log space: the application hears of it at its next call under syncpoint. */
static int64_t backOut(const char *text, int64_t count, int64_t b) {
  (void)text, (void)b;
  int64_t n = 0;
  for (MqsSession *s; n < count && (s = mqsOldestUow()); n++) {
    s->doomed = true;
    mqsBackOut(s);
  }
  return n;
}

static int64_t stop(const char *text, int64_t reason, int64_t b) {
  (void)text, (void)b;
  switch (reason) {
    case 0: case MQRC_Q_MGR_QUIESCING: case MQRC_CONNECTION_QUIESCING: case MQRC_Q_MGR_STOPPING: case MQRC_CONNECTION_STOPPING: break;
    default: return -1;
  }
  mqsQmgr.stop = (MQLONG)reason;
  if (reason == MQRC_Q_MGR_STOPPING || reason == MQRC_CONNECTION_STOPPING) EACH_SESSION(s) mqsEnd(s, (MQLONG)reason);
  for (MqsQueue *q = mqsQmgr.queues; q; q = q->next) mqsWakeAll(q);
  return 0;
}

static int64_t restart(const char *text, int64_t downMs, int64_t b) {
  (void)text, (void)b;
  mqsQmgr.downUntil = mqsNowMs() + downMs;
  EACH_SESSION(s) sever(s, true);
  for (MqsQueue *q = mqsQmgr.queues; q; q = q->next) mqsPurge(q, true);
  return 0;
}

/* ---- failures and settings ---- */

static int64_t fault(const char *text, int64_t reason, int64_t count, bool after) {
  int verb = mqsVerbOf(text);
  if (verb < 0 || count < 0) return -1;
  if (count) mqsAddFault(verb, (MQLONG)reason, (int)count, after);
  return 0;
}

static int64_t failNext(const char *text, int64_t reason, int64_t count) {
  return fault(text, reason, count, false);
}

static int64_t failAfter(const char *text, int64_t reason, int64_t count) {
  return fault(text, reason, count, true);
}

static int64_t hold(const char *text, int64_t after, int64_t b) {
  (void)b;
  int verb = mqsVerbOf(text);
  if (verb < 0 || verb >= MQS_CRTMH) return -1;
  mqsHold(verb, after);
  return 0;
}

static int64_t release(const char *text, int64_t a, int64_t b) {
  (void)text, (void)a, (void)b;
  mqsReleaseHolds();
  return 0;
}

static int64_t limitConnections(const char *text, int64_t most, int64_t reason) {
  (void)text;
  mqsQmgr.maxConnections = (int)most;
  mqsQmgr.maxConnectionsReason = (MQLONG)reason;
  return 0;
}

static int64_t detectAfter(const char *text, int64_t ms, int64_t b) {
  (void)text, (void)b;
  mqsQmgr.detectMs = (int)ms;
  return 0;
}

static int64_t heartbeat(const char *text, int64_t ms, int64_t b) {
  (void)text, (void)b;
  mqsQmgr.heartbeatMs = (int)ms;
  return 0;
}

static int64_t latency(const char *text, int64_t us, int64_t b) {
  (void)text, (void)b;
  mqsQmgr.latencyUs = (int)us;
  return 0;
}

static int64_t discBacksOut(const char *text, int64_t on, int64_t b) {
  (void)text, (void)b;
  mqsQmgr.discBacksOut = on;
  return 0;
}

static const struct {
  const char *name;
  Control run;
} controls[] = {
    {"reset", reset},           {"define", define},       {"available", available},
    {"waiters", waiters},       {"calls", calls},         {"uncommitted", uncommitted},
    {"held", held},             {"unnoticed", unnoticed}, {"connections", connections},
    {"break", breakAll},        {"notice", notice},       {"break_oldest", breakOldest},
    {"back_out", backOut},      {"stop", stop},           {"restart", restart},
    {"fail_next", failNext},    {"fail_after", failAfter}, {"hold", hold},
    {"release", release},       {"latency", latency},     {"limit_connections", limitConnections},
    {"detect_after", detectAfter}, {"heartbeat", heartbeat}, {"disc_backs_out", discBacksOut},
};

int64_t mqsServeControl(const char *name, const char *text, int64_t a, int64_t b) {
  int64_t result = -1;
  pthread_mutex_lock(&mqsLock);
  mqsStart();
  for (size_t i = 0; i < sizeof controls / sizeof *controls; i++)
    if (!strcmp(controls[i].name, name)) result = controls[i].run(text ? text : "", a, b);
  pthread_mutex_unlock(&mqsLock);
  return result;
}
