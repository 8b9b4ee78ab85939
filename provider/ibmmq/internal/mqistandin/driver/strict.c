/* Calls a real queue manager refuses must fail here too. */
#include "driver.h"
#include <cmqxc.h>

#define CNO(change, reason)                                                          \
  do {                                                                               \
    MQCD cd = {.Version = MQCD_VERSION_11, .StrucLength = MQCD_LENGTH_11, .ChannelType = MQCHT_CLNTCONN, \
               .TransportType = MQXPT_TCP, .ChannelName = "DEV.APP.SVRCONN"};        \
    MQCSP csp = {.StrucId = "CSP", .Version = 1};                                    \
    MQSCO sco = {.StrucId = "SCO", .Version = 1};                                    \
    MQCNO cno = {.StrucId = "CNO", .Version = MQCNO_VERSION_5, .ClientConnPtr = &cd, .SecurityParmsPtr = &csp, \
                 .SSLConfigPtr = &sco};                                              \
    MQHCONN no;                                                                      \
    change;                                                                          \
    FAILS(MQCONNX("QM1", &cno, &no, &cc, &rc), reason);                              \
  } while (0)

#define OPEN(options, reason) \
  do { openQ(h, Q1, options, &cc, &rc); CHECK(cc == MQCC_FAILED && rc == (reason)); } while (0)

#define OD(change, options, reason)                                                        \
  do {                                                                                     \
    MQOD od = {.StrucId = "OD", .Version = 1, .ObjectType = MQOT_Q, .ObjectName = Q1};     \
    MQHOBJ no;                                                                             \
    change;                                                                                \
    FAILS(MQOPEN(h, &od, options, &no, &cc, &rc), reason);                                 \
  } while (0)

#define PUT(change, reason)                                                      \
  do {                                                                           \
    MQMD md = newMd();                                                           \
    MQPMO pmo = {.StrucId = "PMO", .Version = 1};                                \
    MQLONG length = 1;                                                           \
    void *data = "x";                                                            \
    change;                                                                      \
    FAILS(MQPUT(h, out, &md, &pmo, length, data, &cc, &rc), reason);             \
  } while (0)

#define GET(change, reason)                                                      \
  do {                                                                           \
    MQMD md = newMd();                                                           \
    MQGMO gmo = {.StrucId = "GMO", .Version = 2};                                \
    MQLONG room = 8, length;                                                     \
    char text[8];                                                                \
    void *buffer = text;                                                         \
    change;                                                                      \
    FAILS(MQGET(h, in, &md, &gmo, room, buffer, &length, &cc, &rc), reason);     \
  } while (0)

static void connecting(void) {
  CNO(cno.StrucId[0] = 'X', MQRC_CNO_ERROR);
  CNO(cno.Version = 9, MQRC_CNO_ERROR);
  CNO(cno.Options = 1 << 30, MQRC_OPTIONS_ERROR);
  CNO(cno.Options = MQCNO_HANDLE_SHARE_BLOCK | MQCNO_HANDLE_SHARE_NO_BLOCK, MQRC_OPTIONS_ERROR);
  CNO(cno.Options = MQCNO_RECONNECT, MQRC_FUNCTION_NOT_SUPPORTED);
  CNO(cd.Version = 13, MQRC_CD_ERROR);
  CNO(cd.StrucLength = 1, MQRC_CD_ERROR);
  CNO(cd.ChannelType = MQCHT_SENDER, MQRC_CD_ERROR);
  CNO(cd.TransportType = 0, MQRC_CD_ERROR);
  CNO(cd.MaxMsgLength = -1, MQRC_CD_ERROR);
  CNO(cd.HeartbeatInterval = -1, MQRC_CD_ERROR);
  CNO(cd.SharingConversations = -1, MQRC_CD_ERROR);
  CNO(csp.StrucId[0] = 'X', MQRC_CSP_ERROR);
  CNO(sco.Version = 8, MQRC_SCO_ERROR);
}

