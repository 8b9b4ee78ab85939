/* MQSETMP, MQDLTMP, MQINQMP. */
#define _GNU_SOURCE
#include "client.h"
#include <stdlib.h>
#include <string.h>

/* Reason for a bad name, or 0; the text is in *name (to be freed). */
static MQLONG takeName(const MQCHARV *v, char **name) {
  *name = NULL;
  MQLONG n = v->VSLength;
  const char *s = v->VSPtr;
  if (!s && v->VSOffset) s = (const char *)v + v->VSOffset;
  if (n == MQVS_NULL_TERMINATED && s) n = (MQLONG)strlen(s);
  if (n <= 0 || n > MQ_MAX_PROPERTY_NAME_LENGTH || !s) return MQRC_PROPERTY_NAME_LENGTH_ERR;
  *name = mqsCopy(s, (size_t)n);
  return 0;
}

/* The length a type has, -1: any, -2: no such type. */
static MQLONG lengthOf(MQLONG type) {
  switch (type) {
    case MQTYPE_BOOLEAN: case MQTYPE_INT32: case MQTYPE_FLOAT32: return 4;
    case MQTYPE_INT8: return 1;
    case MQTYPE_INT16: return 2;
    case MQTYPE_INT64: case MQTYPE_FLOAT64: return 8;
    case MQTYPE_STRING: case MQTYPE_BYTE_STRING: return -1;
    case MQTYPE_NULL: return 0;
    default: return -2;
  }
}

static MQLONG checkSet(const MQSMPO *opts, const MQPD *pd, MQLONG type, MQLONG length, const void *value) {
  if (!mqsIs(opts->StrucId, "SMPO") || opts->Version != MQSMPO_VERSION_1) return MQRC_SMPO_ERROR;
  if (pd && (!mqsIs(pd->StrucId, "PD  ") || pd->Version != MQPD_VERSION_1)) return MQRC_PD_ERROR;
  if (lengthOf(type) == -2) return MQRC_PROPERTY_TYPE_ERROR;
  if (length < 0 || (lengthOf(type) >= 0 && length != lengthOf(type))) return MQRC_BUFFER_LENGTH_ERROR;
  if (length > 0 && !value) return MQRC_BUFFER_ERROR;
  return 0;
}

API void MQSETMP(MQHCONN hc, MQHMSG hm, PMQVOID opts, PMQVOID nameV, PMQVOID pdV, MQLONG type, MQLONG length,
                 PMQVOID value, PMQLONG cc, PMQLONG rc) {
  MqsCall call;
  if (!mqsEnter(&call, MQS_SETMP, hc, cc, rc)) return;
  MqsHandle *h = mqsHandle(call.conn, hm);
  const MQPD *pd = pdV;
  char *name = NULL;
  MQLONG reason = h ? checkSet(opts, pd, type, length, value) : MQRC_HMSG_ERROR;
  if (!reason) reason = takeName(nameV, &name);
  if (!reason && (strpbrk(name, " \"%*") || (name[0] >= '0' && name[0] <= '9'))) reason = MQRC_PROPERTY_NAME_ERROR;
  if (reason) {
    mqsResult(&call, MQCC_FAILED, reason);
    free(name);
  } else {
    MqsProp p = {.name = name, .type = type, .length = length, .value = mqsCopy(value, (size_t)length)};
    if (pd) p.options = pd->Options, p.support = pd->Support, p.context = pd->Context, p.copyOptions = pd->CopyOptions;
    mqsPropSet(&h->props, p);
  }
  mqsLeave(&call);
}

