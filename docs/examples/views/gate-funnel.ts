// The funnel of Gate: how many signups and logins a day got how far.
const steps = {
  GateSessionOpened: ['opened_at'],
  LoginSessionOpened: ['opened_at'],
  // A person consents, and the service is asked at once, or once the agent has told the code of the consent page.
  GateSessionApprovalStarted: ['consented_at', 'asked_at'],
  GateSessionClaimRequested: ['consented_at'],
  GateSessionClaimed: ['asked_at'],
  // Nobody but the person is asked for a login.
  LoginSessionApproved: ['consented_at', 'approved_at'],
  GateSessionApproved: ['approved_at'],
  GateDeliveryAcknowledged: ['used_at'],
  LoginCodeConsumed: ['used_at'],
  GateSessionRejected: ['rejected_at'],
  GateSessionExpired: ['expired_at'],
}

export default {
  name: 'gate_funnel',
  version: 1,
  events: Object.keys(steps),
  tables: {
    gate_sessions: {
      columns: {
        gate_session_id: 'text',
        kind: 'text',
        opened_at: 'bigint',
        consented_at: 'bigint',
        asked_at: 'bigint',
        approved_at: 'bigint',
        used_at: 'bigint',
        rejected_at: 'bigint',
        expired_at: 'bigint',
      },
      key: ['gate_session_id'],
    },
  },
  session: 'gate_session_id',
  views: {
    funnel: `
      select (to_timestamp(opened_at / 1000.0) at time zone 'UTC')::date as day, kind, count(*)::integer as opened,
        count(consented_at)::integer as consented, count(asked_at)::integer as asked,
        count(approved_at)::integer as approved, count(used_at)::integer as used,
        count(rejected_at)::integer as rejected, count(expired_at)::integer as expired
      from gate_sessions where opened_at is not null group by 1, 2`,
  },
  handle({ type, data, time }) {
    const { gate_session_id } = data
    const kind = { GateSessionOpened: 'signup', LoginSessionOpened: 'login' }[type]
    const to = (old) => {
      const row = { kind, ...old }
      // The first time counts, so a repeat changes nothing.
      for (const step of steps[type]) row[step] ??= time
      return row
    }
    return [{ table: 'gate_sessions', key: { gate_session_id }, to }]
  },
}
