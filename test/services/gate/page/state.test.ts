import { describe, expect, test } from 'vitest'
import type { ProblemKind } from '../../../../services/gate/page/assets/state.js'
import { initial, next, undecided } from '../../../../services/gate/page/assets/state.js'

type State = typeof initial
type Event = Parameters<typeof next>[1]

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
const loaded: Event = { type: 'loaded', consent }
const refused = (kind: ProblemKind, seconds?: number): Event => ({
  type: 'not_approved',
  problem: seconds === undefined ? { kind } : { kind, after: seconds },
})

/** The state after these events, and what the last of them asks for. */
function upon(...events: Event[]): { state: State; effects: unknown[] } {
  let state = initial
  let effects: unknown[] = []
  for (const event of events) [state, ...effects] = next(state, event)
  return { state, effects }
}

const opened: Event = { type: 'opened' }
const review = [opened, loaded]
const approving: Event[] = [
  ...review,
  { type: 'approve' },
  { type: 'proved', sealedToken: 'sealed' },
]
const working: Event[] = [...approving, refused('in_progress', 1)]

test('a page asks for the request, shows it, proves, and approves with the proof', () => {
  expect(upon(opened).effects).toEqual([{ do: 'load' }])
  expect(upon(...review).state.view).toBe('review')
  expect(upon(...review, { type: 'approve' }).effects).toEqual([
    { do: 'prove', approveToken: 'gtapr_1' },
  ])
  const body = { approve_token: 'gtapr_1', sealed_token: 'sealed', accepted_env_vars: [] }
  expect(upon(...approving).effects).toEqual([{ do: 'approve', body }])
  expect(upon(...approving, { type: 'approved', data: {} }).state.view).toBe('approved')
})

test('an approval says which variables the person lets into the env file; that of a login says nothing of it', () => {
  const letting: Event = { type: 'approve', accepted: ['ACME_KEY'] }
  const proved: Event = { type: 'proved', sealedToken: 'sealed' }
  const [effect] = upon(...review, letting, proved).effects
  expect(effect).toMatchObject({ do: 'approve', body: { accepted_env_vars: ['ACME_KEY'] } })
  const login: Event = { type: 'loaded', consent: { ...consent, kind: 'login' } }
  const [other] = upon({ type: 'opened' }, login, letting, proved).effects
  expect(other).toEqual({
    do: 'approve',
    body: { approve_token: 'gtapr_1', sealed_token: 'sealed' },
  })
})

test('what is read again while a proof is made changes nothing: the proof is for the token that was shown', () => {
  const again: Event = { type: 'loaded', consent: { ...consent, approve_token: 'gtapr_2' } }
  const { effects } = upon(...review, { type: 'approve' }, again, {
    type: 'proved',
    sealedToken: 'sealed',
  })
  expect(effects).toEqual([
    {
      do: 'approve',
      body: { approve_token: 'gtapr_1', sealed_token: 'sealed', accepted_env_vars: [] },
    },
  ])
  expect(upon(...review, again, { type: 'approve' }).effects).toEqual([
    { do: 'prove', approveToken: 'gtapr_2' },
  ])
})

test('the same proof asks how it ends', () => {
  const { state, effects } = upon(...working)
  expect(state.view).toBe('working')
  expect(effects).toEqual([{ do: 'wait', seconds: 1, event: { type: 'ask_again' } }])
  const body = { approve_token: 'gtapr_1', sealed_token: 'sealed', accepted_env_vars: [] }
  expect(upon(...working, { type: 'ask_again' }).effects).toEqual([{ do: 'approve', body }])
})

describe('while it is under way', () => {
  test.each<ProblemKind>(['trouble', 'offline', 'limited'])('%s is waited out', (kind) => {
    const { state, effects } = upon(...working, refused(kind))
    expect(state.view).toBe('working')
    expect(effects).toEqual([{ do: 'wait', seconds: 2, event: { type: 'ask_again' } }])
  })

  test('an end that is no success is that of the service', () => {
    expect(upon(...working, refused('resolved')).state.view).toBe('failed')
  })

  test.each<Event>([
    { type: 'approve' },
    { type: 'decline' },
    { type: 'time_up' },
    { type: 'superseded' },
  ])('nobody can decide any more: $type', (event) => {
    const before = upon(...working).state
    expect(next(before, event)).toEqual([before])
  })
})

