import { describe, expect, test } from 'vitest'
import type { ProblemKind } from '../../../../services/gate/page/assets/state.js'
import {
  initialState,
  isUndecided,
  transition,
} from '../../../../services/gate/page/assets/state.js'

type State = typeof initialState
type Event = Parameters<typeof transition>[1]

const consent = {
  gate_session_id: 'gate_1',
  kind: 'signup' as 'signup' | 'login',
  status: 'pending' as const,
  account_name: 'Harbour Notes',
  service: {
    id: 'acme',
    name: 'Acme',
    description: 'Mail',
    website: 'https://acme.example',
    env_vars: [],
    dashboard_login_url: 'https://app.acme.example/auth',
  },
  approve_token: 'gtapr_1',
  expires_at: '2026-01-01T00:15:00.000Z',
  confirmation_code: 'K7QF',
  requested_by: {
    ip_address: null,
    user_agent: null,
    at: '2026-01-01T00:00:00.000Z',
    network: { same: true, country: null, operator: null },
  },
}

/** Returns the state after the events, and the effects of the last one. */
function upon(...events: Event[]): { state: State; effects: unknown[] } {
  let state = initialState
  let effects: unknown[] = []
  for (const event of events) [state, ...effects] = transition(state, event)
  return { state, effects }
}

const opened: Event = { type: 'opened' }
const approve: Event = { type: 'approve' }
const approved = (data: object = {}): Event => ({ type: 'approved', data })
const decline: Event = { type: 'decline' }
const declined: Event = { type: 'declined' }
const askAgain: Event = { type: 'poll' }
const loadedWith = (changes: object, more: { code?: string } = {}): Event => ({
  type: 'loaded',
  consent: { ...consent, ...changes },
  ...more,
})
const proved = (sealedToken = 'sealed'): Event => ({ type: 'proved', sealedToken })
const refused = (kind: ProblemKind, more: { waitSeconds?: number } = {}): Event => ({
  type: 'not_approved',
  problem: { kind, ...more },
})
const notLoaded = (kind: ProblemKind, more: object = {}): Event => ({
  type: 'not_loaded',
  problem: { kind, ...more },
})
const resolvedAs = (view: string) => notLoaded('resolved', { resolution: { view, kind: 'login' } })
const review = [opened, loadedWith({})]
const approving = [...review, approve, proved()]
const working = [...approving, refused('in_progress', { waitSeconds: 1 })]
const renewed = loadedWith({ approve_token: 'gtapr_2' })

const load = { do: 'load' }
const prove = (approveToken = 'gtapr_1') => ({ do: 'prove', approveToken })
const post = (changes: object = {}) => ({
  do: 'approve',
  body: {
    approve_token: 'gtapr_1',
    sealed_token: 'sealed',
    accepted_env_vars: [],
    ...changes,
  },
})
/** Requests the outcome with the approve token alone. */
const question = { do: 'approve', body: { approve_token: 'gtapr_1' } }
const waiting = (seconds: number, type = 'poll') => ({ do: 'wait', seconds, event: { type } })

/** Describes the view with its code, the busy action, and the notice above the buttons. */
function shown({ view, code, busy, notice }: State): string {
  const parts = [view, ...(code ? [code] : []), ...(busy ? [`(${busy})`] : [])]
  return parts.join(' ') + (notice ? `: ${notice.kind}` : '')
}
type Row = [string, Event[], string, unknown?]
function expectSeen(events: Event[], view: string, effect?: unknown): void {
  const { state, effects } = upon(...events)
  expect([shown(state), ...effects]).toEqual([view, ...(effect ? [effect] : [])])
}

