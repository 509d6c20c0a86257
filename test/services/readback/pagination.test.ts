import { randomInt } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { id, type Readback, startReadback } from './support.ts'

let readback: Readback
const start = 1_760_000_000_000

beforeAll(async () => {
  readback = await startReadback()
})
afterAll(() => readback.stop())

/** Ten sessions share each time, so that pages end in the middle of a tie. */
function session(number: number, time: number) {
  return {
    session_id: id('sid', number),
    event_id: id('evt', number),
    evaluated_at: start + Math.floor(time / 10),
  }
}

test('pages show every row that was there throughout exactly once, while others come and move', async () => {
  const there = Array.from({ length: 100 }, (_, index) => session(index, index))
  await readback.score(...there)
  const seen: string[] = []
  let cursor = ''
  for (let round = 0; ; round++) {
    const limit = 1 + randomInt(17)
    const { status, body } = await readback.send({ url: `/v1/sessions?limit=${limit}${cursor}` })
    expect(status).toBe(200)
    expect(body.data.length).toBeLessThanOrEqual(limit)
    expect(body.pagination.limit).toBe(limit)
    seen.push(...body.data.map((row: { id: string }) => row.id))
    if (!body.pagination.has_more) break
    cursor = `&cursor=${body.pagination.next_cursor}`
    // New ones at the front and among what is still to come; one that was already shown moves to the front.
    const moved = { ...session(99, 2000 + round), event_id: id('evt', 10_000 + round) }
    await readback.score(session(1000 + 2 * round, 1000 + round), session(1001 + 2 * round, 5), moved)
  }
  const counts = there.map(({ session_id }) => seen.filter((one) => one === session_id).length)
  expect(counts).toEqual(there.map(() => 1))
  expect(new Set(seen).size).toBe(seen.length)
})