API void MQDLTMP(MQHCONN hc, MQHMSG hm, PMQVOID optsV, PMQVOID nameV, PMQLONG cc, PMQLONG rc) {
  MqsCall call;
  if (!mqsEnter(&call, MQS_DLTMP, hc, cc, rc)) return;
  MqsHandle *h = mqsHandle(call.conn, hm);
  const MQDMPO *opts = optsV;
  char *name = NULL;
  MQLONG reason = h ? 0 : MQRC_HMSG_ERROR;
  if (!reason && (!mqsIs(opts->StrucId, "DMPO") || opts->Version != MQDMPO_VERSION_1)) reason = MQRC_DMPO_ERROR;
  if (!reason) reason = takeName(nameV, &name);
  if (reason) {
    mqsResult(&call, MQCC_FAILED, reason);
  } else {
    size_t i = mqsPropIndex(&h->props, name);
    if (i == h->props.count) {
      mqsResult(&call, MQCC_WARNING, MQRC_PROPERTY_NOT_AVAILABLE);
    } else {
      mqsPropDelete(&h->props, i);
      if (h->cursor > i) h->cursor--;
    }
  }
  free(name);
  mqsLeave(&call);
}

static bool nameFits(const char *pattern, const char *name) {
  size_t n = strlen(pattern);
  if (n && pattern[n - 1] == '%') return !strncmp(pattern, name, n - 1);
  return !strcmp(pattern, name);
}

static MQLONG inquire(MqsHandle *h, MQIMPO *impo, const char *name, MQPD *pd, PMQLONG type, MQLONG room, PMQVOID value,
                      PMQLONG length) {
  size_t i = 0, n = h->props.count;
  if (impo->Options & MQIMPO_INQ_PROP_UNDER_CURSOR) {
    if (!h->cursor) return MQRC_PROPERTY_NOT_AVAILABLE;
    i = h->cursor - 1;
  } else {
    if (impo->Options & MQIMPO_INQ_NEXT) i = h->cursor;
    while (i < n && !nameFits(name, h->props.item[i].name)) i++;
    if (i == n) {
      h->cursor = 0;
      return MQRC_PROPERTY_NOT_AVAILABLE;
    }
  }
  h->cursor = i + 1;
  const MqsProp *p = &h->props.item[i];
  size_t got = strlen(p->name);
  MQCHARV *r = &impo->ReturnedName;
  if (r->VSPtr && r->VSBufSize > 0) {
    if (got > (size_t)r->VSBufSize) got = (size_t)r->VSBufSize;
    memcpy(r->VSPtr, p->name, got);
  }
  r->VSLength = (MQLONG)got;
  impo->ReturnedCCSID = 1208;
  impo->ReturnedEncoding = MQENC_NATIVE;
  *type = p->type;
  *length = p->length;
  if (pd) {
    pd->Options = p->options;
    pd->Support = p->support;
    pd->Context = p->context;
    pd->CopyOptions = p->copyOptions;
  }
  if (p->length > room) return MQRC_PROPERTY_VALUE_TOO_BIG;
  if (p->length) memcpy(value, p->value, (size_t)p->length);
  return 0;
}

API void MQINQMP(MQHCONN hc, MQHMSG hm, PMQVOID optsV, PMQVOID nameV, PMQVOID pd, PMQLONG type, MQLONG room,
                 PMQVOID value, PMQLONG length, PMQLONG cc, PMQLONG rc) {
  MqsCall call;
  if (!mqsEnter(&call, MQS_INQMP, hc, cc, rc)) return;
  MqsHandle *h = mqsHandle(call.conn, hm);
  MQIMPO *opts = optsV;
  char *name = NULL;
  MQLONG reason = h ? 0 : MQRC_HMSG_ERROR;
  if (!reason && (!mqsIs(opts->StrucId, "IMPO") || opts->Version != MQIMPO_VERSION_1)) reason = MQRC_IMPO_ERROR;
  if (!reason && room < 0) reason = MQRC_BUFFER_LENGTH_ERROR;
  if (!reason) reason = takeName(nameV, &name);
  if (!reason) reason = inquire(h, opts, name, pd, type, room, value, length);
  if (reason) mqsResult(&call, MQCC_FAILED, reason);
  free(name);
  mqsLeave(&call);
}
