/* Broken connections, lost answers, what the queue manager keeps meanwhile. */
#include "driver.h"

static void *commit(void *arg) {
  MQLONG c, *out = arg;
  MQCMIT(out[0], &c, &out[1]);
  return NULL;
}

static MQLONG inputCount(MQHCONN h) {
  MQLONG n = -1, sel = MQIA_OPEN_INPUT_COUNT;
  MQHOBJ o = openQ(h, Q1, MQOO_INQUIRE, &cc, &rc);
  OK(MQINQ(h, o, 1, &sel, 1, &n, 0, NULL, &cc, &rc));
  OK(MQCLOSE(h, &o, 0, &cc, &rc));
  return n;
}

/* The answer to a commit is lost: done. The answer to a get: the message stays
 * locked, the handle counts, until the queue manager notices. */
static void lostAnswers(MQHCONN other, MQHOBJ theirs) {
  MQHCONN h = connectTo();
  MQHOBJ o = openQ(h, Q1, MQOO_INPUT_SHARED, &cc, &rc);
  OK(put(other, Q1, "f", 0));
  CHECK(!strcmp(got(h, o), "f"));
  mqstandin_fail_next("MQCMIT", MQRC_BACKED_OUT, 1);
  GIVES(MQCMIT(h, &cc, &rc), MQCC_WARNING, MQRC_BACKED_OUT);
  char t[64];
  MQMD md = newMd();
  OK(get(h, o, MQGMO_SYNCPOINT, 0, t, 64, &md, &cc, &rc));
  CHECK(md.BackoutCount == 1);
  mqstandin_fail_after("MQCMIT", MQRC_CONNECTION_BROKEN, 1);
  FAILS(MQCMIT(h, &cc, &rc), MQRC_CONNECTION_BROKEN);
  FAILS(MQCMIT(h, &cc, &rc), MQRC_CONNECTION_BROKEN);
  CHECK(mqstandin_available(Q1) == 0 && mqstandin_uncommitted() == 0 && mqstandin_calls("MQCMIT") == 2);
  FAILS(MQDISC(&h, &cc, &rc), MQRC_CONNECTION_BROKEN);
  CHECK(h == MQHC_UNUSABLE_HCONN && mqstandin_unnoticed() == 0);

  h = connectTo();
  o = openQ(h, Q1, MQOO_INPUT_SHARED, &cc, &rc);
  OK(put(other, Q1, "1", 0));
  OK(put(other, Q1, "2", 0));
  mqstandin_detect_after(-1);
  mqstandin_fail_after("MQGET", MQRC_CONNECTION_BROKEN, 1);
  CHECK(!strcmp(got(h, o), "2009"));
  FAILS(MQDISC(&h, &cc, &rc), MQRC_CONNECTION_BROKEN);
  CHECK(mqstandin_unnoticed() == 1 && mqstandin_connections() == 2 && inputCount(other) == 2);
  CHECK(!strcmp(got(other, theirs), "2")); /* 1 is locked */
  CHECK(mqstandin_notice() == 1 && mqstandin_unnoticed() == 0 && inputCount(other) == 1);
  CHECK(!strcmp(got(other, theirs), "1")); /* late, out of order */
  OK(MQCMIT(other, &cc, &rc));

  /* a request that is lost before it took effect, noticed at once */
  mqstandin_detect_after(0);
  h = connectTo();
  OK(put(h, Q1, "p", MQPMO_SYNCPOINT));
  mqstandin_fail_next("MQCMIT", MQRC_CONNECTION_BROKEN, 1);
  FAILS(MQCMIT(h, &cc, &rc), MQRC_CONNECTION_BROKEN);
  CHECK(mqstandin_available(Q1) == 0 && mqstandin_uncommitted() == 0);
  FAILS(MQDISC(&h, &cc, &rc), MQRC_CONNECTION_BROKEN);
  mqstandin_fail_next("MQCONNX", MQRC_HOST_NOT_AVAILABLE, 2);
  for (int i = 0; i < 2; i++) FAILS(MQCONN("QM1", &h, &cc, &rc), MQRC_HOST_NOT_AVAILABLE);
  OK(MQCONN("QM1", &h, &cc, &rc));
  mqstandin_fail_next("MQDISC", MQRC_UNEXPECTED_ERROR, 1);
  FAILS(MQDISC(&h, &cc, &rc), MQRC_UNEXPECTED_ERROR);
  OK(MQDISC(&h, &cc, &rc));
}

