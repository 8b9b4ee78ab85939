/* Order, units of work, opening, inquiring. */
#include "driver.h"

static void ordering(void) {
  char t[64];
  MQMD md;
  MQHCONN h = connectTo();
  MQHOBJ o = openQ(h, Q1, MQOO_INPUT_AS_Q_DEF | MQOO_BROWSE, &cc, &rc);
  for (int i = 0; i < 5; i++) {
    snprintf(t, sizeof t, "m%d", i);
    OK(put(h, Q1, t, MQPMO_NO_SYNCPOINT));
  }
  OK(putAs(h, Q1, "urgent", MQPMO_NO_SYNCPOINT, 9, MQEI_UNLIMITED, MQPER_PERSISTENT, &cc, &rc));
  CHECK(!strcmp(got(h, o), "urgent") && !strcmp(got(h, o), "m0") && !strcmp(got(h, o), "m1"));
  CHECK(mqstandin_uncommitted() == 3);
  OK(put(h, Q1, "late", MQPMO_NO_SYNCPOINT));
  OK(MQBACK(h, &cc, &rc));
  CHECK(mqstandin_uncommitted() == 0);
  const char *want[] = {"urgent", "m0", "m1", "m2", "m3", "m4", "late"};
  for (int i = 0; i < 7; i++) {
    md = newMd();
    OK(get(h, o, i ? MQGMO_BROWSE_NEXT : MQGMO_BROWSE_FIRST, 0, t, 64, &md, &cc, &rc));
    CHECK(!strcmp(t, want[i]) && md.BackoutCount == (i < 3));
  }
  OK(get(h, o, MQGMO_MSG_UNDER_CURSOR | MQGMO_NO_SYNCPOINT, 0, t, 64, NULL, &cc, &rc));
  CHECK(!strcmp(t, "late"));
  FAILS(get(h, o, MQGMO_MSG_UNDER_CURSOR | MQGMO_NO_SYNCPOINT, 0, t, 64, NULL, &cc, &rc), MQRC_NO_MSG_UNDER_CURSOR);
  GIVES(get(h, o, MQGMO_NO_SYNCPOINT, 0, t, 3, NULL, &cc, &rc), MQCC_WARNING, MQRC_TRUNCATED_MSG_FAILED);
  GIVES(get(h, o, MQGMO_NO_SYNCPOINT | MQGMO_ACCEPT_TRUNCATED_MSG, 0, t, 3, NULL, &cc, &rc), MQCC_WARNING,
        MQRC_TRUNCATED_MSG_ACCEPTED);
  CHECK(!strcmp(t, "ur"));
  for (int i = 0; i < 5; i++) CHECK(!strcmp(got(h, o), want[i + 1]));
  CHECK(!strcmp(got(h, o), "2033"));
  OK(MQCMIT(h, &cc, &rc));
  CHECK(mqstandin_available(Q1) == 0 && !strcmp(got(h, o), "2033"));
  /* puts under syncpoint show at commit only */
  OK(put(h, Q1, "p", MQPMO_SYNCPOINT));
  CHECK(!strcmp(got(h, o), "2033"));
  OK(MQBACK(h, &cc, &rc));
  CHECK(mqstandin_available(Q1) == 0);
  /* expiry */
  OK(putAs(h, Q1, "brief", MQPMO_NO_SYNCPOINT, 4, 1, MQPER_PERSISTENT, &cc, &rc));
  OK(putAs(h, Q1, "not so", MQPMO_NO_SYNCPOINT, 4, 600, MQPER_PERSISTENT, &cc, &rc));
  usleep(150000); /* expiry is time that really passes, in tenths of a second */
  md = newMd();
  OK(get(h, o, MQGMO_NO_SYNCPOINT, 0, t, 64, &md, &cc, &rc));
  CHECK(!strcmp(t, "not so") && md.Expiry > 500 && md.Expiry < 600 && md.Version == MQMD_VERSION_1);
  CHECK(!strcmp(got(h, o), "2033"));
  OK(MQDISC(&h, &cc, &rc));
}

static void disconnecting(void) {
  MQHCONN h = connectTo(), was = h;
  OK(put(h, Q1, "kept", MQPMO_SYNCPOINT));
  OK(MQDISC(&h, &cc, &rc)); /* commits what is open */
  CHECK(h == MQHC_UNUSABLE_HCONN && mqstandin_available(Q1) == 1);
  FAILS(MQCMIT(was, &cc, &rc), MQRC_HCONN_ERROR);
  mqstandin_disc_backs_out(1);
  h = connectTo();
  CHECK(h != was); /* a handle is not given again: stale ones show */
  FAILS(MQCMIT(was, &cc, &rc), MQRC_HCONN_ERROR);
  OK(put(h, Q1, "lost", MQPMO_SYNCPOINT));
  OK(MQDISC(&h, &cc, &rc));
  CHECK(mqstandin_available(Q1) == 1);
  mqstandin_reset();
  CHECK(mqstandin_available(Q1) == 0 && mqstandin_connections() == 0);
}

