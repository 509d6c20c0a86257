import { expect, test } from 'vitest'
import { findLiveBuild } from '../../../infra/event-store/builds.ts'
import { pruneBuild } from '../../../infra/event-store/prune.ts'
import { createSessionPruner } from '../../../projections/sessions/prune.ts'
import { visitorLink } from '../../support/session-scored.ts'
import { id, numbersIn, useReadback } from './support.ts'

const at = (n: number) => 1_760_000_000_000 + n * 1000

const readback = await useReadback()
const decision = (n: number) => ({
  session_id: id('sid', n),
  event_id: id('evt', n),
  evaluated_at: at(n),
  visitor: visitorLink({ id: id('vid', n) }),
})
await readback.score(decision(1), decision(2), decision(3))
const build = await findLiveBuild(readback.pool, 'sessions')
if (!build) throw new Error('no live build')
const expiredBefore = {
  sessions_before: at(2),
  decisions_before: at(3),
  visitors_before: at(4),
  webhooks_before: null,
}
await pruneBuild({
  pool: readback.pool,
  build,
  prune: createSessionPruner(),
  cutoffs: [{ organization_id: readback.organizationId, ...expiredBefore }],
})

test('an expired session is not listed and cannot be retrieved', async () => {
  expect(numbersIn(await readback.send({ url: '/v1/sessions' }))).toEqual([3, 2])
  expect((await readback.send({ url: `/v1/sessions/${id('sid', 1)}` })).status).toBe(404)
})

test('a session with expired decisions is listed with its verdict, but cannot be retrieved', async () => {
  const { body } = await readback.send({ url: '/v1/sessions' })
  expect(body.data[1].latest_decision).toMatchObject({ event_id: id('evt', 2) })
  expect((await readback.send({ url: `/v1/sessions/${id('sid', 2)}` })).status).toBe(404)
})

test('a session with an expired visitor has its id, but no lifecycle', async () => {
  const { body } = await readback.send({ url: `/v1/sessions/${id('sid', 3)}` })
  expect(body.data.visitor_fingerprint).toMatchObject({
    id: id('vid', 3),
    lifecycle: { first_seen_at: null, last_seen_at: null, seen_count: null },
  })
  expect((await readback.send({ url: `/v1/fingerprints/${id('vid', 3)}` })).status).toBe(404)
  expect((await readback.send({ url: '/v1/fingerprints' })).body.data).toEqual([])
})