/* Only the client knows: messages, handles, and a waiting get that still takes. */
static void unnoticed(MQHCONN other, MQHOBJ theirs) {
  pthread_t t;
  MQHCONN h = connectTo();
  MQHOBJ o = openQ(h, Q1, MQOO_INPUT_SHARED, &cc, &rc);
  OK(put(other, Q1, "1", 0));
  OK(put(other, Q1, "2", 0));
  CHECK(!strcmp(got(h, o), "1"));
  mqstandin_detect_after(-1);
  CHECK(mqstandin_break_oldest(5, 0) == 1);
  FAILS(MQCMIT(h, &cc, &rc), MQRC_CONNECTION_BROKEN);
  CHECK(mqstandin_uncommitted() == 1 && !strcmp(got(other, theirs), "2"));
  MQDISC(&h, &cc, &rc);
  mqstandin_notice();
  CHECK(mqstandin_uncommitted() == 1 && mqstandin_available(Q1) == 1);
  CHECK(!strcmp(got(other, theirs), "1"));
  OK(MQCMIT(other, &cc, &rc));

  Getter g = {.h = connectTo(), .options = MQGMO_WAIT | MQGMO_SYNCPOINT, .wait = MQWI_UNLIMITED, .want = 1};
  pthread_create(&t, NULL, getter, &g);
  SOON(mqstandin_waiters(Q1) == 1);
  CHECK(mqstandin_break("no such application", 0) == 0);
  CHECK(mqstandin_break(NULL, 0) == 2);
  pthread_join(t, NULL);
  CHECK(g.rc == MQRC_CONNECTION_BROKEN);
  h = connectTo();
  SOON(mqstandin_waiters(Q1) == 0);
  OK(put(h, Q1, "3", 0)); /* the get nobody waits for has it */
  CHECK(mqstandin_available(Q1) == 0 && mqstandin_uncommitted() == 1);
  CHECK(mqstandin_notice() == 2 && mqstandin_available(Q1) == 1);
  MQDISC(&g.h, &cc, &rc);
  OK(MQDISC(&h, &cc, &rc));
  mqstandin_reset();

  /* noticed before anything came: the get is over */
  g = (Getter){.h = connectTo(), .options = MQGMO_WAIT | MQGMO_SYNCPOINT, .wait = MQWI_UNLIMITED, .want = 1};
  pthread_create(&t, NULL, getter, &g);
  SOON(mqstandin_waiters(Q1) == 1);
  mqstandin_detect_after(-1);
  CHECK(mqstandin_break(NULL, 0) == 1 && mqstandin_notice() == 1);
  pthread_join(t, NULL);
  MQDISC(&g.h, &cc, &rc);
  SOON(mqstandin_waiters(Q1) == 0);
  h = connectTo();
  OK(put(h, Q1, "for whom", 0));
  CHECK(mqstandin_available(Q1) == 1 && mqstandin_uncommitted() == 0);
  OK(MQDISC(&h, &cc, &rc));
  mqstandin_reset();

  /* so is one whose own time has passed */
  g = (Getter){.h = connectTo(), .options = MQGMO_WAIT | MQGMO_SYNCPOINT, .wait = 200, .want = 1};
  pthread_create(&t, NULL, getter, &g);
  SOON(mqstandin_waiters(Q1) == 1);
  mqstandin_detect_after(-1);
  CHECK(mqstandin_break(NULL, 0) == 1);
  pthread_join(t, NULL);
  MQDISC(&g.h, &cc, &rc);
  usleep(250000); /* longer than that get would wait */
  h = connectTo();
  OK(put(h, Q1, "too late", 0));
  CHECK(mqstandin_available(Q1) == 1);
  OK(MQDISC(&h, &cc, &rc));
  mqstandin_reset();

  /* its own time: noticed without being told */
  h = connectTo();
  OK(put(h, Q1, "4", MQPMO_SYNCPOINT));
  mqstandin_detect_after(50);
  mqstandin_break(NULL, 0);
  CHECK(mqstandin_unnoticed() == 1 && mqstandin_uncommitted() == 1);
  SOON(mqstandin_unnoticed() == 0);
  CHECK(mqstandin_uncommitted() == 0 && mqstandin_available(Q1) == 0);
  FAILS(MQDISC(&h, &cc, &rc), MQRC_CONNECTION_BROKEN);
  mqstandin_reset();
}