describe('a refusal', () => {
  test('of the proof is answered by one more, in silence', () => {
    const once = upon(...approving, refused('proof'))
    expect(once.effects).toEqual([{ do: 'prove', approveToken: 'gtapr_1' }])
    expect(once.state.notice).toBeNull()
    const twice = upon(
      ...approving,
      refused('proof'),
      { type: 'proved', sealedToken: 'other' },
      refused('proof'),
    )
    expect(twice.effects).toEqual([])
    expect(twice.state).toMatchObject({ view: 'review', busy: null, notice: { kind: 'proof' } })
  })

  test.each<ProblemKind>(['flagged', 'limited', 'trouble', 'offline'])(
    '%s leaves the decision open',
    (kind) => {
      const { state } = upon(...approving, refused(kind, 5))
      expect(state).toMatchObject({ view: 'review', notice: { kind }, sealedToken: null })
      expect(undecided(state)).toBe(true)
    },
  )

  test('of the token shows the request once more', () => {
    const { state, effects } = upon(...approving, refused('token'))
    expect(effects).toEqual([{ do: 'load' }])
    expect(next(state, loaded)[0]).toMatchObject({ view: 'review', notice: { kind: 'refreshed' } })
  })

  test.each<ProblemKind>(['expired', 'not_found'])('%s is the end', (kind) => {
    expect(upon(...approving, refused(kind)).state.view).toBe(kind)
  })

  test('of an answered request asks what became of it', () => {
    expect(upon(...approving, refused('resolved')).effects).toEqual([{ do: 'load' }])
  })
})

describe('a login', () => {
  const login: Event = { type: 'loaded', consent: { ...consent, kind: 'login' } }
  const approved = (redirect_url: string): Event => ({ type: 'approved', data: { redirect_url } })
  const start: Event[] = [opened, login, { type: 'approve' }, { type: 'proved', sealedToken: 'x' }]

  test('goes on to its dashboard and nowhere else', () => {
    const url = 'https://app.acme.example/auth?code=1'
    expect(upon(...start, approved(url)).effects).toEqual([{ do: 'leave', url }])
    for (const other of [
      'https://acme.example/?code=1',
      'javascript:alert(1)',
      '',
      '//app.acme.example/',
    ])
      expect(upon(...start, approved(other))).toMatchObject({
        state: { view: 'misdirected' },
        effects: [],
      })
  })
})

test('closing the page is an answer only while the person has not given one', () => {
  expect(undecided(initial)).toBe(false)
  expect(undecided(upon(...review).state)).toBe(true)
  expect(undecided(upon(...review, { type: 'approve' }).state)).toBe(false)
  expect(undecided(upon(...review, { type: 'decline' }).state)).toBe(false)
  expect(undecided(upon(...review, { type: 'decline' }, { type: 'declined' }).state)).toBe(false)
  expect(undecided(upon(...working).state)).toBe(false)
})

test('a page that was opened too often asks again when it may', () => {
  const limited = upon(opened, { type: 'not_loaded', problem: { kind: 'limited', after: 7 } })
  expect(limited.effects).toEqual([{ do: 'wait', seconds: 7, event: { type: 'retry' } }])
  expect(next(limited.state, { type: 'retry' })[1]).toEqual({ do: 'load' })
})

describe('a tab among others', () => {
  const superseded: Event = { type: 'superseded' }
  const released: Event = { type: 'released' }
  const front: Event = { type: 'front' }
  const elsewhere = [...review, superseded]
  const renewed: Event = { type: 'loaded', consent: { ...consent, approve_token: 'gtapr_2' } }
  const ended: Event = {
    type: 'not_loaded',
    problem: { kind: 'resolved', ended: { view: 'declined', kind: 'signup' } },
  }

  test('gives way to a newer one, and takes over when that is closed or this one is looked at', () => {
    expect(upon(...elsewhere)).toMatchObject({ state: { view: 'elsewhere' }, effects: [] })
    for (const event of [released, front]) {
      expect(upon(...elsewhere, event).effects).toEqual([{ do: 'load' }])
      expect(upon(...elsewhere, event, renewed).state.view).toBe('review')
      expect(upon(...elsewhere, event, ended).state.view).toBe('declined')
    }
    expect(upon(...review, released).effects).toEqual([])
  })

  test('asks again when it is looked at, without disturbing whoever reads', () => {
    const noticed = [...approving, refused('flagged')]
    const asked = upon(...noticed, front)
    expect(asked).toMatchObject({ state: { view: 'review' }, effects: [{ do: 'load' }] })
    expect(upon(...noticed, front, renewed).state).toEqual({
      ...asked.state,
      consent: { ...consent, approve_token: 'gtapr_2' },
    })
    for (const kind of ['offline', 'trouble', 'limited'] as const) {
      const failed: Event = { type: 'not_loaded', problem: { kind } }
      expect(upon(...noticed, front, failed)).toEqual({ state: asked.state, effects: [] })
    }
    expect(upon(...noticed, front, ended).state.view).toBe('declined')
    expect(upon(...working, front).effects).toEqual([])
  })

  test('an answer to that does not undo what was decided meanwhile', () => {
    const declining: Event[] = [...review, front, { type: 'decline' }]
    expect(upon(...declining, renewed).state).toMatchObject({ view: 'review', busy: 'decline' })
    expect(upon(...declining, ended).state).toMatchObject({ view: 'review', busy: 'decline' })
    expect(upon(...declining, { type: 'declined' }, renewed).state.view).toBe('declined')
    expect(upon(...working, renewed).state.view).toBe('working')
  })
})

