/* Connection handles of this process. */
#define _GNU_SOURCE
#include "client.h"
#include "qmgr.h"
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static MqsConn **table;
static size_t conns, room;

#define FIRST 0x1001

static MqsConn *find(MQHCONN h) {
  size_t i = (size_t)(h - FIRST);
  return h >= FIRST && i < conns ? table[i] : NULL;
}

static MQHCONN add(MqsConn *c) {
  pthread_mutex_lock(&lock);
  if (conns == room) {
    room = room ? 2 * room : 64;
    table = mqsGrow(table, room * sizeof *table);
  }
  table[conns++] = c;
  c->id = (MQHCONN)(FIRST + conns - 1); /* never given twice: stale handles show */
  MQHCONN id = c->id;
  pthread_mutex_unlock(&lock);
  return id;
}

void mqsResult(MqsCall *call, MQLONG cc, MQLONG reason) {
  *call->cc = cc;
  *call->rc = reason;
}

/* Message handle calls do not reach the queue manager, yet can be made to fail. */
static MQLONG localFault(MQLONG verb) {
  if (verb < MQS_CRTMH) return 0;
  pthread_mutex_lock(&mqsLock);
  mqsCount(verb);
  MQLONG reason = mqsFault(verb, false);
  pthread_mutex_unlock(&mqsLock);
  return reason;
}

bool mqsEnter(MqsCall *call, MQLONG verb, MQHCONN h, PMQLONG cc, PMQLONG rc) {
  *call = (MqsCall){.verb = verb, .cc = cc, .rc = rc};
  mqsResult(call, MQCC_OK, MQRC_NONE);
  MQLONG reason = localFault(verb);
  pthread_mutex_lock(&lock);
  MqsConn *c = find(h);
  while (!reason && c && c->busy && c->blockWhenBusy) {
    pthread_cond_wait(&idle, &lock);
    c = find(h);
  }
  if (reason) {
  } else if (!c) {
    reason = MQRC_HCONN_ERROR;
  } else if (c->busy) {
    reason = MQRC_CALL_IN_PROGRESS;
  } else if (c->over && verb != MQS_DISC) {
    reason = c->over;
  } else {
    c->busy = true;
    call->conn = c;
  }
  pthread_mutex_unlock(&lock);
  if (reason) mqsResult(call, MQCC_FAILED, reason);
  return !reason;
}

void mqsLeave(MqsCall *call) {
  pthread_mutex_lock(&lock);
  if (call->conn) call->conn->busy = false;
  pthread_cond_broadcast(&idle);
  pthread_mutex_unlock(&lock);
}

MQHCONN mqsConnect(const MqsConnect *given, const char *connectionName, const MQCNO *cno, PMQLONG cc, PMQLONG rc) {
  MqsConnect connect = *given;
  MqsRequest q = {.verb = MQS_CONNX, .length = sizeof connect, .data = &connect};
  MqsReply r = {0};
  MqsConn c = {.fd = -1, .blockWhenBusy = cno && (cno->Options & MQCNO_HANDLE_SHARE_BLOCK)};
  const char *server = mqsServer();
  MQLONG tls = mqsTlsBegin(cno, &c.encrypted);
  if (tls == MQRC_KEY_REPOSITORY_ERROR) {
    c.encrypted = false;
    mqsFail(&r, MQCC_FAILED, tls);
  } else if (!server) {
    c.session = mqsServeConnect(&q, &r, -1);
  } else if (!(connect.link = mqsLink(server, connectionName)) || (c.fd = mqsDial(server, connectionName)) < 0) {
    mqsFail(&r, MQCC_FAILED, MQRC_HOST_NOT_AVAILABLE);
  } else if (!mqsExchange(c.fd, &q, &r)) {
    mqsFail(&r, MQCC_FAILED, MQRC_CONNECTION_BROKEN);
  }
  *cc = r.cc;
  *rc = r.rc;
  if (r.cc == MQCC_FAILED) {
    if (c.encrypted) mqsTlsEnd();
    if (c.fd >= 0) close(c.fd);
    return MQHC_UNUSABLE_HCONN;
  }
  if (tls) { /* what was said of it is ignored, and the connection stands */
    *cc = MQCC_WARNING;
    *rc = tls;
  }
  c.link = connect.link;
  return add(mqsCopy(&c, sizeof c));
}

void mqsDropConn(MqsCall *call) {
  MqsConn *c = call->conn;
  call->conn = NULL;
  pthread_mutex_lock(&lock);
  table[c->id - FIRST] = NULL;
  pthread_mutex_unlock(&lock);
  mqsFreeHandles(c);
  if (c->encrypted) mqsTlsEnd();
  if (c->fd >= 0) close(c->fd);
  if (c->session) {
    pthread_mutex_lock(&mqsLock);
    mqsRelease(c->session);
    pthread_mutex_unlock(&mqsLock);
  }
  free(c);
}

void mqsAsk(MqsCall *call, const MqsRequest *q, MqsReply *r) {
  MqsConn *c = call->conn;
  if (c->over) mqsFail(r, MQCC_FAILED, c->over);
  else if (c->session) mqsServe(c->session, q, r);
  else if (!mqsExchange(c->fd, q, r)) mqsFail(r, MQCC_FAILED, MQRC_CONNECTION_BROKEN);
  if (r->cc == MQCC_FAILED)
    switch (r->rc) {
      case MQRC_CONNECTION_BROKEN: case MQRC_Q_MGR_STOPPING: case MQRC_CONNECTION_STOPPING: c->over = r->rc;
    }
  mqsResult(call, r->cc, r->rc);
}

void mqsSeverLink(int64_t link) {
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < conns; i++)
    if (table[i] && table[i]->fd >= 0 && table[i]->link == link) shutdown(table[i]->fd, SHUT_RDWR);
  pthread_mutex_unlock(&lock);
}

int64_t mqsHandlesOfAll(void) {
  int64_t n = 0;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < conns; i++)
    if (table[i]) n += (int64_t)table[i]->handles;
  pthread_mutex_unlock(&lock);
  return n;
}
