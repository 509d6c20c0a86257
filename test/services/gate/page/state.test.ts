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

/** The state after these events, and what the last of them asks for. */
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
/** The page asks with its token alone how an approval ends. */
const question = { do: 'approve', body: { approve_token: 'gtapr_1' } }
const waiting = (seconds: number, type = 'poll') => ({ do: 'wait', seconds, event: { type } })

/** The view with its code, what is under way, and the notice above the buttons. */
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
    ['is asked for', [opened], 'loading', load],
    ['is shown', review, 'review'],
    ['is proved once it is approved', [...review, approve], proving, prove()],
    ['is approved with the proof', approving, proving, post()],
    [
      'says which variables the person lets into the env file',
      [...review, accepting, proved()],
      proving,
      post({ accepted_env_vars: ['ACME_KEY'] }),
    ],
    ['is named from another network', [opened, away(false), approve, proved()], proving, named],
    ['is named from nobody knows where', [opened, away(null), approve, proved()], proving, named],
    [
      'is named from then on where the server asks for it',
      [...approving, refused('unnamed'), loadedWith({}), approve, proved()],
      proving,
      named,
    ],
    [
      'is proved for the token that was shown, whatever is read meanwhile',
      [...review, approve, renewed, proved()],
      proving,
      post(),
    ],
    ['is proved for the newest token', [...review, renewed, approve], proving, prove('gtapr_2')],
    ['is over', [...approving, approved()], 'approved'],
    ['that is under way is asked about', working, 'working', waiting(1)],
    ['is asked about with the same proof', [...working, askAgain], 'working', post()],
    ['is asked about without one by another page', [opened, underWay], 'working', question],
    ['fails where the end is no success', [...working, refused('resolved')], 'failed'],
    ['waits out trouble', [...working, refused('trouble')], 'working: trouble', waiting(2)],
    [
      'waits out a lost connection',
      [...working, refused('offline')],
      'working: offline',
      waiting(2),
    ],
    ['waits out a limit', [...working, refused('limited')], 'working', waiting(2)],
    ['that is approved elsewhere is read', [...review, decline, notDeclined], 'loading', load],
    ['that was opened too often waits', [opened, limited], 'limited', waiting(7, 'retry')],
    ['is opened again then', [opened, limited, { type: 'retry' }], 'loading', load],
  ])('%s', (_what, events, view, effect) => expectSeen(events, view, effect))

  test.each<Event>([approve, decline, { type: 'time_up' }, { type: 'superseded' }])(
    'that is under way cannot be decided any more: $type',
    (event) => {
      const before = upon(...working).state
      expect(transition(before, event)).toEqual([before])
    },
  )
})

describe('a refusal', () => {
  const [once, token] = [refused('proof'), refused('token')]
  test.each<Row>([
    ['of the proof is answered by one more, in silence', [once], 'review (approve)', prove()],
    ['of the second proof is shown', [once, proved('other'), once], 'review: proof'],
    ['of the token reads the request again', [token], 'loading: refreshed', load],
    ['of the token is shown then', [token, loadedWith({})], 'review: refreshed'],
    ['of an answered request reads it', [refused('resolved')], 'loading', load],
    ['for the lack of a name is shown', [refused('unnamed')], 'review: unnamed'],
    ['that it has expired is the end', [refused('expired')], 'expired'],
    ['that there is none is the end', [refused('not_found')], 'not_found'],
  ])('%s', (_what, events, view, effect) => expectSeen([...approving, ...events], view, effect))

  test.each<ProblemKind>(['flagged', 'limited', 'trouble', 'offline'])(
    '%s leaves the decision open',
    (kind) => {
      const { state } = upon(...approving, refused(kind, { waitSeconds: 5 }))
      expect([shown(state), state.sealedToken]).toEqual([`review: ${kind}`, null])
      expect(isUndecided(state)).toBe(true)
    },
  )
})

describe('a login', () => {
  const start = [opened, loadedWith({ kind: 'login' }), approve, proved()]

  test('says nothing of variables', () => {
    expect(upon(...start).effects).toEqual([post({ accepted_env_vars: undefined })])
  })

  test('goes on to its dashboard', () => {
    const url = 'https://app.acme.example/auth?code=1'
    expect(upon(...start, approved({ redirect_url: url })).effects).toEqual([{ do: 'leave', url }])
  })

  test.each(['https://acme.example/?code=1', 'javascript:alert(1)', '', '//app.acme.example/'])(
    'does not go to %j',
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
  ['once it is declined', [...review, decline, declined], false],
  ['while it is under way', working, false],
])('closing the page is an answer: %s', (_when, events, expected) => {
  expect(isUndecided(upon(...events).state)).toBe(expected)
})

describe('a tab among others', () => {
  const released: Event = { type: 'released' }
  const front: Event = { type: 'front' }
  const elsewhere: Event[] = [...review, { type: 'superseded' }]
  const ended = resolvedAs('declined')

  test.each([released, front])('gives way to a newer one, until $type', (event) => {
    expect(upon(...elsewhere)).toMatchObject({ state: { view: 'elsewhere' }, effects: [] })
    expect(upon(...elsewhere, event).effects).toEqual([load])
    expect(upon(...elsewhere, event, renewed).state.view).toBe('review')
    expect(upon(...elsewhere, event, ended).state.view).toBe('declined')
    expect(upon(...review, released).effects).toEqual([])
  })

  test('asks again when it is looked at, without disturbing whoever reads', () => {
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

  test('does not undo by an answer to that what was decided meanwhile', () => {
    const declining = [...review, front, decline]
    for (const answer of [renewed, ended])
      expect(upon(...declining, answer).state).toMatchObject({ view: 'review', busy: 'decline' })
    expect(upon(...declining, declined, renewed).state.view).toBe('declined')
    expect(upon(...working, renewed).state.view).toBe('working')
  })
})

test.each(['approved', 'declined', 'closed', 'failed'])('says that it was %s', (view) => {
  expect(upon(opened, resolvedAs(view)).state).toMatchObject({ view, kind: 'login' })
  expect(upon(opened, notLoaded('resolved')).state.view).toBe('resolved')
})

describe('an approval that the agent has to claim', () => {
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
    ['asks with the same proof', [...claiming, askAgain], told, post()],
    ['goes on once it was told', [...claiming, inProgress], 'working 483 201', waiting(1)],
    ['is over then', [...claiming, approved({ status: 'approved' })], 'approved 483 201'],
    [
      'waits out a lost connection',
      [...claiming, refused('offline')],
      `${told}: offline`,
      waiting(2),
    ],
    ['asks what became of it', [...claiming, refused('resolved')], 'loading 483 201', load],
    [
      'ends where the code was wrong too often',
      [...claiming, refused('resolved'), resolvedAs('unclaimed')],
      'unclaimed 483 201',
    ],
    ['ends with its time', [...claiming, refused('expired')], 'expired 483 201'],
    ['can be cancelled', [...claiming, decline], `${told} (decline)`, { do: 'decline' }],
    ['stays so', [...claiming, decline, pending], `${told} (decline)`],
    ['is cancelled', [...claiming, decline, declined], 'declined 483 201'],
    ['shows the code to the tab that was shown it', [opened, reloaded], told, question],
    ['goes on to do so', [opened, reloaded, unshown], told, waiting(3)],
    ['shows another page none', [opened, waits, unshown], 'claiming', waiting(3)],
  ])('%s', (_what, events, view, effect) => expectSeen(events, view, effect))

  test('is no more decided by closing the page', () => {
    expect(isUndecided(upon(...claiming).state)).toBe(false)
  })
})
