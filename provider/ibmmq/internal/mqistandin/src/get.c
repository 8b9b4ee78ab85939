/* MQGET: browse, take, wait. */
#define _GNU_SOURCE
#include "qmgr.h"
#include <string.h>

static MqsMatch matchOf(const MqsRequest *q) {
  static const MQBYTE any[24];
  MqsMatch m = {.byMsgId = (q->match & MQMO_MATCH_MSG_ID) && memcmp(q->md.MsgId, any, 24),
                .byCorrelId = (q->match & MQMO_MATCH_CORREL_ID) && memcmp(q->md.CorrelId, any, 24)};
  memcpy(m.msgId, q->md.MsgId, 24);
  memcpy(m.correlId, q->md.CorrelId, 24);
  return m;
}

static MqsMsg *look(const MqsObject *o, MQLONG options, const MqsMatch *match, MQLONG *reason) {
  if (options & MQGMO_MSG_UNDER_CURSOR) {
    *reason = MQRC_NO_MSG_UNDER_CURSOR;
    return o->cursorSet ? mqsAt(o->queue, o->cursorLane, o->cursorSeq) : NULL;
  }
  *reason = MQRC_NO_MSG_AVAILABLE;
  if ((options & MQGMO_BROWSE_NEXT) && o->cursorSet) return mqsFind(o->queue, match, o->cursorLane, o->cursorSeq);
  return mqsFind(o->queue, match, MQS_PRIORITIES, 0);
}

/* A message that does not fit stays on the queue, and the cursor where it was. */
static MQLONG deliver(MqsSession *s, MqsObject *o, MqsMsg *m, const MqsRequest *q, MqsReply *r) {
  bool browse = q->options & (MQGMO_BROWSE_FIRST | MQGMO_BROWSE_NEXT);
  bool synced = mqsSynced(q->options, m);
  if (m->length > s->maxMsgLength) return MQRC_DATA_LENGTH_ERROR;
  if (synced && !browse && s->uowCount >= MQS_MAX_UNCOMMITTED) return MQRC_SYNCPOINT_LIMIT_REACHED;
  r->md = m->md;
  r->hasMd = true;
  if (m->expiresAt) {
    int64_t left = (m->expiresAt - mqsNowMs()) / 100;
    r->md.Expiry = left < 1 ? 1 : (MQLONG)left;
  }
  memcpy(r->queue, o->queue->name, sizeof r->queue);
  r->messageLength = m->length;
  r->length = m->length < q->room ? m->length : q->room;
  if (r->length > 0) memcpy(r->buffer, m->data, (size_t)r->length);
  r->propsLength = m->propsLength;
  r->props = mqsCopy(m->props, (size_t)m->propsLength);
  if (m->length > q->room) {
    bool accepted = q->options & MQGMO_ACCEPT_TRUNCATED_MSG;
    mqsFail(r, MQCC_WARNING, accepted ? MQRC_TRUNCATED_MSG_ACCEPTED : MQRC_TRUNCATED_MSG_FAILED);
    if (!accepted) return 0;
  }
  if (browse) {
    o->cursorSet = true;
    o->cursorLane = m->lane;
    o->cursorSeq = m->seq;
  } else {
    mqsTake(s, m, synced);
  }
  return 0;
}

static MQLONG checkGet(MqsSession *s, const MqsObject *o, const MqsRequest *q) {
  bool browse = q->options & (MQGMO_BROWSE_FIRST | MQGMO_BROWSE_NEXT);
  if (!o) return MQRC_HOBJ_ERROR;
  if (browse && !(o->options & MQOO_BROWSE)) return MQRC_NOT_OPEN_FOR_BROWSE;
  if (!browse && !o->holdsInput) return MQRC_NOT_OPEN_FOR_INPUT;
  if (s->doomed && (q->options & (MQGMO_SYNCPOINT | MQGMO_SYNCPOINT_IF_PERSISTENT))) return MQRC_BACKED_OUT;
  return 0;
}

void mqsDoGet(MqsSession *s, const MqsRequest *q, MqsReply *r) {
  MqsObject *o = mqsObject(s, q->hobj);
  MQLONG reason = checkGet(s, o, q);
  if (reason) {
    mqsFail(r, MQCC_FAILED, reason);
    return;
  }
  MqsQueue *queue = o->queue;
  MqsMatch match = matchOf(q);
  int64_t until = q->wait == MQWI_UNLIMITED ? -1 : mqsNowMs() + q->wait + 1; /* never early */
  for (bool waited = false;; waited = true) {
    if (s->ended) { /* o is no more */
      reason = s->endReason;
      break;
    }
    if (s->cut) {
      if (waited) mqsOrphanGet(queue, s, &match, q->options, until);
      reason = MQRC_CONNECTION_BROKEN;
      break;
    }
    if (mqsQuiescing(q->options, MQGMO_FAIL_IF_QUIESCING)) reason = mqsQmgr.stop;
    else if (queue->getInhibited) reason = MQRC_GET_INHIBITED;
    else if (s->doomed && (q->options & (MQGMO_SYNCPOINT | MQGMO_SYNCPOINT_IF_PERSISTENT))) reason = MQRC_BACKED_OUT;
    if (reason) break;
    MqsMsg *m = look(o, q->options, &match, &reason);
    if (m) {
      reason = deliver(s, o, m, q, r);
      break;
    }
    bool wait = (q->options & MQGMO_WAIT) && reason == MQRC_NO_MSG_AVAILABLE;
    if (!wait || (until >= 0 && mqsNowMs() >= until)) break;
    reason = 0;
    mqsKick(queue); /* this one may have been woken for what it can not use */
    mqsWait(queue, s, &match, until);
  }
  mqsKick(queue); /* whoever else was woken for what this call took or left */
  if (reason) mqsFail(r, MQCC_FAILED, reason);
}
