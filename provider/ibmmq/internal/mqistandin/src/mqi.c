/* The MQI calls that go to the queue manager: from the application's structures
 * into a request, and back. */
#define _GNU_SOURCE
#include "client.h"
#include "qmgr.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <cmqxc.h>

/* ---- connections ---- */

static void text(char *to, size_t room, const void *ptr, MQLONG offset, const void *base, MQLONG length) {
  const char *s = ptr ? ptr : offset ? (const char *)base + offset : "";
  size_t n = length > 0 ? (size_t)length : 0;
  if (n >= room) n = room - 1;
  memcpy(to, s, n);
  to[n] = 0;
}

static void fromCno(MqsConnect *c, const MQCNO *cno, const char **connectionName) {
  const MQCD *cd = cno->Version >= MQCNO_VERSION_2 ? cno->ClientConnPtr : NULL;
  if (cd) {
    c->throughChannel = true;
    mqsField(c->channel, sizeof c->channel, cd->ChannelName, 20);
    c->maxMsgLength = cd->MaxMsgLength ? cd->MaxMsgLength : MQS_MAX_MSG_LENGTH;
    *connectionName = cd->ConnectionName;
  }
  if (cno->Version >= MQCNO_VERSION_7 && cno->ApplName[0] && cno->ApplName[0] != ' ')
    mqsField(c->appl, sizeof c->appl, cno->ApplName, 28);
  const MQCSP *csp = cno->Version >= MQCNO_VERSION_5 ? cno->SecurityParmsPtr : NULL;
  if (csp && csp->AuthenticationType == MQCSP_AUTH_USER_ID_AND_PWD) {
    c->hasUser = true;
    text(c->user, sizeof c->user, csp->CSPUserIdPtr, csp->CSPUserIdOffset, csp, csp->CSPUserIdLength);
    text(c->password, sizeof c->password, csp->CSPPasswordPtr, csp->CSPPasswordOffset, csp, csp->CSPPasswordLength);
  }
}

API void MQCONNX(PMQCHAR name, PMQCNO cno, PMQHCONN hc, PMQLONG cc, PMQLONG rc) {
  MqsConnect c = {.maxMsgLength = MQS_MAX_MSG_LENGTH};
  const char *connectionName = "";
  MQLONG reason = cno ? mqsCheckCno(cno) : 0;
  if (reason) {
    *hc = MQHC_UNUSABLE_HCONN;
    *cc = MQCC_FAILED;
    *rc = reason;
    return;
  }
  mqsField(c.qmgr, sizeof c.qmgr, name, 48);
  mqsField(c.appl, sizeof c.appl, program_invocation_short_name, 28);
  if (cno) {
    fromCno(&c, cno, &connectionName);
    mqsPassed(c.appl, cno);
  }
  *hc = mqsConnect(&c, connectionName, cno, cc, rc);
}

API void MQCONN(PMQCHAR name, PMQHCONN hc, PMQLONG cc, PMQLONG rc) { MQCONNX(name, NULL, hc, cc, rc); }

API void MQDISC(PMQHCONN hc, PMQLONG cc, PMQLONG rc) {
  MqsCall call;
  MqsRequest q = {.verb = MQS_DISC};
  MqsReply r = {0};
  if (!mqsEnter(&call, MQS_DISC, *hc, cc, rc)) return;
  mqsAsk(&call, &q, &r);
  if (*cc != MQCC_FAILED || call.conn->over) { /* the handle is gone, also where there was nobody to tell */
    mqsDropConn(&call);
    *hc = MQHC_UNUSABLE_HCONN;
  }
  mqsLeave(&call);
}

/* ---- objects ---- */

static void fromOd(MqsRequest *q, const MQOD *od) {
  q->objectType = od->ObjectType;
  mqsField(q->object, sizeof q->object, od->ObjectName, 48);
  mqsField(q->objectQmgr, sizeof q->objectQmgr, od->ObjectQMgrName, 48);
}