/* Calls that hang: before they do anything, or with all done. */
static void held(void) {
  pthread_t t;
  MQHCONN h = connectTo(), other = connectTo();
  MQHOBJ o = openQ(h, Q1, MQOO_INPUT_SHARED, &cc, &rc);
  for (int after = 0; after < 2; after++) {
    OK(put(other, Q1, "h", 0));
    CHECK(!strcmp(got(h, o), "h"));
    CHECK(mqstandin_hold("MQCMIT", after) == 0);
    MQLONG call[2] = {h, -1};
    pthread_create(&t, NULL, commit, call);
    SOON(mqstandin_held() == 1);
    CHECK(mqstandin_uncommitted() == !after);
    FAILS(MQBACK(h, &cc, &rc), MQRC_CALL_IN_PROGRESS);
    usleep(20000); /* nothing but a release ends it */
    CHECK(mqstandin_held() == 1);
    CHECK(mqstandin_release() == 0);
    pthread_join(t, NULL);
    CHECK(call[1] == MQRC_NONE && mqstandin_held() == 0 && mqstandin_uncommitted() == 0);
  }
  CHECK(mqstandin_hold("MQINQMP", 0) == -1 && mqstandin_hold("NOCALL", 0) == -1);

  /* broken while it hangs, before it began: it never began */
  OK(put(other, Q1, "h", 0));
  CHECK(!strcmp(got(h, o), "h"));
  mqstandin_hold("MQCMIT", 0);
  MQLONG call[2] = {h, -1};
  pthread_create(&t, NULL, commit, call);
  SOON(mqstandin_held() == 1);
  mqstandin_break_oldest(1, 1);
  CHECK(mqstandin_available(Q1) == 1);
  mqstandin_release();
  pthread_join(t, NULL);
  CHECK(call[1] == MQRC_CONNECTION_BROKEN && mqstandin_available(Q1) == 1);
  MQDISC(&h, &cc, &rc);
  OK(MQDISC(&other, &cc, &rc));
}

/* The queue manager takes a unit of work back; the application hears late. */
static void backedOut(void) {
  MQHCONN h = connectTo(), other = connectTo();
  MQHOBJ o = openQ(h, Q1, MQOO_INPUT_SHARED, &cc, &rc), theirs = openQ(other, Q1, MQOO_INPUT_SHARED, &cc, &rc);
  mqstandin_reset();
  for (int how = 0; how < 3; how++) {
    OK(put(other, Q1, "x", 0));
    CHECK(!strcmp(got(h, o), "x"));
    CHECK(mqstandin_back_out(9) == 1 && mqstandin_back_out(9) == 0);
    CHECK(!strcmp(got(other, theirs), "x")); /* another has it before the first one knows */
    OK(MQCMIT(other, &cc, &rc));
    if (how == 0) GIVES(MQCMIT(h, &cc, &rc), MQCC_WARNING, MQRC_BACKED_OUT);
    if (how == 1) OK(MQBACK(h, &cc, &rc));
    if (how == 2) {
      CHECK(!strcmp(got(h, o), "2003"));
      FAILS(put(h, Q1, "y", MQPMO_SYNCPOINT), MQRC_BACKED_OUT);
      OK(put(h, Q2, "outside", MQPMO_NO_SYNCPOINT));
      OK(MQBACK(h, &cc, &rc));
    }
    OK(MQCMIT(h, &cc, &rc));
  }
  /* the oldest first */
  for (int i = 0; i < 2; i++) OK(put(i ? other : h, Q1, "u", MQPMO_SYNCPOINT));
  CHECK(mqstandin_back_out(1) == 1);
  OK(MQCMIT(other, &cc, &rc));
  GIVES(MQCMIT(h, &cc, &rc), MQCC_WARNING, MQRC_BACKED_OUT);
  /* a get that fails with 2003 has lost its unit of work too */
  mqstandin_reset();
  OK(put(h, Q1, "v", MQPMO_SYNCPOINT));
  mqstandin_fail_next("MQGET", MQRC_BACKED_OUT, 1);
  CHECK(!strcmp(got(h, o), "2003") && !strcmp(got(h, o), "2003") && mqstandin_uncommitted() == 0);
  GIVES(MQCMIT(h, &cc, &rc), MQCC_WARNING, MQRC_BACKED_OUT);
  CHECK(!strcmp(got(h, o), "2033"));
  OK(MQDISC(&h, &cc, &rc));
  OK(MQDISC(&other, &cc, &rc));
}

void losses(void) {
  mqstandin_reset();
  MQHCONN other = connectTo();
  MQHOBJ theirs = openQ(other, Q1, MQOO_INPUT_SHARED, &cc, &rc);
  lostAnswers(other, theirs);
  unnoticed(other, theirs);
  MQDISC(&other, &cc, &rc);
  held();
  backedOut();
  CHECK(mqstandin_connections() == 0);
}
