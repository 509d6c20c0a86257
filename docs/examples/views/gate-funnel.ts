// The funnel of Gate: how many signups and logins of a service got how far.
const steps = {
  GateSessionOpened: 'opened_at',
  GateSessionApprovalStarted: 'approval_started_at',
  GateSessionApproved: 'approved_at',
  GateSessionClaimed: 'claimed_at',
  GateSessionRejected: 'rejected_at',
  GateSessionExpired: 'expired_at',
}

export default {
  name: 'gate_funnel',
  version: 1,
  events: Object.keys(steps),
  tables: {
    gate_sessions: {
      columns: {
        gate_session_id: 'text',
        opened_at: 'bigint',
        approval_started_at: 'bigint',
        approved_at: 'bigint',
        claimed_at: 'bigint',
        rejected_at: 'bigint',
        expired_at: 'bigint',
      },
      key: ['gate_session_id'],
    },
  },
  session: 'gate_session_id',
  views: {
    funnel: `
      select (to_timestamp(opened_at / 1000.0) at time zone 'UTC')::date as day, count(*)::integer as opened,
        count(approval_started_at)::integer as approval_started, count(approved_at)::integer as approved,
        count(claimed_at)::integer as claimed, count(rejected_at)::integer as rejected,
        count(expired_at)::integer as expired
      from gate_sessions where opened_at is not null group by 1`,
  },
  handle({ type, data, time }) {
    const { gate_session_id } = data
    // The first time counts, so a repeat changes nothing.
    const to = (row = { gate_session_id }) => ({ ...row, [steps[type]]: row[steps[type]] ?? time })
    return [{ table: 'gate_sessions', key: { gate_session_id }, to }]
  },
}
