/* MQINQ and MQSTAT, on the application's side. */
#include "client.h"
#include <stdlib.h>
#include <string.h>

API void MQINQ(MQHCONN hc, MQHOBJ ho, MQLONG n, PMQLONG selector, MQLONG ints, PMQLONG intOut, MQLONG chars,
               PMQCHAR charOut, PMQLONG cc, PMQLONG rc) {
  MqsCall call;
  if (!mqsEnter(&call, MQS_INQ, hc, cc, rc)) return;
  MQLONG reason = 0;
  if (n < 0 || n > 256) reason = n < 0 ? MQRC_SELECTOR_COUNT_ERROR : MQRC_SELECTOR_LIMIT_EXCEEDED;
  else if (ints < 0) reason = MQRC_INT_ATTR_COUNT_ERROR;
  else if (chars < 0) reason = MQRC_CHAR_ATTR_LENGTH_ERROR;
  if (reason) {
    mqsResult(&call, MQCC_FAILED, reason);
  } else {
    size_t intBytes = (size_t)ints * sizeof *intOut, all = intBytes + (size_t)chars;
    char *both = mqsAlloc(all);
    MqsRequest q = {.verb = MQS_INQ, .hobj = ho, .data = selector, .length = n * (MQLONG)sizeof *selector,
                    .ints = ints, .chars = chars, .room = (MQLONG)all};
    MqsReply r = {.buffer = both};
    mqsAsk(&call, &q, &r);
    if (*cc != MQCC_FAILED) {
      if (intBytes) memcpy(intOut, both, intBytes);
      if (chars) memcpy(charOut, both + intBytes, (size_t)chars);
    }
    free(both);
  }
  mqsLeave(&call);
}

API void MQSTAT(MQHCONN hc, MQLONG type, PMQVOID stsV, PMQLONG cc, PMQLONG rc) {
  MqsCall call;
  MQSTS *sts = stsV, a = {0};
  MqsRequest q = {.verb = MQS_STAT, .room = sizeof a};
  MqsReply r = {.buffer = &a};
  if (!mqsEnter(&call, MQS_STAT, hc, cc, rc)) return;
  if (type != MQSTAT_TYPE_ASYNC_ERROR) {
    mqsResult(&call, MQCC_FAILED, MQRC_STAT_TYPE_ERROR);
  } else if (!mqsIs(sts->StrucId, "STAT") || sts->Version < MQSTS_VERSION_1 || sts->Version > MQSTS_VERSION_2) {
    mqsResult(&call, MQCC_FAILED, MQRC_STS_ERROR);
  } else {
    mqsAsk(&call, &q, &r);
    if (*cc != MQCC_FAILED) {
      sts->CompCode = a.CompCode;
      sts->Reason = a.Reason;
      sts->PutSuccessCount = a.PutSuccessCount;
      sts->PutWarningCount = a.PutWarningCount;
      sts->PutFailureCount = a.PutFailureCount;
      sts->ObjectType = a.ObjectType;
      memcpy(sts->ObjectName, a.ObjectName, 48);
    }
  }
  mqsLeave(&call);
}