API void MQOPEN(MQHCONN hc, PMQVOID odV, MQLONG options, PMQHOBJ ho, PMQLONG cc, PMQLONG rc) {
  MqsCall call;
  MQOD *od = odV;
  MqsRequest q = {.verb = MQS_OPEN, .options = options};
  MqsReply r = {0};
  if (!mqsEnter(&call, MQS_OPEN, hc, cc, rc)) return;
  *ho = MQHO_UNUSABLE_HOBJ;
  MQLONG reason = mqsCheckOpen(od, options);
  if (reason) {
    mqsResult(&call, MQCC_FAILED, reason);
  } else {
    fromOd(&q, od);
    mqsAsk(&call, &q, &r);
    if (*cc != MQCC_FAILED) {
      *ho = r.hobj;
      if (r.queue[0] && od->Version >= MQOD_VERSION_3) {
        mqsPad(od->ResolvedQName, r.queue, 48);
        mqsPad(od->ResolvedQMgrName, r.qmgr, 48);
      }
    }
  }
  mqsLeave(&call);
}

API void MQCLOSE(MQHCONN hc, PMQHOBJ ho, MQLONG options, PMQLONG cc, PMQLONG rc) {
  MqsCall call;
  MqsRequest q = {.verb = MQS_CLOSE, .hobj = *ho, .options = options};
  MqsReply r = {0};
  if (!mqsEnter(&call, MQS_CLOSE, hc, cc, rc)) return;
  MQLONG reason = mqsCheckClose(options);
  if (reason) {
    mqsResult(&call, MQCC_FAILED, reason);
  } else {
    mqsAsk(&call, &q, &r);
    if (*cc != MQCC_FAILED) *ho = MQHO_UNUSABLE_HOBJ;
  }
  mqsLeave(&call);
}

/* ---- put and get ---- */

/* The application's descriptor keeps its version: the second part only where it has one. */
static void toMd(MQMD *md, const MqsReply *r) {
  MQLONG version = md->Version;
  if (!r->hasMd) return;
  memcpy(md, &r->md, version >= MQMD_VERSION_2 ? MQMD_LENGTH_2 : MQMD_LENGTH_1);
  md->Version = version;
}

static void fromMd(MqsRequest *q, const MQMD *md) {
  memcpy(&q->md, md, md->Version >= MQMD_VERSION_2 ? MQMD_LENGTH_2 : MQMD_LENGTH_1);
}

static void put(MqsCall *call, MqsRequest *q, MQMD *md, MQPMO *pmo, MQLONG length, const void *data) {
  MqsReply r = {0};
  MqsHandle *h = NULL;
  MQLONG reason = mqsCheckPut(md, pmo, length, data);
  if (!reason && pmo->Version >= MQPMO_VERSION_3) {
    if (pmo->Action != MQACTP_NEW || pmo->NewMsgHandle != MQHM_NONE) reason = MQRC_FUNCTION_NOT_SUPPORTED;
    else if (pmo->OriginalMsgHandle != MQHM_NONE && !(h = mqsHandle(call->conn, pmo->OriginalMsgHandle)))
      reason = MQRC_HMSG_ERROR;
  }
  if (reason) {
    mqsResult(call, MQCC_FAILED, reason);
    return;
  }
  q->options = pmo->Options;
  q->length = length;
  q->data = data;
  void *props = h ? mqsPropsPack(&h->props, &q->propsLength) : NULL;
  q->props = props;
  fromMd(q, md);
  mqsAsk(call, q, &r);
  free(props);
  toMd(md, &r);
  if (r.hasMd) {
    mqsPad(pmo->ResolvedQName, r.queue, 48);
    mqsPad(pmo->ResolvedQMgrName, r.qmgr, 48);
  }
}

