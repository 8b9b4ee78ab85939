/* A call as the queue manager handles it: connecting, objects, syncpoint, and the
 * way of every call through failures on demand. */
#define _GNU_SOURCE
#include "qmgr.h"
#include <stdio.h>
#include <string.h>

void mqsFail(MqsReply *r, MQLONG cc, MQLONG reason) {
  r->cc = cc;
  r->rc = reason;
}

bool mqsQuiescing(MQLONG options, MQLONG failIfQuiescing) {
  bool quiescing = mqsQmgr.stop == MQRC_Q_MGR_QUIESCING || mqsQmgr.stop == MQRC_CONNECTION_QUIESCING;
  return quiescing && (options & failIfQuiescing);
}

MqsObject *mqsObject(MqsSession *s, MQLONG hobj) {
  size_t i = (size_t)(hobj - 0x101);
  return hobj > 0x100 && i < s->objects && s->object[i].open ? &s->object[i] : NULL;
}

/* ---- connecting ---- */

static MQLONG checkConnect(const MqsConnect *c) {
  const char *plain = c->qmgr[0] == '*' ? c->qmgr + 1 : c->qmgr;
  if (mqsQmgr.downUntil > mqsNowMs()) return MQRC_Q_MGR_NOT_AVAILABLE;
  if (*plain && strcmp(plain, mqsQmgr.name)) return MQRC_Q_MGR_NAME_ERROR;
  if (mqsQmgr.stop == MQRC_CONNECTION_QUIESCING || mqsQmgr.stop == MQRC_CONNECTION_STOPPING)
    return MQRC_CHANNEL_NOT_AVAILABLE; /* it is the channel that stops */
  if (mqsQmgr.stop) return mqsQmgr.stop;
  if (c->throughChannel && !mqsListed(mqsQmgr.channels, c->channel)) return MQRC_UNKNOWN_CHANNEL_NAME;
  if (mqsQmgr.maxConnections >= 0 && mqsQmgr.live >= mqsQmgr.maxConnections) return mqsQmgr.maxConnectionsReason;
  if (c->hasUser) {
    char pair[2052];
    snprintf(pair, sizeof pair, "%s:%s", c->user, c->password);
    if (!mqsListed(mqsQmgr.users, pair)) return MQRC_NOT_AUTHORIZED;
  }
  return 0;
}

/* The connection is made, the answer says otherwise: the client has no handle for it. It
 * ends at once, or where the link broke when that is noticed. */
static MqsSession *unanswered(MqsSession *s, MqsReply *r, MQLONG reason) {
  mqsFail(r, MQCC_FAILED, reason);
  if (reason == MQRC_CONNECTION_BROKEN) mqsCut(s);
  else mqsEnd(s, reason);
  s->fd = -1;
  mqsRelease(s);
  return NULL;
}

MqsSession *mqsServeConnect(const MqsRequest *q, MqsReply *r, int fd) {
  const MqsConnect *c = q->data;
  MqsSession *s = NULL;
  mqsRoundTrip(MQS_CONNX, 0);
  pthread_mutex_lock(&mqsLock);
  mqsStart();
  mqsCount(MQS_CONNX);
  static MqsSession nobody;
  mqsWhileHeld(&nobody, MQS_CONNX, false);
  MQLONG reason = mqsFault(MQS_CONNX, false);
  if (!reason) reason = checkConnect(c);
  if (reason) {
    mqsFail(r, MQCC_FAILED, reason);
  } else {
    s = mqsNewSession(fd);
    s->link = c->link;
    s->maxMsgLength = c->maxMsgLength;
    memcpy(s->appl, c->appl, sizeof s->appl);
    snprintf(s->user, sizeof s->user, "%.12s", c->user);
    mqsWhileHeld(s, MQS_CONNX, true);
    if ((reason = mqsFault(MQS_CONNX, true))) s = unanswered(s, r, reason);
  }
  pthread_mutex_unlock(&mqsLock);
  return s;
}

/* ---- objects ---- */

MQLONG mqsResolve(const MqsRequest *q, MqsQueue **queue) {
  if (q->objectType != MQOT_Q) return MQRC_OBJECT_TYPE_ERROR;
  if (q->objectQmgr[0] && strcmp(q->objectQmgr, mqsQmgr.name)) return MQRC_UNKNOWN_REMOTE_Q_MGR;
  *queue = mqsFindQueue(q->object);
  return *queue ? 0 : MQRC_UNKNOWN_OBJECT_NAME;
}

static MQLONG openQueue(MqsQueue *q, MqsObject *o, MQLONG options) {
  MQLONG input = options & (MQOO_INPUT_AS_Q_DEF | MQOO_INPUT_SHARED | MQOO_INPUT_EXCLUSIVE);
  if ((input && !q->mayGet) || ((options & MQOO_BROWSE) && !q->mayBrowse) || ((options & MQOO_OUTPUT) && !q->mayPut) ||
      ((options & MQOO_INQUIRE) && !q->mayInquire))
    return MQRC_NOT_AUTHORIZED;
  bool exclusive =
      q->noShare || input == MQOO_INPUT_EXCLUSIVE || (input == MQOO_INPUT_AS_Q_DEF && q->defaultExclusive);
  if (input && (q->exclusive || (exclusive && q->openInput))) return MQRC_OBJECT_IN_USE;
  if (input) q->openInput++;
  if (input && exclusive) q->exclusive = true;
  if (options & MQOO_OUTPUT) q->openOutput++;
  *o = (MqsObject){.open = true, .queue = q, .options = options, .holdsInput = input, .holdsExclusive = input && exclusive};
  return 0;
}

