/* What the real library refuses before it does anything: eye-catchers, structure
 * versions, options that do not exist or do not go together. What exists but is
 * not modelled gives 2298, so that no test passes by luck. */
#include "client.h"
#include "qmgr.h"
#include <cmqxc.h>
#include <string.h>

bool mqsIs(const MQCHAR4 id, const char *want) {
  size_t n = strlen(want); /* eye-catchers may end in blanks or in nulls */
  while (n && want[n - 1] == ' ') n--;
  if (memcmp(id, want, n)) return false;
  for (; n < 4; n++)
    if (id[n] && id[n] != ' ') return false;
  return true;
}

static bool several(MQLONG options, MQLONG of) {
  MQLONG set = options & of;
  return set & (set - 1);
}

#define VERSIONED(s, id, most) (mqsIs((s)->StrucId, id) && (s)->Version >= 1 && (s)->Version <= (most))

/* ---- MQCONNX ---- */

static MQLONG checkCd(const MQCD *cd) {
  if (cd->Version < MQCD_VERSION_4 || cd->Version > MQCD_VERSION_12) return MQRC_CD_ERROR;
  if (cd->Version == MQCD_VERSION_11 && cd->StrucLength != MQCD_LENGTH_11) return MQRC_CD_ERROR;
  if (cd->ChannelType != MQCHT_CLNTCONN || cd->TransportType != MQXPT_TCP) return MQRC_CD_ERROR;
  if (cd->MaxMsgLength < 0 || cd->MaxMsgLength > MQS_MAX_MSG_LENGTH) return MQRC_CD_ERROR;
  if (cd->HeartbeatInterval < 0 || cd->HeartbeatInterval > 999999) return MQRC_CD_ERROR;
  if (cd->Version >= MQCD_VERSION_9 && (cd->SharingConversations < 0 || cd->SharingConversations > 999999999))
    return MQRC_CD_ERROR;
  return 0;
}

MQLONG mqsCheckCno(const MQCNO *cno) {
  const MQLONG share = MQCNO_HANDLE_SHARE_NONE | MQCNO_HANDLE_SHARE_BLOCK | MQCNO_HANDLE_SHARE_NO_BLOCK;
  const MQLONG binding = MQCNO_FASTPATH_BINDING | MQCNO_SHARED_BINDING | MQCNO_ISOLATED_BINDING | MQCNO_LOCAL_BINDING |
                         MQCNO_CLIENT_BINDING;
  const MQLONG reconnect = MQCNO_RECONNECT | MQCNO_RECONNECT_DISABLED | MQCNO_RECONNECT_Q_MGR;
  const MQLONG tag = MQCNO_SERIALIZE_CONN_TAG_Q_MGR | MQCNO_SERIALIZE_CONN_TAG_QSG | MQCNO_RESTRICT_CONN_TAG_Q_MGR |
                     MQCNO_RESTRICT_CONN_TAG_QSG | MQCNO_GENERATE_CONN_TAG;
  const MQLONG rest = MQCNO_ACCOUNTING_MQI_ENABLED | MQCNO_ACCOUNTING_MQI_DISABLED | MQCNO_ACCOUNTING_Q_ENABLED |
                      MQCNO_ACCOUNTING_Q_DISABLED | MQCNO_ACTIVITY_TRACE_ENABLED | MQCNO_ACTIVITY_TRACE_DISABLED |
                      MQCNO_NO_CONV_SHARING | MQCNO_ALL_CONVS_SHARE | MQCNO_CD_FOR_OUTPUT_ONLY | MQCNO_USE_CD_SELECTION;
  if (!VERSIONED(cno, "CNO ", MQCNO_VERSION_8)) return MQRC_CNO_ERROR;
  if (cno->Options & ~(share | binding | reconnect | tag | rest)) return MQRC_OPTIONS_ERROR;
  if (several(cno->Options, share) || several(cno->Options, reconnect)) return MQRC_OPTIONS_ERROR;
  if (cno->Options & (MQCNO_RECONNECT | MQCNO_RECONNECT_Q_MGR)) return MQRC_FUNCTION_NOT_SUPPORTED;
  const MQCD *cd = cno->Version >= MQCNO_VERSION_2 ? cno->ClientConnPtr : NULL;
  MQLONG reason = cd ? checkCd(cd) : 0;
  const MQSCO *sco = cno->Version >= MQCNO_VERSION_4 ? cno->SSLConfigPtr : NULL;
  if (!reason && sco && !VERSIONED(sco, "SCO ", MQSCO_VERSION_7)) reason = MQRC_SCO_ERROR;
  const MQCSP *csp = cno->Version >= MQCNO_VERSION_5 ? cno->SecurityParmsPtr : NULL;
  if (!reason && csp && !VERSIONED(csp, "CSP ", MQCSP_VERSION_3)) reason = MQRC_CSP_ERROR;
  return reason;
}

