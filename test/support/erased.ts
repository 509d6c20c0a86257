import type { VisitorErased } from '../../schemas/events.ts'

export const visitorErased = (
  session_ids: string[],
  overrides: Partial<VisitorErased> = {},
): VisitorErased => ({
  event_id: `evt_erased_${session_ids[0]}`,
  organization_id: 'org_1',
  environment: 'live',
  erasure_id: 'ers_1',
  visitor_id: null,
  user_digest: null,
  session_ids,
  erased_visitor_ids: [],
  changed_visitor_ids: [],
  counts: {},
  erased_at: 1_800_000_000_000,
  ...overrides,
})
