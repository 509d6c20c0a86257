import { expect, it } from 'vitest'
import { createLookupQueue } from '../../../../services/scoring/identity/waiting.ts'

const place = (organization_id: string, source: string, n: number) => ({
  ...{ subject: `https://a${n}${source}${organization_id.slice(4)}.example/`, source, dueAt: 0 },
  session: { session_id: `${organization_id} ${source} ${n}`, organization_id, environment: 'live' as const },
})

it('no source has more than its places, and what is in them is bounded', () => {
  const waiting = createLookupQueue({ most: 100, mostOfSource: 10 })
  const added = Array.from({ length: 50 }, (_, n) => waiting.add(place('org_1', 'a', n), 1) !== undefined)
  expect(added.filter(Boolean).length).toBe(10)
  for (let source = 0; source < 50; source++)
    for (let n = 0; n < 10; n++) waiting.add(place('org_1', `s${source}`, n), 1)
  expect(waiting.due(0, 10_000).length).toBe(100)
})

it('when all places are taken, a new source and another organization get some', () => {
  const waiting = createLookupQueue({ most: 100, mostOfSource: 10 })
  for (let source = 0; source < 10; source++)
    for (let n = 0; n < 10; n++) waiting.add(place('org_1', `s${source}`, n), 1)
  expect(waiting.add(place('org_1', 'new', 1), 1)).toBeDefined()
  for (let n = 0; n < 10; n++) expect(waiting.add(place('org_2', 's0', n), 1)).toBeDefined()
  const due = waiting.due(0, 10_000)
  expect(due.filter(({ share }) => share.organization === 'org_2').length).toBe(10)
  expect(due.filter(({ share }) => share.key === 'org_1 new').length).toBe(1)
  expect(due.length).toBe(100)
})

it('organizations take turns, and in each its sources', () => {
  const waiting = createLookupQueue()
  for (const source of ['a', 'b']) for (let n = 0; n < 3; n++) waiting.add(place('org_1', source, n), 1)
  waiting.add(place('org_2', 'c', 0), 1)
  const keys = (count: number) => waiting.due(0, count).map(({ share }) => share.key)
  expect([...keys(1), ...keys(1), ...keys(1), ...keys(1)]).toEqual([
    'org_1 a',
    'org_2 c',
    'org_1 b',
    'org_2 c',
  ])
  expect(keys(2).toSorted()).toEqual(['org_1 a', 'org_2 c'])
})

it('sessions that have waited too long free their places', () => {
  const waiting = createLookupQueue({ most: 1, mostOfSource: 1 })
  waiting.add(place('org_1', 'a', 1), 5)
  expect(waiting.add(place('org_1', 'a', 2), 5)).toBeUndefined()
  expect(waiting.due(6, 10)).toEqual([])
  expect(waiting.add(place('org_1', 'a', 2), 10)).toBeDefined()
})
