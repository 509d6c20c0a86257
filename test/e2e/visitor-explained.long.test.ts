import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import { cli } from '../support/cli.ts'
import { type Cluster, startCluster } from '../support/cluster.ts'
import { readAs, type Visit, visitAs, visitorOf } from '../support/devices.ts'
import { longAgoAt } from '../support/long-ago.ts'

const device = 1
const identified = z.object({ identification: z.looseObject({ of_visitors: z.number() }) })

let cluster: Cluster
let first: Visit
let again: Visit
let visitor: string

beforeAll(async () => {
  cluster = await startCluster({ log: 'postgres', processes: 1 })
  first = await visitAs(device, reader())
  visitor = await visitorOf(reader(), first)
  await longAgoAt(String(cluster.settings.DATABASE_URL), [first.sessionId])
  again = await visitAs(device, reader())
  expect(await visitorOf(reader(), again)).toBe(visitor)
}, 60_000)
afterAll(() => cluster?.stop())

const reader = () => ({ baseUrl: cluster.baseUrls[0] ?? '', owner: cluster.owner })

/** As described in /openapi.json. */
async function identification(path: string) {
  const headers = { authorization: `Bearer ${cluster.owner.secret.key}` }
  const answer = await cluster.fetch(0, path, { headers })
  return z.object({ data: identified }).parse(await answer.json()).data.identification
}

describe('why a session is of its visitor is said', () => {
  it('in its detail, and in that of a visitor about the newest session', async () => {
    const [one, other] = [first, again].map(
      ({ sessionId }) => `/v1/sessions/${sessionId}?include=identification`,
    )
    expect(await identification(String(one))).toMatchObject({
      decided_by: 'nobody_before',
      chosen: null,
    })
    const expected = await identification(String(other))
    expect(expected).toMatchObject({
      session_id: again.sessionId,
      decided_by: 'look',
      bits_needed: 0,
      next: null,
      chosen: {
        visitor_id: visitor,
        same_network: true,
        components: { changed: [], unknown: [{ name: 'memory', visitors_with_it: null }] },
      },
    })
    expect(await identification(`/v1/fingerprints/${visitor}?include=identification`)).toEqual(
      expected,
    )
    expect(await readAs(reader(), `/v1/sessions/${again.sessionId}`)).not.toHaveProperty(
      'identification',
    )
  })

  it('by a command, without master keys', async () => {
    const settings = { DATABASE_URL: String(cluster.settings.DATABASE_URL) }
    const explain = (...args: string[]) => cli(['visitors', 'explain', ...args], settings)
    const { stdout } = await explain(again.sessionId)
    expect(stdout).toContain(`Visitor:    ${visitor}\nDecided by: how the machine looks\n`)
    expect(stdout).toMatch(/canvas +│ 1 of 1 +│ agreed +│ - /)
    const { data } = JSON.parse((await explain(again.sessionId, '--json')).stdout)
    expect(data).toEqual(
      await identification(`/v1/sessions/${again.sessionId}?include=identification`),
    )
    const unknown = await explain(`sid_${'0'.repeat(26)}`)
    expect(unknown).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('No session with this id'),
    })
  }, 60_000)
})