/* ---- objects ---- */

MQLONG mqsCheckOd(const MQOD *od) {
  if (!VERSIONED(od, "OD  ", MQOD_VERSION_4)) return MQRC_OD_ERROR;
  if (od->ObjectType != MQOT_Q && od->ObjectType != MQOT_Q_MGR) return MQRC_OBJECT_TYPE_ERROR;
  if (od->Version >= MQOD_VERSION_2 && od->RecsPresent) return MQRC_FUNCTION_NOT_SUPPORTED;
  if (od->Version >= MQOD_VERSION_4 && od->SelectionString.VSLength > 0) return MQRC_FUNCTION_NOT_SUPPORTED;
  return 0;
}

MQLONG mqsCheckOpen(const MQOD *od, MQLONG options) {
  const MQLONG input = MQOO_INPUT_AS_Q_DEF | MQOO_INPUT_SHARED | MQOO_INPUT_EXCLUSIVE;
  const MQLONG access = input | MQOO_BROWSE | MQOO_OUTPUT | MQOO_INQUIRE | MQOO_SET;
  const MQLONG output = MQOO_PASS_IDENTITY_CONTEXT | MQOO_PASS_ALL_CONTEXT | MQOO_SET_IDENTITY_CONTEXT | MQOO_SET_ALL_CONTEXT;
  const MQLONG rest = MQOO_FAIL_IF_QUIESCING | MQOO_SAVE_ALL_CONTEXT | MQOO_ALTERNATE_USER_AUTHORITY | MQOO_BIND_ON_OPEN |
                      MQOO_BIND_NOT_FIXED | MQOO_BIND_ON_GROUP | MQOO_RESOLVE_LOCAL_Q | MQOO_RESOLVE_NAMES |
                      MQOO_NO_READ_AHEAD | MQOO_READ_AHEAD | MQOO_CO_OP | MQOO_NO_MULTICAST;
  MQLONG reason = mqsCheckOd(od);
  if (reason) return reason;
  if (options & ~(access | output | rest)) return MQRC_OPTIONS_ERROR;
  if (!(options & access) || several(options, input)) return MQRC_OPTIONS_ERROR;
  if ((options & output) && !(options & MQOO_OUTPUT)) return MQRC_OPTIONS_ERROR;
  if ((options & MQOO_CO_OP) && !(options & MQOO_BROWSE)) return MQRC_OPTIONS_ERROR;
  if ((options & MQOO_SAVE_ALL_CONTEXT) && !(options & input)) return MQRC_OPTIONS_ERROR;
  if ((options & MQOO_READ_AHEAD) && (options & MQOO_NO_READ_AHEAD)) return MQRC_OPTIONS_ERROR;
  if (od->ObjectType == MQOT_Q_MGR && (options & (input | MQOO_BROWSE | MQOO_OUTPUT))) return MQRC_OPTION_NOT_VALID_FOR_TYPE;
  if (options & (MQOO_SET | MQOO_CO_OP | MQOO_ALTERNATE_USER_AUTHORITY)) return MQRC_FUNCTION_NOT_SUPPORTED;
  return 0;
}