describe('a signup', () => {
  const network = { country: null, operator: null }
  const away = (same: boolean | null) =>
    loadedWith({ requested_by: { ...consent.requested_by, network: { ...network, same } } })
  const named = post({ account_name: 'Harbour Notes' })
  const accepting: Event = { type: 'approve', accepted: ['ACME_KEY'] }
  const notDeclined: Event = { type: 'not_declined', problem: { kind: 'in_progress' } }
  const underWay = loadedWith({ approval: 'in_progress' })
  const [proving, limited] = ['review (approve)', notLoaded('limited', { waitSeconds: 7 })]

  test.each<Row>([
    ['is loaded', [opened], 'loading', load],
    ['is shown', review, 'review'],
    ['is proved once it is approved', [...review, approve], proving, prove()],
    ['is sent with the proof', approving, proving, post()],
    [
      'says which variables the person lets into the env file',
      [...review, accepting, proved()],
      proving,
      post({ accepted_env_vars: ['ACME_KEY'] }),
    ],
    [
      'is sent with the name if the agent is in another network',
      [opened, away(false), approve, proved()],
      proving,
      named,
    ],
    [
      'is sent with the name if the network is unknown',
      [opened, away(null), approve, proved()],
      proving,
      named,
    ],
    [
      'is named from then on where the server asks for it',
      [...approving, refused('name_required'), loadedWith({}), approve, proved()],
      proving,
      named,
    ],
    [
      'is proved for the token that was shown, whatever is read meanwhile',
      [...review, approve, renewed, proved()],
      proving,
      post(),
    ],
    [
      'is proved for the latest approve token',
      [...review, renewed, approve],
      proving,
      prove('gtapr_2'),
    ],
    ['ends with success', [...approving, approved()], 'approved'],
    ['in progress is polled', working, 'working', waiting(1)],
    ['is polled with the same proof', [...working, askAgain], 'working', post()],
    ['is polled without a proof by another page', [opened, underWay], 'working', question],
    ['fails if the outcome is not success', [...working, refused('resolved')], 'failed'],
    [
      'is polled again after a server error',
      [...working, refused('trouble')],
      'working: trouble',
      waiting(2),
    ],
    [
      'waits out a lost connection',
      [...working, refused('offline')],
      'working: offline',
      waiting(2),
    ],
    ['is polled again after a rate limit', [...working, refused('limited')], 'working', waiting(2)],
    ['that was approved elsewhere is reloaded', [...review, decline, notDeclined], 'loading', load],
    ['over the rate limit waits', [opened, limited], 'limited', waiting(7, 'retry')],
    ['is then loaded again', [opened, limited, { type: 'retry' }], 'loading', load],
  ])('%s', (_what, events, view, effect) => expectSeen(events, view, effect))

  test.each<Event>([approve, decline, { type: 'time_up' }, { type: 'opened_elsewhere' }])(
    "whose approval is in progress can't be decided again: $type",
    (event) => {
      const before = upon(...working).state
      expect(transition(before, event)).toEqual([before])
    },
  )
})

describe('a failed approval', () => {
  const [once, token] = [refused('proof'), refused('token')]
  test.each<Row>([
    ['for the proof is retried once with another proof', [once], 'review (approve)', prove()],
    ['for the second proof is shown', [once, proved('other'), once], 'review: proof'],
    ['for the token reloads the request', [token], 'loading: refreshed', load],
    ['for the token is shown after the reload', [token, loadedWith({})], 'review: refreshed'],
    ['of a resolved request reloads it', [refused('resolved')], 'loading', load],
    ['for a missing name is shown', [refused('name_required')], 'review: name_required'],
    ['for an expired request is final', [refused('expired')], 'expired'],
    ['for an unknown request is final', [refused('not_found')], 'not_found'],
  ])('%s', (_what, events, view, effect) => expectSeen([...approving, ...events], view, effect))

  test.each<ProblemKind>(['flagged', 'limited', 'trouble', 'offline'])(
    '%s leaves the request undecided',
    (kind) => {
      const { state } = upon(...approving, refused(kind, { waitSeconds: 5 }))
      expect([shown(state), state.sealedToken]).toEqual([`review: ${kind}`, null])
      expect(isUndecided(state)).toBe(true)
    },
  )
})

describe('a login', () => {
  const start = [opened, loadedWith({ kind: 'login' }), approve, proved()]

  test('sends no variables', () => {
    expect(upon(...start).effects).toEqual([post({ accepted_env_vars: undefined })])
  })

  test('redirects to its dashboard', () => {
    const url = 'https://app.acme.example/auth?code=1'
    expect(upon(...start, approved({ redirect_url: url })).effects).toEqual([{ do: 'leave', url }])
  })

  test.each(['https://acme.example/?code=1', 'javascript:alert(1)', '', '//app.acme.example/'])(
    'does not redirect to %j',
    (url) => {
      expectSeen([...start, approved({ redirect_url: url })], 'misdirected')
    },
  )
})

test.each<[string, Event[], boolean]>([
  ['before it is shown', [], false],
  ['while it is shown', review, true],
  ['once Approve was pressed', [...review, approve], false],
  ['once Decline was pressed', [...review, decline], false],
  ['once it was declined', [...review, decline, declined], false],
  ['while the approval is in progress', working, false],
])('closing the page rejects the request: %s', (_when, events, expected) => {
  expect(isUndecided(upon(...events).state)).toBe(expected)
})