static void opening(void) {
  MQHCONN h = connectTo(), h2 = connectTo();
  openQ(h, "NO.SUCH", MQOO_OUTPUT, &cc, &rc);
  CHECK(cc == MQCC_FAILED && rc == MQRC_UNKNOWN_OBJECT_NAME);
  MQHOBJ o = openQ(h, Q2, MQOO_INPUT_EXCLUSIVE, &cc, &rc);
  CHECK(!cc);
  openQ(h2, Q2, MQOO_INPUT_SHARED, &cc, &rc);
  CHECK(rc == MQRC_OBJECT_IN_USE);
  OK(MQCLOSE(h, &o, 0, &cc, &rc));
  CHECK(o == MQHO_UNUSABLE_HOBJ);
  FAILS(MQCLOSE(h, &o, 0, &cc, &rc), MQRC_HOBJ_ERROR);
  o = openQ(h2, Q2, MQOO_INPUT_SHARED | MQOO_INQUIRE, &cc, &rc);
  openQ(h, Q2, MQOO_INPUT_EXCLUSIVE, &cc, &rc);
  CHECK(rc == MQRC_OBJECT_IN_USE);
  CHECK(mqstandin_define(Q2 ":maxdepth=2:bothresh=3:boqname=" Q2 ".BACKOUT") == 0);
  CHECK(mqstandin_define("X:nonsense=1") == -1 && mqstandin_define("X:maxdepth=-1") == -1);
  for (int i = 0; i < 2; i++) OK(put(h, Q2, "x", MQPMO_SYNCPOINT));
  FAILS(put(h, Q2, "x", MQPMO_SYNCPOINT), MQRC_Q_FULL);
  MQLONG sel[] = {MQIA_CURRENT_Q_DEPTH, MQCA_BACKOUT_REQ_Q_NAME, MQIA_BACKOUT_THRESHOLD, MQIA_OPEN_INPUT_COUNT}, v[3];
  char name[48];
  OK(MQINQ(h2, o, 4, sel, 3, v, 48, name, &cc, &rc));
  CHECK(v[0] == 2 && v[1] == 3 && v[2] == 1 && !strncmp(name, Q2 ".BACKOUT  ", 21));
  FAILS(MQINQ(h2, o, 4, sel, 2, v, 48, name, &cc, &rc), MQRC_INT_ATTR_COUNT_TOO_SMALL);
  FAILS(MQINQ(h2, o, 4, sel, 3, v, 47, name, &cc, &rc), MQRC_CHAR_ATTRS_TOO_SHORT);
  /* a get counts at once, and gives its place on a full queue away */
  OK(MQCMIT(h, &cc, &rc));
  CHECK(!strcmp(got(h2, o), "x"));
  OK(MQINQ(h2, o, 1, sel, 1, v, 0, NULL, &cc, &rc));
  CHECK(v[0] == 1);
  OK(put(h, Q2, "y", MQPMO_SYNCPOINT));
  OK(MQBACK(h2, &cc, &rc));
  OK(MQINQ(h2, o, 1, sel, 1, v, 0, NULL, &cc, &rc));
  CHECK(v[0] == 3);
  OK(MQDISC(&h2, &cc, &rc)); /* closes what is open */
  openQ(h, Q2, MQOO_INPUT_EXCLUSIVE, &cc, &rc);
  CHECK(!cc);
  OK(MQBACK(h, &cc, &rc));
  OK(MQDISC(&h, &cc, &rc));
  CHECK(mqstandin_define(Q2 ":maxdepth=5000") == 0);
  mqstandin_reset();
}

/* Attributes that change who may open, and in which order messages come. */
static void attributes(void) {
  MQHCONN h = connectTo(), h2 = connectTo();
  CHECK(mqstandin_define("LOCK:noshare,LINE:fifo,DEF.EXCL:excl,SECRET:auth=p") == 0);
  openQ(h, "LOCK", MQOO_INPUT_SHARED, &cc, &rc);
  openQ(h2, "LOCK", MQOO_INPUT_SHARED, &cc, &rc);
  CHECK(rc == MQRC_OBJECT_IN_USE);
  openQ(h2, "LOCK", MQOO_OUTPUT, &cc, &rc);
  CHECK(!cc);
  openQ(h, "DEF.EXCL", MQOO_INPUT_AS_Q_DEF, &cc, &rc);
  openQ(h2, "DEF.EXCL", MQOO_INPUT_AS_Q_DEF, &cc, &rc);
  CHECK(rc == MQRC_OBJECT_IN_USE);
  MQHOBJ o = openQ(h, "LINE", MQOO_INPUT_SHARED, &cc, &rc);
  for (int i = 0; i < 3; i++) OK(putAs(h, "LINE", (char[]){'0' + i, 0}, 0, 3 * i, MQEI_UNLIMITED, 1, &cc, &rc));
  CHECK(!strcmp(got(h, o), "0") && !strcmp(got(h, o), "1") && !strcmp(got(h, o), "2"));
  openQ(h, "SECRET", MQOO_INPUT_SHARED, &cc, &rc);
  CHECK(rc == MQRC_NOT_AUTHORIZED);
  openQ(h, "SECRET", MQOO_OUTPUT, &cc, &rc);
  CHECK(!cc);
  CHECK(mqstandin_define("SECRET:auth=gbi") == 0);
  FAILS(put(h, "SECRET", "x", 0), MQRC_NOT_AUTHORIZED);
  GIVES(putAs(h, "LINE", "x", 0, 10, MQEI_UNLIMITED, 1, &cc, &rc), MQCC_WARNING, MQRC_PRIORITY_EXCEEDS_MAXIMUM);
  OK(MQDISC(&h, &cc, &rc));
  OK(MQDISC(&h2, &cc, &rc));
}

void semantics(void) {
  ordering();
  disconnecting();
  opening();
  attributes();
}
