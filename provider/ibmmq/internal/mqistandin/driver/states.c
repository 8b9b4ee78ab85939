/* Asynchronous puts, matching, what a browse sees, handles shared with blocking. */
#include "driver.h"

static void async(void) {
  MQHCONN h = connectTo();
  MQSTS sts = {.StrucId = "STAT", .Version = 1};
  mqstandin_define("SMALL:maxdepth=1");
  OK(put(h, "SMALL", "1", MQPMO_ASYNC_RESPONSE | MQPMO_SYNCPOINT));
  OK(put(h, "SMALL", "2", MQPMO_ASYNC_RESPONSE | MQPMO_SYNCPOINT));
  OK(MQSTAT(h, MQSTAT_TYPE_ASYNC_ERROR, &sts, &cc, &rc));
  CHECK(sts.PutSuccessCount == 1 && sts.PutFailureCount == 1 && sts.Reason == MQRC_Q_FULL && sts.CompCode == MQCC_FAILED);
  CHECK(!strncmp(sts.ObjectName, "SMALL ", 6));
  OK(MQSTAT(h, MQSTAT_TYPE_ASYNC_ERROR, &sts, &cc, &rc));
  CHECK(sts.PutSuccessCount == 0 && sts.PutFailureCount == 0 && sts.Reason == 0);
  GIVES(MQCMIT(h, &cc, &rc), MQCC_WARNING, MQRC_BACKED_OUT);
  CHECK(mqstandin_available("SMALL") == 0);
  FAILS(MQSTAT(h, MQSTAT_TYPE_RECONNECTION, &sts, &cc, &rc), MQRC_STAT_TYPE_ERROR);
  OK(MQDISC(&h, &cc, &rc));
}

static void matching(void) {
  char t[64];
  MQHCONN h = connectTo();
  MQHOBJ o = openQ(h, Q1, MQOO_INPUT_SHARED | MQOO_OUTPUT | MQOO_BROWSE, &cc, &rc);
  MQBYTE ids[3][24];
  MQLONG length;
  for (int i = 0; i < 3; i++) {
    MQMD md = newMd();
    MQPMO pmo = {.StrucId = "PMO", .Version = 1, .Options = MQPMO_NEW_MSG_ID};
    md.CorrelId[0] = (MQBYTE)('a' + i);
    OK(MQPUT(h, o, &md, &pmo, 1, (char[]){'0' + i}, &cc, &rc));
    memcpy(ids[i], md.MsgId, 24);
    CHECK(md.PutDate[0] == '2' && md.Priority == 0);
  }
  CHECK(memcmp(ids[0], ids[1], 24));
  MQGMO gmo = {.StrucId = "GMO", .Version = 2, .MatchOptions = MQMO_MATCH_MSG_ID};
  MQMD md = newMd();
  memcpy(md.MsgId, ids[2], 24);
  OK(MQGET(h, o, &md, &gmo, 64, t, &length, &cc, &rc));
  CHECK(t[0] == '2');
  FAILS(MQGET(h, o, &md, &gmo, 64, t, &length, &cc, &rc), MQRC_NO_MSG_AVAILABLE);
  gmo.MatchOptions = MQMO_MATCH_CORREL_ID;
  md.CorrelId[0] = 'b';
  OK(MQGET(h, o, &md, &gmo, 64, t, &length, &cc, &rc));
  CHECK(t[0] == '1');
  gmo.MatchOptions = MQMO_NONE; /* the ids in the descriptor do not matter */
  OK(MQGET(h, o, &md, &gmo, 64, t, &length, &cc, &rc));
  CHECK(t[0] == '0');
  /* the descriptor keeps the version it came with, whatever the message was put with */
  MQMD v2 = newMd(), v1 = newMd();
  MQPMO pmo = {.StrucId = "PMO", .Version = 1};
  v2.Version = MQMD_VERSION_2;
  OK(MQPUT(h, o, &v2, &pmo, 0, NULL, &cc, &rc));
  OK(MQPUT(h, o, &v1, &pmo, 0, NULL, &cc, &rc));
  OK(MQGET(h, o, &v1, &gmo, 64, t, &length, &cc, &rc));
  OK(MQGET(h, o, &v2, &gmo, 64, t, &length, &cc, &rc));
  CHECK(v1.Version == MQMD_VERSION_1 && v2.Version == MQMD_VERSION_2 && v2.MsgSeqNumber == 1);
  /* browsing skips what others hold, and a message longer than the channel allows stays */
  OK(put(h, Q1, "a", 0));
  OK(put(h, Q1, "b", 0));
  CHECK(!strcmp(got(h, o), "a"));
  OK(get(h, o, MQGMO_BROWSE_FIRST, 0, t, 64, NULL, &cc, &rc));
  CHECK(t[0] == 'b' && mqstandin_available(Q1) == 1);
  FAILS(get(h, o, MQGMO_BROWSE_NEXT, 0, t, 64, NULL, &cc, &rc), MQRC_NO_MSG_AVAILABLE);
  OK(MQBACK(h, &cc, &rc));
  mqstandin_reset();
  OK(MQDISC(&h, &cc, &rc));
}

static MQHCONN shared;

static void *commitShared(void *unused) {
  MQLONG c, r;
  (void)unused;
  MQCMIT(shared, &c, &r);
  return (void *)(intptr_t)r;
}

/* MQCNO_HANDLE_SHARE_BLOCK: a second call waits its turn. */
static void blocking(void) {
  pthread_t a, b;
  void *ra, *rb;
  MQCNO cno = {.StrucId = "CNO", .Version = MQCNO_VERSION_1, .Options = MQCNO_HANDLE_SHARE_BLOCK};
  OK(MQCONNX("QM1", &cno, &shared, &cc, &rc));
  mqstandin_hold("MQCMIT", 0);
  pthread_create(&a, NULL, commitShared, NULL);
  SOON(mqstandin_held() == 1);
  pthread_create(&b, NULL, commitShared, NULL);
  usleep(20000); /* time for the second to go wrong */
  mqstandin_release();
  pthread_join(a, &ra);
  pthread_join(b, &rb);
  CHECK(!ra && !rb && mqstandin_calls("MQCMIT") == 2);
  OK(MQDISC(&shared, &cc, &rc));
}

/* 10,000 messages are the most in one unit of work. */
static void limit(void) {
  MQHCONN h = connectTo();
  mqstandin_define("BIG:maxdepth=20000:maxmsgl=10");
  for (int i = 0; i < 10000; i++) OK(put(h, "BIG", "x", MQPMO_SYNCPOINT));
  FAILS(put(h, "BIG", "x", MQPMO_SYNCPOINT), MQRC_SYNCPOINT_LIMIT_REACHED);
  FAILS(put(h, "BIG", "12345678901", 0), MQRC_MSG_TOO_BIG_FOR_Q);
  OK(MQBACK(h, &cc, &rc));
  CHECK(mqstandin_available("BIG") == 0);
  OK(MQDISC(&h, &cc, &rc));
}

void states(void) {
  mqstandin_reset();
  async();
  matching();
  blocking();
  limit();
  CHECK(mqstandin_available("NO.SUCH") == -1 && mqstandin_calls("NOCALL") == -1);
}
