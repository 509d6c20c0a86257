import { randomInt } from 'node:crypto'
import { expect, test } from 'vitest'
import { rebuild } from '../../../infra/event-store/rebuild.ts'
import { sessionsProjection } from '../../../projections/sessions/projection.ts'
import { visitorErased } from '../../support/erased.ts'
import { noSkips } from '../../support/no-skips.ts'
import { silent } from '../../support/projections.ts'
import { visitorLink } from '../../support/session-scored.ts'
import { id, useReadback } from './support.ts'

const start = 1_760_000_000_000

const readback = await useReadback()

interface Walk {
  query: string
  seen: string[]
  /** Undefined once all pages were read. */
  cursor: string | undefined
}

/** Reads the next page, if there is one. */
async function readOn(walk: Walk): Promise<void> {
  if (walk.cursor === undefined) return
  const url = `/v1/sessions?limit=${1 + randomInt(9)}&${walk.query}${walk.cursor && `&cursor=${walk.cursor}`}`
  const { status, body } = await readback.send({ url })
  expect(status).toBe(200)
  walk.seen.push(...body.data.map((row: { id: string }) => row.id))
  walk.cursor = body.pagination.next_cursor
}

/** Ten sessions share each time, so that pages end within ties. */
const at = (number: number, time: number) => ({
  session_id: id('sid', number),
  event_id: id('evt', number),
  evaluated_at: start + Math.floor(time / 10),
  visitor: visitorLink({ id: id('vid', number) }),
})

test('pages have every row that existed throughout exactly once, during a rebuild, new decisions, visitor changes and erasures', async () => {
  const decisions = Array.from({ length: 90 }, (_, n) => at(5000 + n, n))
  await readback.score(...decisions)
  const since = `since=${new Date(start).toISOString()}`
  const queries = [
    since,
    `${since}&handed_off=false`,
    `${since}&search=signup`,
    `${since}&verdict=human`,
  ]
  const walks = queries.map((query): Walk => ({ query, seen: [], cursor: '' }))
  const altered = new Set<string>()
  let rebuilding: ReturnType<typeof rebuild> | undefined
  for (let round = 0; walks.some(({ cursor }) => cursor !== undefined); round++) {
    await Promise.all(walks.map(readOn))
    if (round > 6) continue
    if (round === 1) rebuilding = rebuild({ ...rebuildOptions, ...readback })
    const moved = { ...at(5020 + round, 3000 + round), event_id: id('evt', 30_000 + round) }
    await readback.score(at(6000 + round, 2000 + round), at(7000 + round, 5), moved)
    await readback.write(about(), split(5010 + round), erased(5040 + round))
    await readback.caughtUp()
    for (const number of [5020 + round, 5040 + round]) altered.add(id('sid', number))
    if (round !== 4) continue
    expect(await rebuilding).toMatchObject({ switched: true, equal: true })
    expect(walks.map(({ cursor }) => cursor)).not.toContain(undefined)
  }
  const stayed = decisions.map(({ session_id }) => session_id).filter((one) => !altered.has(one))
  for (const { query, seen } of walks) {
    expect(new Set(seen).size, query).toBe(seen.length)
    expect(seen.filter((one) => stayed.some((other) => other === one)).toSorted(), query).toEqual(
      stayed,
    )
  }
}, 60_000)

const rebuildOptions = { projection: sessionsProjection, logger: silent, skips: noSkips }
const about = () => ({ organizationId: readback.organizationId, environment: 'live' }) as const

function split(number: number) {
  const data = {
    organization_id: readback.organizationId,
    environment: 'live' as const,
    session_id: id('sid', number),
    event_id: id('evt', 40_000 + number),
    visitor_id: id('vid', 50_000 + number),
    earlier_visitor_id: id('vid', number),
    cause: 'continuity_returned' as const,
    confidence: 90,
    split_at: start,
  }
  return { type: 'VisitorSplit' as const, data }
}

function erased(number: number) {
  const changes = {
    organization_id: readback.organizationId,
    event_id: id('evt', 60_000 + number),
  }
  return { type: 'VisitorErased' as const, data: visitorErased([id('sid', number)], changes) }
}
