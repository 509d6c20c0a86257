import { expect, test } from 'vitest'
import { clientUserIdInput } from '../../../projections/sessions/decision-schemas.ts'
import { decideClientUser } from '../../../services/readback/client-user.ts'

const command = {
  sessionId: 'sid_1',
  organizationId: 'org_1',
  environment: 'test',
  eventId: 'evt_1',
  at: 1000,
} as const
const about = {
  session_id: 'sid_1',
  organization_id: 'org_1',
  environment: 'test',
  event_id: 'evt_1',
}

const attached = (client_user_id: string) => [
  { type: 'ClientUserAttached', data: { ...about, client_user_id, attached_at: 1000 } },
]
const cleared = [{ type: 'ClientUserCleared', data: { ...about, cleared_at: 1000 } }]

test.each([
  { current: null, next: 'user_1', result: attached('user_1') },
  { current: 'user_1', next: 'user_2', result: attached('user_2') },
  { current: 'user_1', next: null, result: cleared },
  { current: 'user_1', next: 'user_1', result: [] },
  { current: null, next: null, result: [] },
])('changes $current to $next', ({ current, next, result }) => {
  expect(decideClientUser(current, { ...command, clientUserId: next })).toEqual(result)
})

test.each([
  'u',
  'x'.repeat(256),
  '\u{1f469}'.repeat(256),
  ' spaces ',
  'ümläut',
  '__proto__',
  '<script>',
  '...',
  '.a',
])('%j is a valid id', (text) => expect(clientUserIdInput.safeParse(text).data).toBe(text))

test.each([
  '',
  'x'.repeat(257),
  '\u{1f469}'.repeat(257),
  'a\0b',
  'a\nb',
  'a\u007f',
  'a\u0085',
  '\ud800',
  'a\udc00',
  '.',
  '..',
])('%j is not a valid id', (text) => expect(clientUserIdInput.safeParse(text).success).toBe(false))
