/* Calls mq-golang links but that are not modelled: 2298. */
#include "client.h"

static void absent(MQHCONN hc, PMQLONG cc, PMQLONG rc) {
  MqsCall call;
  if (!mqsEnter(&call, MQS_STAT, hc, cc, rc)) return; /* a bad handle still shows */
  mqsResult(&call, MQCC_FAILED, MQRC_FUNCTION_NOT_SUPPORTED);
  mqsLeave(&call);
}

API void MQBEGIN(MQHCONN hc, PMQVOID bo, PMQLONG cc, PMQLONG rc) {
  (void)bo;
  absent(hc, cc, rc);
}

API void MQSET(MQHCONN hc, MQHOBJ ho, MQLONG n, PMQLONG s, MQLONG ints, PMQLONG i, MQLONG chars, PMQCHAR c, PMQLONG cc,
               PMQLONG rc) {
  (void)ho, (void)n, (void)s, (void)ints, (void)i, (void)chars, (void)c;
  absent(hc, cc, rc);
}

API void MQSUB(MQHCONN hc, PMQVOID sd, PMQHOBJ ho, PMQHOBJ hs, PMQLONG cc, PMQLONG rc) {
  (void)sd, (void)ho, (void)hs;
  absent(hc, cc, rc);
}

API void MQSUBRQ(MQHCONN hc, MQHOBJ hs, MQLONG action, PMQVOID sro, PMQLONG cc, PMQLONG rc) {
  (void)hs, (void)action, (void)sro;
  absent(hc, cc, rc);
}

API void MQCB(MQHCONN hc, MQLONG op, PMQVOID cbd, MQHOBJ ho, PMQVOID md, PMQVOID gmo, PMQLONG cc, PMQLONG rc) {
  (void)op, (void)cbd, (void)ho, (void)md, (void)gmo;
  absent(hc, cc, rc);
}

API void MQCTL(MQHCONN hc, MQLONG op, PMQVOID ctlo, PMQLONG cc, PMQLONG rc) {
  (void)op, (void)ctlo;
  absent(hc, cc, rc);
}
