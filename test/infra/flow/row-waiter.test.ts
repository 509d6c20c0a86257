import { afterEach, expect, test } from 'vitest'
import { createRowWaiter, type RowWaiter } from '../../../infra/flow/row-waiter.ts'

let waiter: RowWaiter<string, string> | undefined
afterEach(() => waiter?.close())

/** Creates a waiter for rows that the test adds. `advance` notifies it. */
function start() {
  const rows = new Map<string, string>()
  const searches: string[][] = []
  let isBroken = false
  let advance = (_ids?: string[]) => {}
  const made = createRowWaiter<string, string>({
    async find(ids, found) {
      searches.push(ids)
      const fails = isBroken
      await new Promise(setImmediate)
      if (fails) throw new Error('connection lost')
      for (const id of ids) {
        const row = rows.get(id)
        if (row !== undefined) found(id, row)
      }
    },
    onAdvance(listener) {
      advance = listener
      return () => {}
    },
    pollMs: 60_000,
  })
  waiter = made
  const waitFor = (id: string, ms = 5000) =>
    made.waitFor(id, { timeoutMs: ms, onTimeout: async () => `no ${id}` })
  return {
    rows,
    searches,
    waitFor,
    advance: (...ids: string[]) => advance(ids.length > 0 ? ids : undefined),
    breakDown: (value: boolean) => (isBroken = value),
  }
}

test('many waiters share one search at a time, and each gets its row', async () => {
  const { rows, searches, waitFor, advance } = start()
  const waits = ['a', 'b', 'a'].map((id) => waitFor(id))
  await expect.poll(() => searches.length).toBe(2)
  for (const id of ['a', 'b']) rows.set(id, `row ${id}`)
  advance()
  expect(await Promise.all(waits)).toEqual(['row a', 'row b', 'row a'])
  expect(searches.map((ids) => ids.toSorted())).toEqual([['a'], ['a', 'b'], ['a', 'b']])
})

test('a notification with ids limits the search to them', async () => {
  const { rows, searches, waitFor, advance } = start()
  const [a, b] = [waitFor('a'), waitFor('b')]
  await expect.poll(() => searches.length).toBe(2)
  for (const id of ['a', 'b']) rows.set(id, `row ${id}`)
  advance('b', 'c')
  expect(await b).toBe('row b')
  expect(searches.at(-1)).toEqual(['b'])
  advance('a')
  expect(await a).toBe('row a')
})

test('a timed-out waiter gets the result of onTimeout, and its id is not searched for again', async () => {
  const { rows, searches, waitFor } = start()
  expect(await waitFor('a', 1)).toBe('no a')
  rows.set('b', 'row b')
  expect(await waitFor('b')).toBe('row b')
  expect(searches.at(-1)).toEqual(['b'])
})

test('a failed search is retried', async () => {
  const { rows, searches, waitFor, advance, breakDown } = start()
  breakDown(true)
  const wait = waitFor('a')
  await expect.poll(() => searches.length).toBe(1)
  rows.set('a', 'row a')
  breakDown(false)
  advance()
  expect(await wait).toBe('row a')
})
