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
    const { session_id, organization_id, environment, evaluated_at, verdict } = data
    const { page_host } = facts
    // Decisions of one session come in the order in which they were made, so the last one that comes is the newest.
    const row = { session_id, organization_id, environment, evaluated_at, page_host, verdict }
    return [{ table: 'page_sessions', key: { session_id }, to: () => row }]
  },
}