static void opening(MQHCONN h) {
  OPEN(0, MQRC_OPTIONS_ERROR);
  OPEN(MQOO_INPUT_SHARED | MQOO_INPUT_EXCLUSIVE, MQRC_OPTIONS_ERROR);
  OPEN(MQOO_INPUT_SHARED | 1 << 30, MQRC_OPTIONS_ERROR);
  OPEN(MQOO_INPUT_SHARED | MQOO_SET_ALL_CONTEXT, MQRC_OPTIONS_ERROR);
  OPEN(MQOO_OUTPUT | MQOO_SAVE_ALL_CONTEXT, MQRC_OPTIONS_ERROR);
  OPEN(MQOO_INPUT_SHARED | MQOO_CO_OP, MQRC_OPTIONS_ERROR);
  OPEN(MQOO_SET, MQRC_FUNCTION_NOT_SUPPORTED);
  OD(od.StrucId[1] = 'X', MQOO_OUTPUT, MQRC_OD_ERROR);
  OD(od.Version = 5, MQOO_OUTPUT, MQRC_OD_ERROR);
  OD(od.ObjectType = MQOT_TOPIC, MQOO_OUTPUT, MQRC_OBJECT_TYPE_ERROR);
  OD(od.ObjectType = MQOT_Q_MGR, MQOO_OUTPUT, MQRC_OPTION_NOT_VALID_FOR_TYPE);
  OD(strcpy(od.ObjectQMgrName, "QM2"), MQOO_OUTPUT, MQRC_UNKNOWN_REMOTE_Q_MGR);
  MQHOBJ o = openQ(h, Q1, MQOO_OUTPUT, &cc, &rc);
  FAILS(MQCLOSE(h, &o, MQCO_DELETE, &cc, &rc), MQRC_OPTION_NOT_VALID_FOR_TYPE);
  FAILS(MQCLOSE(h, &o, 1 << 20, &cc, &rc), MQRC_OPTIONS_ERROR);
  OK(MQCLOSE(h, &o, MQCO_NONE, &cc, &rc));
}

static void putting(MQHCONN h, MQHOBJ out) {
  PUT(md.StrucId[0] = 'X', MQRC_MD_ERROR);
  PUT(md.Version = 3, MQRC_MD_ERROR);
  PUT(pmo.StrucId[0] = 'X', MQRC_PMO_ERROR);
  PUT(pmo.Version = 4, MQRC_PMO_ERROR);
  PUT(pmo.Options = MQPMO_SYNCPOINT | MQPMO_NO_SYNCPOINT, MQRC_OPTIONS_ERROR);
  PUT(pmo.Options = MQPMO_ASYNC_RESPONSE | MQPMO_SYNC_RESPONSE, MQRC_OPTIONS_ERROR);
  PUT(pmo.Options = MQPMO_NO_CONTEXT | MQPMO_DEFAULT_CONTEXT, MQRC_OPTIONS_ERROR);
  PUT(pmo.Options = 1 << 30, MQRC_OPTIONS_ERROR);
  PUT(pmo.Options = MQPMO_LOGICAL_ORDER, MQRC_FUNCTION_NOT_SUPPORTED);
  PUT(pmo.Options = MQPMO_SET_ALL_CONTEXT, MQRC_NOT_OPEN_FOR_SET_ALL);
  PUT(pmo.Options = MQPMO_SET_IDENTITY_CONTEXT, MQRC_NOT_OPEN_FOR_SET_IDENT);
  PUT(md.Report = MQRO_COA, MQRC_FUNCTION_NOT_SUPPORTED);
  PUT(md.Expiry = 0, MQRC_EXPIRY_ERROR);
  PUT(md.Priority = -2, MQRC_PRIORITY_ERROR);
  PUT(md.Persistence = 3, MQRC_PERSISTENCE_ERROR);
  PUT(md.MsgType = 0, MQRC_MSG_TYPE_ERROR);
  PUT(length = -1, MQRC_BUFFER_LENGTH_ERROR);
  PUT(data = NULL, MQRC_BUFFER_ERROR);
  CHECK(mqstandin_available(Q1) == 0);
}

