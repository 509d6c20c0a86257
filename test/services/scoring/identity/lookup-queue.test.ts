import { expect, it } from 'vitest'
import { createLookupQueue } from '../../../../services/scoring/identity/lookup-queue.ts'

interface Requester {
  organization?: string
  source?: string
  subject?: string
}

function createQueue() {
  const queue = createLookupQueue()
  let sessions = 0
  const add = (
    { organization = 'org_1', source = '192.0.2.1', subject }: Requester = {},
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
  const addMany = (count: number, place: (n: number) => Requester) =>
    Array.from({ length: count }, (_, n) => add(place(n))).filter((lookup) => lookup !== undefined)
      .length
  return { ...queue, add, addMany }
}

it('limits waiting sessions to 256 per source, 2,000 per organization and 20,000 in total', () => {
  const { addMany } = createQueue()
  expect(addMany(300, () => ({ source: 'a' }))).toBe(256)
  expect(addMany(3000, (n) => ({ source: `s${n}` }))).toBe(2000 - 256)
  expect(addMany(300, () => ({ organization: 'org_2', source: 'b' }))).toBe(256)
  expect(addMany(20_000, (n) => ({ organization: `org_many${n}`, source: `m${n}` }))).toBe(
    20_000 - 2256,
  )
})

it('returns due lookups in FIFO order', () => {
  const { add, due } = createQueue()
  const first = add()
  const second = add({ organization: 'org_2' })
  const third = add()
  expect(due(0, 2)).toEqual([first, second])
  expect(due(0, 10)).toEqual([first, second, third])
})

it.each<[string, number, (n: number) => Requester]>([
  ['eight lookups per organization', 8, (n) => ({ source: `s${n}` })],
  ['four lookups per source', 4, (n) => ({ organization: `org_${n}` })],
  [
    'four lookups per domain',
    4,
    (n) => ({ organization: `org_${n}`, source: `s${n}`, subject: `https://${n}.evil.example/` }),
  ],
])('at most %s are due at once, and do not block others', (_, most, place) => {
  const { add, addMany, due } = createQueue()
  addMany(20, place)
  const agent = add({ organization: 'org_good', source: 'good', subject: 'https://agent.test/' })
  expect(due(0, 12)).toHaveLength(most + 1)
  expect(due(0, 12)).toContain(agent)
})

it('after four failures for a domain, a source gets no more lookups of it, but other sources do', () => {
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

it('drops sessions that have waited too long', () => {
  const { add, addMany, due } = createQueue()
  expect(addMany(256, () => ({}))).toBe(256)
  expect(add()).toBeUndefined()
  expect(due(2, 10)).toEqual([])
  expect(add()).toBeDefined()
})