describe('several tabs', () => {
  const released: Event = { type: 'closed_elsewhere' }
  const front: Event = { type: 'came_to_front' }
  const elsewhere: Event[] = [...review, { type: 'opened_elsewhere' }]
  const ended = resolvedAs('declined')

  test.each([released, front])('an older tab gives way to a newer one, until $type', (event) => {
    expect(upon(...elsewhere)).toMatchObject({ state: { view: 'elsewhere' }, effects: [] })
    expect(upon(...elsewhere, event).effects).toEqual([load])
    expect(upon(...elsewhere, event, renewed).state.view).toBe('review')
    expect(upon(...elsewhere, event, ended).state.view).toBe('declined')
    expect(upon(...review, released).effects).toEqual([])
  })

  test('a tab that comes to the front reloads, without interrupting the person', () => {
    const noticed = [...approving, refused('flagged')]
    const { state, effects } = upon(...noticed, front)
    expect([state.view, effects]).toEqual(['review', [load]])
    expect(upon(...noticed, front, renewed).state).toEqual({
      ...state,
      consent: { ...consent, approve_token: 'gtapr_2' },
    })
    for (const kind of ['offline', 'trouble', 'limited'] as const) {
      expect(upon(...noticed, front, notLoaded(kind))).toEqual({ state, effects: [] })
    }
    expect(upon(...noticed, front, ended).state.view).toBe('declined')
    expect(upon(...working, front).effects).toEqual([])
  })

  test('a reload does not undo a decision made meanwhile', () => {
    const declining = [...review, front, decline]
    for (const answer of [renewed, ended])
      expect(upon(...declining, answer).state).toMatchObject({ view: 'review', busy: 'decline' })
    expect(upon(...declining, declined, renewed).state.view).toBe('declined')
    expect(upon(...working, renewed).state.view).toBe('working')
  })
})

test.each(['approved', 'declined', 'closed', 'failed'])(
  'shows the view %s for a resolved request',
  (view) => {
    expect(upon(opened, resolvedAs(view)).state).toMatchObject({ view, kind: 'login' })
    expect(upon(opened, notLoaded('resolved')).state.view).toBe('resolved')
  },
)

describe('an approval that the agent must claim', () => {
  const code = '483 201'
  const pending = approved({ status: 'pending', claim_code: code })
  const unshown = approved({ status: 'pending' })
  const claiming = [...approving, pending]
  const told = 'claiming 483 201'
  const waits = loadedWith({ claim: 'waiting' })
  const reloaded = loadedWith({ claim: 'waiting' }, { code })
  const inProgress = refused('in_progress', { waitSeconds: 1 })

  test.each<Row>([
    ['shows the code', claiming, told, waiting(3)],
    ['polls with the same proof', [...claiming, askAgain], told, post()],
    ['continues once the code was sent', [...claiming, inProgress], 'working 483 201', waiting(1)],
    ['then ends with success', [...claiming, approved({ status: 'approved' })], 'approved 483 201'],
    [
      'waits out a lost connection',
      [...claiming, refused('offline')],
      `${told}: offline`,
      waiting(2),
    ],
    ['reloads a resolved request', [...claiming, refused('resolved')], 'loading 483 201', load],
    [
      'ends where the code was wrong too often',
      [...claiming, refused('resolved'), resolvedAs('unclaimed')],
      'unclaimed 483 201',
    ],
    ['expires', [...claiming, refused('expired')], 'expired 483 201'],
    ['can be cancelled', [...claiming, decline], `${told} (decline)`, { do: 'decline' }],
    [
      'stays busy while it is being cancelled',
      [...claiming, decline, pending],
      `${told} (decline)`,
    ],
    ['is cancelled', [...claiming, decline, declined], 'declined 483 201'],
    ['shows the code again after a reload of the tab', [opened, reloaded], told, question],
    ['keeps showing it while polling', [opened, reloaded, unshown], told, waiting(3)],
    ['does not show the code on another page', [opened, waits, unshown], 'claiming', waiting(3)],
  ])('%s', (_what, events, view, effect) => expectSeen(events, view, effect))

  test('is not rejected by closing the page', () => {
    expect(isUndecided(upon(...claiming).state)).toBe(false)
  })
})
