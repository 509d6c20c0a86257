import { expect, it } from 'vitest'
import { createLookupQueue } from '../../../../services/scoring/identity/waiting.ts'

interface Place {
  organization?: string
  source?: string
  subject?: string
}

function createQueue() {
  const queue = createLookupQueue()
  let sessions = 0
  const add = (
    { organization = 'org_1', source = '192.0.2.1', subject }: Place = {},
    until = 1,
  ) => {
    const session_id = `sid_${sessions++}`
    const session = {
      session_id,
      organization_id: organization,
      environment: 'live' as const,
      source,
    }
    return queue.add(
      { subject: subject ?? `https://a${sessions}.example/`, session, dueAt: 0 },
      until,
    )
  }
  const addMany = (count: number, place: (n: number) => Place) =>
    Array.from({ length: count }, (_, n) => add(place(n))).filter((lookup) => lookup !== undefined)
      .length
  return { ...queue, add, addMany }
}

it('256 sessions of one source wait, 2,000 of one organization and 20,000 in all', () => {
  const { addMany } = createQueue()
  expect(addMany(300, () => ({ source: 'a' }))).toBe(256)
  expect(addMany(3000, (n) => ({ source: `s${n}` }))).toBe(2000 - 256)
  expect(addMany(300, () => ({ organization: 'org_2', source: 'b' }))).toBe(256)
  expect(addMany(20_000, (n) => ({ organization: `org_many${n}`, source: `m${n}` }))).toBe(
    20_000 - 2256,
  )
})

it('look-ups are due in the order in which they came', () => {
  const { add, due } = createQueue()
  const first = add()
  const second = add({ organization: 'org_2' })
  const third = add()
  expect(due(0, 2)).toEqual([first, second])
  expect(due(0, 10)).toEqual([first, second, third])
})

it.each<[string, number, (n: number) => Place]>([
  ['of one organization eight', 8, (n) => ({ source: `s${n}` })],
  ['of one source four', 4, (n) => ({ organization: `org_${n}` })],
  [
    'of one domain four',
    4,
    (n) => ({ organization: `org_${n}`, source: `s${n}`, subject: `https://${n}.evil.example/` }),
  ],
])('%s are due at once, and others behind them too', (_, most, place) => {
  const { add, addMany, due } = createQueue()
  addMany(20, place)
  const agent = add({ organization: 'org_good', source: 'good', subject: 'https://agent.test/' })
  expect(due(0, 12)).toHaveLength(most + 1)
  expect(due(0, 12)).toContain(agent)
})

it('a source whose four look-ups of a domain failed names no more of it, but other sources do', () => {
  const { add, due } = createQueue()
  const of = (n: number, source: string) => add({ subject: `https://${n}.agents.example/`, source })
  for (let n = 0; n < 4; n++) {
    const failed = of(n, 'a')
    if (failed) Object.assign(failed, { hasFailed: true, dueAt: 1 })
  }
  of(5, 'a')
  const elsewhere = of(5, 'b')
  expect(due(0, 12)).toEqual([elsewhere])
})

it('sessions that have waited too long free their places', () => {
  const { add, addMany, due } = createQueue()
  expect(addMany(256, () => ({}))).toBe(256)
  expect(add()).toBeUndefined()
  expect(due(2, 10)).toEqual([])
  expect(add()).toBeDefined()
})