API void MQPUT(MQHCONN hc, MQHOBJ ho, PMQVOID md, PMQVOID pmo, MQLONG length, PMQVOID data, PMQLONG cc, PMQLONG rc) {
  MqsCall call;
  MqsRequest q = {.verb = MQS_PUT, .hobj = ho};
  if (!mqsEnter(&call, MQS_PUT, hc, cc, rc)) return;
  put(&call, &q, md, pmo, length, data);
  mqsLeave(&call);
}

API void MQPUT1(MQHCONN hc, PMQVOID od, PMQVOID md, PMQVOID pmo, MQLONG length, PMQVOID data, PMQLONG cc, PMQLONG rc) {
  MqsCall call;
  MqsRequest q = {.verb = MQS_PUT1};
  if (!mqsEnter(&call, MQS_PUT1, hc, cc, rc)) return;
  MQLONG reason = mqsCheckOd(od);
  if (reason) {
    mqsResult(&call, MQCC_FAILED, reason);
  } else {
    fromOd(&q, od);
    put(&call, &q, md, pmo, length, data);
  }
  mqsLeave(&call);
}

static void toGmo(MqsCall *call, MQGMO *gmo, const MqsReply *r) {
  if (gmo->Version >= MQGMO_VERSION_4 && gmo->MsgHandle != MQHM_NONE)
    mqsPropsUnpack(&mqsHandle(call->conn, gmo->MsgHandle)->props, r->props, r->propsLength);
  if (gmo->Version >= MQGMO_VERSION_3) gmo->ReturnedLength = r->length;
  if (gmo->Version >= MQGMO_VERSION_2) gmo->GroupStatus = gmo->SegmentStatus = gmo->Segmentation = ' ';
  mqsPad(gmo->ResolvedQName, r->queue, 48);
}

API void MQGET(MQHCONN hc, MQHOBJ ho, PMQVOID mdV, PMQVOID gmoV, MQLONG room, PMQVOID buffer, PMQLONG length,
               PMQLONG cc, PMQLONG rc) {
  MqsCall call;
  MQMD *md = mdV;
  MQGMO *gmo = gmoV;
  MqsRequest q = {.verb = MQS_GET, .hobj = ho, .options = gmo->Options, .wait = gmo->WaitInterval, .room = room};
  MqsReply r = {.buffer = buffer};
  if (!mqsEnter(&call, MQS_GET, hc, cc, rc)) return;
  *length = 0;
  MQLONG reason = mqsCheckGet(md, gmo, room, buffer);
  if (!reason && gmo->Version >= MQGMO_VERSION_4 && gmo->MsgHandle != MQHM_NONE && !mqsHandle(call.conn, gmo->MsgHandle))
    reason = MQRC_HMSG_ERROR;
  if (reason) {
    mqsResult(&call, MQCC_FAILED, reason);
  } else {
    q.match = gmo->Version >= MQGMO_VERSION_2 ? gmo->MatchOptions : MQMO_MATCH_MSG_ID | MQMO_MATCH_CORREL_ID;
    fromMd(&q, md);
    mqsAsk(&call, &q, &r);
    if (*cc != MQCC_FAILED) {
      *length = r.messageLength;
      toMd(md, &r);
      toGmo(&call, gmo, &r);
    }
    free(r.props);
  }
  mqsLeave(&call);
}

/* ---- syncpoint ---- */

static void simple(MQLONG verb, MQHCONN hc, PMQLONG cc, PMQLONG rc) {
  MqsCall call;
  MqsRequest q = {.verb = verb};
  MqsReply r = {0};
  if (!mqsEnter(&call, verb, hc, cc, rc)) return;
  mqsAsk(&call, &q, &r);
  mqsLeave(&call);
}

API void MQCMIT(MQHCONN hc, PMQLONG cc, PMQLONG rc) { simple(MQS_CMIT, hc, cc, rc); }
API void MQBACK(MQHCONN hc, PMQLONG cc, PMQLONG rc) { simple(MQS_BACK, hc, cc, rc); }
