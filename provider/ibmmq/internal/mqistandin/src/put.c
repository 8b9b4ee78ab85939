/* MQPUT and MQPUT1. */
#define _GNU_SOURCE
#include "qmgr.h"
#include <string.h>

static void stampContext(MqsSession *s, MQMD *md, MQLONG options) {
  md->BackoutCount = 0;
  if (!(options & (MQPMO_SET_ALL_CONTEXT | MQPMO_SET_IDENTITY_CONTEXT))) {
    mqsPad(md->UserIdentifier, options & MQPMO_NO_CONTEXT ? "" : s->user, 12);
    memset(md->ApplIdentityData, ' ', 32);
  }
  if (!(options & MQPMO_SET_ALL_CONTEXT)) {
    md->PutApplType = MQAT_UNIX;
    mqsPad(md->PutApplName, s->appl, 28);
    memset(md->ApplOriginData, ' ', 4);
    mqsStamp(md);
  }
}

static MQLONG checkPut(MqsSession *s, MqsQueue *queue, const MqsRequest *q) {
  bool synced = q->options & MQPMO_SYNCPOINT;
  if (synced && s->doomed) return MQRC_BACKED_OUT;
  if (queue->putInhibited) return MQRC_PUT_INHIBITED;
  if (q->length > s->maxMsgLength) return MQRC_DATA_LENGTH_ERROR;
  if (q->length > queue->maxMsgLength) return MQRC_MSG_TOO_BIG_FOR_Q;
  if (synced && s->uowCount >= MQS_MAX_UNCOMMITTED) return MQRC_SYNCPOINT_LIMIT_REACHED;
  if (queue->depth >= queue->maxDepth) {
    MqsMatch nothing = {.byMsgId = true, .msgId = {0xff}};
    mqsFind(queue, &nothing, MQS_PRIORITIES, 0); /* drops the expired */
    if (queue->depth >= queue->maxDepth) return MQRC_Q_FULL;
  }
  return 0;
}

MQLONG mqsPut(MqsSession *s, MqsQueue *queue, const MqsRequest *q, MqsReply *r) {
  static const MQBYTE none[24];
  bool synced = q->options & MQPMO_SYNCPOINT;
  MQLONG reason = checkPut(s, queue, q);
  if (reason) return reason;
  MQMD md = q->md;
  if ((q->options & MQPMO_NEW_MSG_ID) || !memcmp(md.MsgId, none, 24)) mqsNewMsgId(md.MsgId);
  if (q->options & MQPMO_NEW_CORREL_ID) mqsNewMsgId(md.CorrelId);
  if (md.Priority == MQPRI_PRIORITY_AS_Q_DEF) md.Priority = 0;
  if (md.Priority >= MQS_PRIORITIES) {
    md.Priority = MQS_PRIORITIES - 1;
    mqsFail(r, MQCC_WARNING, MQRC_PRIORITY_EXCEEDS_MAXIMUM);
  }
  if (md.Persistence == MQPER_PERSISTENCE_AS_Q_DEF) md.Persistence = MQPER_NOT_PERSISTENT;
  if (md.CodedCharSetId == MQCCSI_Q_MGR) md.CodedCharSetId = 1208;
  stampContext(s, &md, q->options);
  MqsMsg *m = mqsAlloc(sizeof *m);
  m->md = md;
  if (md.Version < MQMD_VERSION_2) {
    memset((char *)&m->md + MQMD_LENGTH_1, 0, MQMD_LENGTH_2 - MQMD_LENGTH_1);
    m->md.MsgSeqNumber = 1;
    m->md.OriginalLength = MQOL_UNDEFINED;
  }
  m->length = q->length;
  m->data = mqsCopy(q->data, (size_t)q->length);
  m->propsLength = q->propsLength;
  m->props = mqsCopy(q->props, (size_t)q->propsLength);
  if (md.Expiry != MQEI_UNLIMITED) m->expiresAt = mqsNowMs() + 100 * (int64_t)md.Expiry;
  m->state = synced ? MSG_PUT_PENDING : MSG_AVAILABLE;
  mqsAppend(queue, m);
  r->md = md;
  r->hasMd = true;
  memcpy(r->queue, queue->name, sizeof r->queue);
  memcpy(r->qmgr, mqsQmgr.name, sizeof r->qmgr);
  if (synced) mqsJoinUow(s, m);
  else mqsKick(queue);
  return 0;
}

/* An asynchronous put always seems to work; MQSTAT and MQCMIT tell. */
static MQLONG asyncResult(MqsSession *s, MQLONG reason, const MqsRequest *q, const char *queue) {
  if (!(q->options & MQPMO_ASYNC_RESPONSE)) return reason;
  if (!reason) {
    s->async.PutSuccessCount++;
    return 0;
  }
  if (!s->async.PutFailureCount++) {
    s->async.CompCode = MQCC_FAILED;
    s->async.Reason = reason;
    mqsPad(s->async.ObjectName, queue, 48);
  }
  if ((q->options & MQPMO_SYNCPOINT) && q->md.Persistence == MQPER_PERSISTENT) s->asyncFailedInUow = true;
  return 0;
}

void mqsDoPut(MqsSession *s, const MqsRequest *q, MqsReply *r) {
  MqsObject *o = mqsObject(s, q->hobj);
  MQLONG reason;
  if (!o) reason = MQRC_HOBJ_ERROR;
  else if (o->isQmgr || !(o->options & MQOO_OUTPUT)) reason = MQRC_NOT_OPEN_FOR_OUTPUT;
  else if ((q->options & MQPMO_SET_ALL_CONTEXT) && !(o->options & MQOO_SET_ALL_CONTEXT)) reason = MQRC_NOT_OPEN_FOR_SET_ALL;
  else if ((q->options & MQPMO_SET_IDENTITY_CONTEXT) && !(o->options & (MQOO_SET_IDENTITY_CONTEXT | MQOO_SET_ALL_CONTEXT)))
    reason = MQRC_NOT_OPEN_FOR_SET_IDENT;
  else if (mqsQuiescing(q->options, MQPMO_FAIL_IF_QUIESCING)) reason = mqsQmgr.stop;
  else reason = asyncResult(s, mqsPut(s, o->queue, q, r), q, o->queue->name);
  if (reason) mqsFail(r, MQCC_FAILED, reason);
}

void mqsDoPut1(MqsSession *s, const MqsRequest *q, MqsReply *r) {
  MqsQueue *queue = NULL;
  MQLONG reason;
  if (mqsQuiescing(q->options, MQPMO_FAIL_IF_QUIESCING)) {
    reason = mqsQmgr.stop;
  } else {
    reason = mqsResolve(q, &queue);
    if (!reason && !queue->mayPut) reason = MQRC_NOT_AUTHORIZED;
    if (!reason) reason = mqsPut(s, queue, q, r);
    reason = asyncResult(s, reason, q, q->object);
  }
  if (reason) mqsFail(r, MQCC_FAILED, reason);
}