MQLONG mqsCheckClose(MQLONG options) {
  const MQLONG known = MQCO_DELETE | MQCO_DELETE_PURGE | MQCO_KEEP_SUB | MQCO_REMOVE_SUB | MQCO_QUIESCE;
  if (options & ~known) return MQRC_OPTIONS_ERROR;
  return options & ~MQCO_QUIESCE ? MQRC_OPTION_NOT_VALID_FOR_TYPE : 0; /* only predefined queues here */
}

/* ---- MQPUT, MQPUT1 ---- */

MQLONG mqsCheckPut(const MQMD *md, const MQPMO *pmo, MQLONG length, const void *data) {
  const MQLONG context = MQPMO_NO_CONTEXT | MQPMO_DEFAULT_CONTEXT | MQPMO_PASS_IDENTITY_CONTEXT | MQPMO_PASS_ALL_CONTEXT |
                         MQPMO_SET_IDENTITY_CONTEXT | MQPMO_SET_ALL_CONTEXT;
  const MQLONG plain = MQPMO_SYNCPOINT | MQPMO_NO_SYNCPOINT | MQPMO_NEW_MSG_ID | MQPMO_NEW_CORREL_ID |
                       MQPMO_FAIL_IF_QUIESCING | MQPMO_ASYNC_RESPONSE | MQPMO_SYNC_RESPONSE | MQPMO_RESOLVE_LOCAL_Q;
  const MQLONG elsewhere = MQPMO_LOGICAL_ORDER | MQPMO_ALTERNATE_USER_AUTHORITY | MQPMO_MD_FOR_OUTPUT_ONLY |
                           MQPMO_PASS_IDENTITY_CONTEXT | MQPMO_PASS_ALL_CONTEXT | MQPMO_RETAIN | MQPMO_SCOPE_QMGR |
                           MQPMO_NOT_OWN_SUBS | MQPMO_SUPPRESS_REPLYTO | MQPMO_WARN_IF_NO_SUBS_MATCHED;
  if (!VERSIONED(md, "MD  ", MQMD_VERSION_2)) return MQRC_MD_ERROR;
  if (!VERSIONED(pmo, "PMO ", MQPMO_VERSION_3)) return MQRC_PMO_ERROR;
  if (pmo->Options & ~(context | plain | elsewhere)) return MQRC_OPTIONS_ERROR;
  if (several(pmo->Options, MQPMO_SYNCPOINT | MQPMO_NO_SYNCPOINT) || several(pmo->Options, context) ||
      several(pmo->Options, MQPMO_ASYNC_RESPONSE | MQPMO_SYNC_RESPONSE))
    return MQRC_OPTIONS_ERROR;
  if ((pmo->Options & elsewhere) || md->Report != MQRO_NONE) return MQRC_FUNCTION_NOT_SUPPORTED;
  if (length < 0) return MQRC_BUFFER_LENGTH_ERROR;
  if (length > 0 && !data) return MQRC_BUFFER_ERROR;
  if (md->MsgType < MQMT_SYSTEM_FIRST || md->MsgType > MQMT_APPL_LAST) return MQRC_MSG_TYPE_ERROR;
  if (md->Expiry != MQEI_UNLIMITED && md->Expiry <= 0) return MQRC_EXPIRY_ERROR;
  if (md->Priority < 0 && md->Priority != MQPRI_PRIORITY_AS_Q_DEF) return MQRC_PRIORITY_ERROR;
  if (md->Persistence < MQPER_NOT_PERSISTENT || md->Persistence > MQPER_PERSISTENCE_AS_Q_DEF) return MQRC_PERSISTENCE_ERROR;
  if (md->Version >= MQMD_VERSION_2 && md->MsgFlags) return MQRC_FUNCTION_NOT_SUPPORTED;
  return 0;
}

/* ---- MQGET ---- */

