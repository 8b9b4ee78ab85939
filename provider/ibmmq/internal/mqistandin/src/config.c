/* The queue manager's objects: what exists, and how it is defined and altered. */
#define _GNU_SOURCE
#include "qmgr.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

MqsQmgr mqsQmgr;

static const char *env(const char *name, const char *otherwise) {
  const char *v = getenv(name);
  return v && *v ? v : otherwise;
}

MqsQueue *mqsFindQueue(const char *name) {
  for (MqsQueue *q = mqsQmgr.queues; q; q = q->next)
    if (!strcmp(q->name, name)) return q;
  return NULL;
}

static MqsQueue *queue(const char *name) {
  MqsQueue *q = mqsFindQueue(name);
  if (q) return q;
  q = mqsAlloc(sizeof *q);
  snprintf(q->name, sizeof q->name, "%s", name);
  q->maxDepth = 5000; /* MAXDEPTH and MAXMSGL as DEFINE QLOCAL has them */
  q->maxMsgLength = 4194304;
  q->mayGet = q->mayBrowse = q->mayPut = q->mayInquire = true;
  q->next = mqsQmgr.queues;
  return mqsQmgr.queues = q;
}

static bool number(const char *value, int *to) {
  char *end;
  long n = value ? strtol(value, &end, 10) : -1;
  if (n < 0 || n > INT_MAX || *end) return false;
  *to = (int)n;
  return true;
}

static bool yesNo(const char *value, bool *to) {
  int n = 1; /* a bare word means yes */
  if (value && (!number(value, &n) || n > 1)) return false;
  *to = n;
  return true;
}

/* Who may do what: letters of get, browse, put, inquire. */
static bool authority(MqsQueue *q, const char *value) {
  if (!value || strspn(value, "gbpi") != strlen(value)) return false;
  q->mayGet = strchr(value, 'g');
  q->mayBrowse = strchr(value, 'b');
  q->mayPut = strchr(value, 'p');
  q->mayInquire = strchr(value, 'i');
  return true;
}

static bool attribute(MqsQueue *q, const char *key, const char *value) {
  bool yes;
  if (!strcmp(key, "maxdepth")) return number(value, &q->maxDepth);
  if (!strcmp(key, "maxmsgl")) return number(value, &q->maxMsgLength);
  if (!strcmp(key, "bothresh")) return number(value, &q->backoutThreshold);
  if (!strcmp(key, "boqname")) return value && snprintf(q->backoutQueue, sizeof q->backoutQueue, "%s", value) < 49;
  if (!strcmp(key, "excl")) return yesNo(value, &q->defaultExclusive);
  if (!strcmp(key, "qsgshared")) return yesNo(value, &q->qsgShared);
  if (!strcmp(key, "noshare")) return yesNo(value, &q->noShare);
  if (!strcmp(key, "fifo")) return yesNo(value, &q->fifo);
  if (!strcmp(key, "auth")) return authority(q, value);
  if (!strcmp(key, "get") && yesNo(value, &yes)) {
    q->getInhibited = !yes;
    mqsWakeAll(q);
    mqsKick(q);
    return true;
  }
  if (!strcmp(key, "put") && yesNo(value, &yes)) {
    q->putInhibited = !yes;
    return true;
  }
  return false;
}

/* NAME[:key[=value]]..., and several of them with commas between. 0, or -1 at the
 * first thing not understood; what stands before it holds. */
int mqsDefine(const char *text) {
  char *copy = mqsCopy(text, strlen(text)), *restOfList, *restOfEntry;
  int result = 0;
  for (char *entry = strtok_r(copy, ",", &restOfList); entry && !result; entry = strtok_r(NULL, ",", &restOfList)) {
    char *name = strtok_r(entry, ":", &restOfEntry), *part;
    if (!name || strlen(name) > MQ_Q_NAME_LENGTH) {
      result = -1;
      break;
    }
    MqsQueue *q = queue(name);
    while (!result && (part = strtok_r(NULL, ":", &restOfEntry))) {
      char *value = strchr(part, '=');
      if (value) *value++ = 0;
      if (!attribute(q, part, value)) result = -1;
    }
  }
  free(copy);
  return result;
}

int mqsDefaultHeartbeat(void) { return atoi(env("MQSTANDIN_HEARTBEAT_MS", "5000")); }

void mqsStart(void) {
  if (mqsQmgr.started) return;
  mqsQmgr.started = true;
  snprintf(mqsQmgr.name, sizeof mqsQmgr.name, "%s", env("MQSTANDIN_QMGR", "QM1"));
  const char *users = env("MQSTANDIN_USERS", "app:passw0rd");
  mqsQmgr.users = mqsCopy(users, strlen(users));
  char channels[4096];
  snprintf(channels, sizeof channels, "DEV.APP.SVRCONN,DEV.ADMIN.SVRCONN,%s", env("MQSTANDIN_CHANNELS", ""));
  mqsQmgr.channels = mqsCopy(channels, strlen(channels));
  mqsQmgr.maxConnections = -1;
  mqsQmgr.heartbeatMs = mqsDefaultHeartbeat();
  mqsQmgr.latencyUs = atoi(env("MQSTANDIN_LATENCY_US", "0"));
  if (mqsDefine("DEV.QUEUE.1,DEV.QUEUE.2,DEV.QUEUE.3,DEV.DEAD.LETTER.QUEUE") || mqsDefine(env("MQSTANDIN_QUEUES", "")))
    fprintf(stderr, "mqstandin: MQSTANDIN_QUEUES not understood: %s\n", getenv("MQSTANDIN_QUEUES"));
}

bool mqsListed(const char *list, const char *item) {
  size_t n = strlen(item);
  for (const char *p = list; *p; p += strcspn(p, ","), p += *p == ',')
    if (strcspn(p, ",") == n && !strncmp(p, item, n)) return true;
  return false;
}