static void doOpen(MqsSession *s, const MqsRequest *q, MqsReply *r) {
  MqsQueue *queue = NULL;
  MqsObject o = {0};
  MQLONG reason = 0;
  if (mqsQuiescing(q->options, MQOO_FAIL_IF_QUIESCING)) reason = mqsQmgr.stop;
  else if (q->objectType == MQOT_Q_MGR) o = (MqsObject){.open = true, .isQmgr = true, .options = q->options};
  else if (!(reason = mqsResolve(q, &queue))) reason = openQueue(queue, &o, q->options);
  if (reason) {
    mqsFail(r, MQCC_FAILED, reason);
    return;
  }
  if (s->objects == s->objectRoom) {
    s->objectRoom = s->objectRoom ? 2 * s->objectRoom : 4;
    s->object = mqsGrow(s->object, s->objectRoom * sizeof *s->object);
  }
  s->object[s->objects++] = o;
  r->hobj = (MQHOBJ)s->objects + 0x100; /* never given twice on this connection */
  snprintf(r->queue, sizeof r->queue, "%s", queue ? queue->name : "");
  snprintf(r->qmgr, sizeof r->qmgr, "%s", mqsQmgr.name);
}

static void doClose(MqsSession *s, const MqsRequest *q, MqsReply *r) {
  MqsObject *o = mqsObject(s, q->hobj);
  if (o) mqsDropObject(o);
  else mqsFail(r, MQCC_FAILED, MQRC_HOBJ_ERROR);
}

/* ---- syncpoint ---- */

/* The documented default of MQDISC is to commit what is open. */
static void endWork(MqsSession *s, MqsReply *r, bool commit) {
  bool lost = s->doomed || (commit && s->asyncFailedInUow);
  s->doomed = false;
  if (commit && !lost) {
    mqsCommit(s);
    return;
  }
  mqsBackOut(s);
  if (commit) mqsFail(r, MQCC_WARNING, MQRC_BACKED_OUT);
}

static void run(MqsSession *s, const MqsRequest *q, MqsReply *r) {
  switch (q->verb) {
    case MQS_OPEN: doOpen(s, q, r); break;
    case MQS_CLOSE: doClose(s, q, r); break;
    case MQS_PUT: mqsDoPut(s, q, r); break;
    case MQS_PUT1: mqsDoPut1(s, q, r); break;
    case MQS_GET: mqsDoGet(s, q, r); break;
    case MQS_CMIT: endWork(s, r, true); break;
    case MQS_BACK: endWork(s, r, false); break;
    case MQS_INQ: mqsDoInq(s, q, r); break;
    case MQS_STAT: mqsDoStat(s, q, r); break;
    case MQS_DISC:
      endWork(s, r, !mqsQmgr.discBacksOut);
      mqsEnd(s, MQRC_HCONN_ERROR);
      break;
    default: mqsFail(r, MQCC_FAILED, MQRC_FUNCTION_NOT_SUPPORTED);
  }
}

static MQLONG severity(MQLONG verb, MQLONG reason) {
  bool warns = reason == MQRC_BACKED_OUT && (verb == MQS_CMIT || verb == MQS_DISC);
  return warns || reason == MQRC_OUTCOME_PENDING ? MQCC_WARNING : MQCC_FAILED;
}

/* A reason that is set has its usual cause: the link breaks, the work is undone. */
static void cause(MqsSession *s, MQLONG verb, MQLONG reason) {
  if (reason == MQRC_CONNECTION_BROKEN) {
    mqsCut(s);
  } else if (reason == MQRC_BACKED_OUT) {
    mqsBackOut(s);
    s->doomed = verb != MQS_CMIT && verb != MQS_BACK && verb != MQS_DISC;
  }
}

void mqsServe(MqsSession *s, const MqsRequest *q, MqsReply *r) {
  mqsRoundTrip(q->verb, q->options);
  pthread_mutex_lock(&mqsLock);
  mqsCount(q->verb);
  mqsWhileHeld(s, q->verb, false);
  bool over = s->cut || s->ended;
  MQLONG reason = over ? 0 : mqsFault(q->verb, false);
  if (reason) {
    cause(s, q->verb, reason);
  } else if (!over) {
    run(s, q, r);
    mqsWhileHeld(s, q->verb, true);
    if (!s->cut && r->cc == MQCC_OK && (reason = mqsFault(q->verb, true))) cause(s, q->verb, reason);
  }
  if (s->cut) reason = MQRC_CONNECTION_BROKEN; /* whatever was done, its answer is lost */
  else if (s->ended && (over || q->verb != MQS_DISC)) reason = s->endReason;
  if (reason) {
    mqsFail(r, severity(q->verb, reason), reason);
    r->length = r->propsLength = 0;
    r->hasMd = false;
  }
  pthread_mutex_unlock(&mqsLock);
}
