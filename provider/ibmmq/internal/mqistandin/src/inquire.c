/* MQINQ and MQSTAT. */
#include "qmgr.h"
#include <string.h>

static bool qmgrInt(MQLONG selector, MQLONG *v) {
  switch (selector) {
    case MQIA_COMMAND_LEVEL: *v = 900; return true;
    case MQIA_PLATFORM: *v = MQPL_UNIX; return true;
    case MQIA_MAX_MSG_LENGTH: *v = MQS_MAX_MSG_LENGTH; return true;
    case MQIA_MAX_PRIORITY: *v = MQS_PRIORITIES - 1; return true;
    case MQIA_CODED_CHAR_SET_ID: *v = 1208; return true;
    case MQIA_MAX_UNCOMMITTED_MSGS: *v = MQS_MAX_UNCOMMITTED; return true;
    case MQIA_SYNCPOINT: *v = MQSP_AVAILABLE; return true;
    default: return false;
  }
}

static bool queueInt(const MqsQueue *q, MQLONG selector, MQLONG *v) {
  switch (selector) {
    case MQIA_CURRENT_Q_DEPTH: *v = q->depth; return true;
    case MQIA_MAX_Q_DEPTH: *v = q->maxDepth; return true;
    case MQIA_MAX_MSG_LENGTH: *v = q->maxMsgLength; return true;
    case MQIA_BACKOUT_THRESHOLD: *v = q->backoutThreshold; return true;
    case MQIA_OPEN_INPUT_COUNT: *v = q->openInput; return true;
    case MQIA_OPEN_OUTPUT_COUNT: *v = q->openOutput; return true;
    case MQIA_Q_TYPE: *v = MQQT_LOCAL; return true;
    case MQIA_HARDEN_GET_BACKOUT: *v = MQQA_BACKOUT_HARDENED; return true;
    case MQIA_QSG_DISP: *v = MQQSGD_SHARED; return q->qsgShared;
    case MQIA_SHAREABILITY: *v = q->noShare ? MQQA_NOT_SHAREABLE : MQQA_SHAREABLE; return true;
    case MQIA_DEF_INPUT_OPEN_OPTION: *v = q->defaultExclusive ? MQOO_INPUT_EXCLUSIVE : MQOO_INPUT_SHARED; return true;
    case MQIA_MSG_DELIVERY_SEQUENCE: *v = q->fifo ? MQMDS_FIFO : MQMDS_PRIORITY; return true;
    case MQIA_INHIBIT_GET: *v = q->getInhibited ? MQQA_GET_INHIBITED : MQQA_GET_ALLOWED; return true;
    case MQIA_INHIBIT_PUT: *v = q->putInhibited ? MQQA_PUT_INHIBITED : MQQA_PUT_ALLOWED; return true;
    default: return false;
  }
}

static const char *charAttribute(const MqsObject *o, MQLONG selector, size_t *n) {
  *n = MQ_Q_NAME_LENGTH;
  if (o->isQmgr) switch (selector) {
    case MQCA_Q_MGR_NAME: return mqsQmgr.name;
    case MQCA_DEAD_LETTER_Q_NAME: return "DEV.DEAD.LETTER.QUEUE";
    case MQCA_Q_MGR_IDENTIFIER: return mqsQmgr.name;
    default: return NULL;
  }
  switch (selector) {
    case MQCA_Q_NAME: return o->queue->name;
    case MQCA_BACKOUT_REQ_Q_NAME: return o->queue->backoutQueue;
    case MQCA_Q_DESC: *n = MQ_Q_DESC_LENGTH; return "";
    default: return NULL;
  }
}

/* Into the buffer: the integers first, at the place of ints, then the characters. */
static MQLONG inquire(const MqsObject *o, const MqsRequest *q, MqsReply *r) {
  const MQLONG *selector = q->data;
  MQLONG n = q->length / (MQLONG)sizeof *selector, ints = q->ints, chars = q->chars;
  MQLONG *intOut = r->buffer;
  char *charOut = (char *)(intOut + ints);
  for (MQLONG i = 0; i < n; i++) {
    MQLONG v = 0;
    size_t l;
    if (selector[i] >= MQIA_FIRST && selector[i] <= MQIA_LAST) {
      if (!(o->isQmgr ? qmgrInt(selector[i], &v) : queueInt(o->queue, selector[i], &v))) return MQRC_SELECTOR_ERROR;
      if (ints-- <= 0) return MQRC_INT_ATTR_COUNT_TOO_SMALL;
      *intOut++ = v;
      continue;
    }
    const char *s = charAttribute(o, selector[i], &l);
    if (!s) return MQRC_SELECTOR_ERROR;
    if (chars < (MQLONG)l) return MQRC_CHAR_ATTRS_TOO_SHORT;
    mqsPad(charOut, s, l);
    charOut += l;
    chars -= (MQLONG)l;
  }
  r->length = q->room;
  return 0;
}

void mqsDoInq(MqsSession *s, const MqsRequest *q, MqsReply *r) {
  MqsObject *o = mqsObject(s, q->hobj);
  MQLONG reason;
  if (!o) reason = MQRC_HOBJ_ERROR;
  else if (!(o->options & MQOO_INQUIRE)) reason = MQRC_NOT_OPEN_FOR_INQUIRE;
  else reason = inquire(o, q, r);
  if (reason) mqsFail(r, MQCC_FAILED, reason);
}

/* What asynchronous puts did since the last time. */
void mqsDoStat(MqsSession *s, const MqsRequest *q, MqsReply *r) {
  (void)q;
  s->async.ObjectType = MQOT_Q;
  memcpy(r->buffer, &s->async, sizeof s->async);
  r->length = sizeof s->async;
  memset(&s->async, 0, sizeof s->async);
}
