// Verdicts a day by the page's host: the newest decision of a session counts, as in GET /v1/sessions/aggregates.
export default {
  name: 'verdicts_by_page',
  version: 1,
  events: ['SessionScored'],
  tables: {
    page_sessions: {
      columns: {
        session_id: 'text',
        organization_id: 'text',
        environment: 'text',
        event_id: 'text',
        evaluated_at: 'bigint',
        page_host: 'text',
        verdict: 'text',
      },
      key: ['session_id'],
    },
  },
  // The page is encrypted under the session's key, so the view is by session and follows erasures and retention.
  session: 'session_id',
  views: {
    verdicts_a_day: `
      select organization_id, environment, (to_timestamp(evaluated_at / 1000.0) at time zone 'UTC')::date as day,
        page_host, verdict, count(*)::integer as sessions
      from page_sessions group by 1, 2, 3, 4, 5`,
  },
  handle({ data, facts }) {
    const { session_id, organization_id, environment, event_id, evaluated_at, verdict } = data
    const page_host = facts.page_host
    // Decisions of one session come in order but for repeats; the event's id decides between two of one moment.
    const isOlder = (row) =>
      evaluated_at < row.evaluated_at || (evaluated_at === row.evaluated_at && event_id < row.event_id)
    const row = { session_id, organization_id, environment, event_id, evaluated_at, page_host, verdict }
    return [{ table: 'page_sessions', key: { session_id }, to: (old) => (old && isOlder(old) ? old : row) }]
  },
}