MQLONG mqsCheckGet(const MQMD *md, const MQGMO *gmo, MQLONG room, const void *buffer) {
  const MQLONG synced = MQGMO_SYNCPOINT | MQGMO_NO_SYNCPOINT | MQGMO_SYNCPOINT_IF_PERSISTENT;
  const MQLONG browse = MQGMO_BROWSE_FIRST | MQGMO_BROWSE_NEXT | MQGMO_BROWSE_MSG_UNDER_CURSOR;
  const MQLONG properties = MQGMO_PROPERTIES_FORCE_MQRFH2 | MQGMO_NO_PROPERTIES | MQGMO_PROPERTIES_IN_HANDLE |
                            MQGMO_PROPERTIES_COMPATIBILITY;
  const MQLONG plain = MQGMO_WAIT | MQGMO_ACCEPT_TRUNCATED_MSG | MQGMO_FAIL_IF_QUIESCING | MQGMO_CONVERT |
                       MQGMO_MSG_UNDER_CURSOR;
  const MQLONG elsewhere = MQGMO_SET_SIGNAL | MQGMO_LOCK | MQGMO_UNLOCK | MQGMO_MARK_SKIP_BACKOUT | MQGMO_LOGICAL_ORDER |
                           MQGMO_COMPLETE_MSG | MQGMO_ALL_MSGS_AVAILABLE | MQGMO_ALL_SEGMENTS_AVAILABLE |
                           MQGMO_MARK_BROWSE_HANDLE | MQGMO_MARK_BROWSE_CO_OP | MQGMO_UNMARK_BROWSE_CO_OP |
                           MQGMO_UNMARK_BROWSE_HANDLE | MQGMO_UNMARKED_BROWSE_MSG | MQGMO_BROWSE_MSG_UNDER_CURSOR;
  MQLONG o = gmo->Options;
  if (!VERSIONED(md, "MD  ", MQMD_VERSION_2)) return MQRC_MD_ERROR;
  if (!VERSIONED(gmo, "GMO ", MQGMO_VERSION_4)) return MQRC_GMO_ERROR;
  if (o & ~(synced | browse | properties | plain | elsewhere)) return MQRC_OPTIONS_ERROR;
  if (several(o, synced) || several(o, browse | MQGMO_MSG_UNDER_CURSOR) || several(o, properties) ||
      several(o, MQGMO_WAIT | MQGMO_SET_SIGNAL))
    return MQRC_OPTIONS_ERROR;
  if ((o & browse) && (o & (MQGMO_SYNCPOINT | MQGMO_SYNCPOINT_IF_PERSISTENT))) return MQRC_OPTIONS_ERROR;
  if (o & elsewhere) return MQRC_FUNCTION_NOT_SUPPORTED;
  if (gmo->Version >= MQGMO_VERSION_2) {
    const MQLONG ids = MQMO_MATCH_MSG_ID | MQMO_MATCH_CORREL_ID;
    const MQLONG others = MQMO_MATCH_GROUP_ID | MQMO_MATCH_MSG_SEQ_NUMBER | MQMO_MATCH_OFFSET | MQMO_MATCH_MSG_TOKEN;
    if (gmo->MatchOptions & ~(ids | others)) return MQRC_MATCH_OPTIONS_ERROR;
    if (gmo->MatchOptions & others) return MQRC_FUNCTION_NOT_SUPPORTED;
  }
  if (room < 0) return MQRC_BUFFER_LENGTH_ERROR;
  if (room > 0 && !buffer) return MQRC_BUFFER_ERROR;
  if ((o & MQGMO_WAIT) && gmo->WaitInterval < 0 && gmo->WaitInterval != MQWI_UNLIMITED) return MQRC_WAIT_INTERVAL_ERROR;
  if ((o & MQGMO_PROPERTIES_IN_HANDLE) && (gmo->Version < MQGMO_VERSION_4 || gmo->MsgHandle == MQHM_NONE))
    return MQRC_HMSG_ERROR;
  return 0;
}