static void getting(MQHCONN h, MQHOBJ in) {
  GET(md.StrucId[0] = 'X', MQRC_MD_ERROR);
  GET(gmo.StrucId[0] = 'X', MQRC_GMO_ERROR);
  GET(gmo.Version = 5, MQRC_GMO_ERROR);
  GET(gmo.Options = 1 << 30, MQRC_OPTIONS_ERROR);
  GET(gmo.Options = MQGMO_SYNCPOINT | MQGMO_NO_SYNCPOINT, MQRC_OPTIONS_ERROR);
  GET(gmo.Options = MQGMO_BROWSE_FIRST | MQGMO_BROWSE_NEXT, MQRC_OPTIONS_ERROR);
  GET(gmo.Options = MQGMO_BROWSE_FIRST | MQGMO_SYNCPOINT, MQRC_OPTIONS_ERROR);
  GET(gmo.Options = MQGMO_NO_PROPERTIES | MQGMO_PROPERTIES_IN_HANDLE, MQRC_OPTIONS_ERROR);
  GET(gmo.Options = MQGMO_PROPERTIES_IN_HANDLE, MQRC_HMSG_ERROR);
  GET(gmo.Options = MQGMO_LOCK, MQRC_FUNCTION_NOT_SUPPORTED);
  GET(gmo.Options = MQGMO_BROWSE_FIRST, MQRC_NOT_OPEN_FOR_BROWSE);
  GET(gmo.MatchOptions = 64, MQRC_MATCH_OPTIONS_ERROR);
  GET(gmo.MatchOptions = MQMO_MATCH_GROUP_ID, MQRC_FUNCTION_NOT_SUPPORTED);
  GET((gmo.Version = 4, gmo.MsgHandle = 77), MQRC_HMSG_ERROR);
  GET((gmo.Options = MQGMO_WAIT, gmo.WaitInterval = -2), MQRC_WAIT_INTERVAL_ERROR);
  GET(room = -1, MQRC_BUFFER_LENGTH_ERROR);
  GET(buffer = NULL, MQRC_BUFFER_ERROR);
}

static void rest(MQHCONN h, MQHOBJ in, MQHOBJ out) {
  char t[8];
  MQLONG n, v, sel = MQIA_CURRENT_Q_DEPTH;
  MQHMSG m;
  MQCMHO cmho = {.StrucId = "CMHO", .Version = 2};
  MQSTS sts = {.StrucId = "STS", .Version = 1};
  MQBO bo = {.StrucId = "BO", .Version = 1};
  FAILS(get(h, out, 0, 0, t, 8, NULL, &cc, &rc), MQRC_NOT_OPEN_FOR_INPUT);
  MQMD md = newMd();
  MQPMO pmo = {.StrucId = "PMO", .Version = 1};
  FAILS(MQPUT(h, in, &md, &pmo, 0, NULL, &cc, &rc), MQRC_NOT_OPEN_FOR_OUTPUT);
  FAILS(MQPUT(h, 99, &md, &pmo, 0, NULL, &cc, &rc), MQRC_HOBJ_ERROR);
  FAILS(get(h, 99, 0, 0, t, 8, NULL, &cc, &rc), MQRC_HOBJ_ERROR);
  FAILS(MQINQ(h, in, 1, &sel, 1, &v, 0, NULL, &cc, &rc), MQRC_NOT_OPEN_FOR_INQUIRE);
  FAILS(MQINQ(h, in, -1, &sel, 1, &v, 0, NULL, &cc, &rc), MQRC_SELECTOR_COUNT_ERROR);
  FAILS(MQCRTMH(h, &cmho, &m, &cc, &rc), MQRC_CMHO_ERROR);
  FAILS(MQSTAT(h, MQSTAT_TYPE_ASYNC_ERROR, &sts, &cc, &rc), MQRC_STS_ERROR);
  FAILS(MQBEGIN(h, &bo, &cc, &rc), MQRC_FUNCTION_NOT_SUPPORTED);
  FAILS(MQBEGIN(1, &bo, &cc, &rc), MQRC_HCONN_ERROR);
  FAILS(MQSUBRQ(h, 1, 1, &n, &cc, &rc), MQRC_FUNCTION_NOT_SUPPORTED);
}

void strict(void) {
  mqstandin_reset();
  MQHCONN h = connectTo();
  MQHOBJ in = openQ(h, Q1, MQOO_INPUT_SHARED, &cc, &rc), out = openQ(h, Q1, MQOO_OUTPUT, &cc, &rc);
  connecting();
  opening(h);
  putting(h, out);
  getting(h, in);
  rest(h, in, out);
  OK(MQDISC(&h, &cc, &rc));
}