test.each(['approved', 'declined', 'closed', 'failed'] as const)(
  'a request that was %s is told so',
  (view) => {
    const problem = { kind: 'resolved' as const, ended: { view, kind: 'login' as const } }
    expect(upon(opened, { type: 'not_loaded', problem }).state).toMatchObject({
      view,
      kind: 'login',
    })
    expect(upon(opened, { type: 'not_loaded', problem: { kind: 'resolved' } }).state.view).toBe(
      'resolved',
    )
  },
)

test('declining what is being approved elsewhere shows how that ends', () => {
  const event: Event = { type: 'not_declined', problem: { kind: 'in_progress' } }
  expect(upon(...review, { type: 'decline' }, event).effects).toEqual([{ do: 'load' }])
  const opening = upon(opened, { type: 'loaded', consent: { ...consent, approval: 'in_progress' } })
  expect(opening.state.view).toBe('working')
  expect(opening.effects).toEqual([{ do: 'approve', body: { approve_token: 'gtapr_1' } }])
})

describe('an approval that the agent has to claim', () => {
  const pending: Event = { type: 'approved', data: { status: 'pending', claim_code: '483 201' } }
  const again = { do: 'wait', seconds: 3, event: { type: 'ask_again' } }

  test('shows the code, and asks with the same proof whether it was told', () => {
    const claiming = [...approving, pending]
    expect(upon(...claiming)).toMatchObject({
      state: { view: 'claiming', code: '483 201' },
      effects: [again],
    })
    const body = { approve_token: 'gtapr_1', sealed_token: 'sealed', accepted_env_vars: [] }
    expect(upon(...claiming, { type: 'ask_again' }).effects).toEqual([{ do: 'approve', body }])
    expect(upon(...claiming, refused('in_progress', 1)).state.view).toBe('working')
    expect(upon(...claiming, { type: 'approved', data: { status: 'approved' } }).state.view).toBe(
      'approved',
    )
    expect(upon(...claiming, refused('offline'))).toMatchObject({
      state: { view: 'claiming', code: '483 201' },
    })
    expect(undecided(upon(...claiming).state)).toBe(false)
  })

  test('ends as the server says, and can be cancelled', () => {
    const claiming = [...approving, pending]
    expect(upon(...claiming, refused('resolved')).effects).toEqual([{ do: 'load' }])
    const ended: Event = {
      type: 'not_loaded',
      problem: { kind: 'resolved', ended: { view: 'unclaimed', kind: 'signup' } },
    }
    expect(upon(...claiming, refused('resolved'), ended).state.view).toBe('unclaimed')
    expect(upon(...claiming, { type: 'decline' }).effects).toEqual([{ do: 'decline' }])
    expect(upon(...claiming, { type: 'decline' }, { type: 'declined' }).state.view).toBe('declined')
    expect(upon(...claiming, { type: 'decline' }, pending).state.busy).toBe('decline')
    expect(upon(...claiming, refused('expired')).state.view).toBe('expired')
  })

  test('a reload shows the code that this tab was shown, and another page none', () => {
    const waiting = { ...consent, claim: 'waiting' as const }
    const reloaded: Event = { type: 'loaded', consent: waiting, code: '483 201' }
    expect(upon(opened, reloaded)).toMatchObject({
      state: { view: 'claiming', code: '483 201' },
      effects: [{ do: 'approve', body: { approve_token: 'gtapr_1' } }],
    })
    const unshown: Event = { type: 'approved', data: { status: 'pending' } }
    expect(upon(opened, reloaded, unshown).state.code).toBe('483 201')
    expect(upon(opened, { type: 'loaded', consent: waiting }, unshown).state).toMatchObject({
      view: 'claiming',
      code: null,
    })
  })
})

test('a name that the server asks for is typed, and sent from then on', () => {
  const asked = upon(...approving, refused('unnamed'))
  expect(asked.state).toMatchObject({ view: 'review', busy: null, notice: { kind: 'unnamed' } })
  const proved: Event[] = [{ type: 'approve' }, { type: 'proved', sealedToken: 'again' }]
  expect(upon(...approving, refused('unnamed'), loaded, ...proved).effects).toEqual([
    {
      do: 'approve',
      body: {
        approve_token: 'gtapr_1',
        sealed_token: 'again',
        accepted_env_vars: [],
        account_name: 'Harbour Notes',
      },
    },
  ])
})
