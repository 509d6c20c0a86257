import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { SessionState } from '../../services/scoring/session/state.ts'
import { jsonLines } from '../support/cli.ts'
import { type Cluster, clusterLogs, startCluster } from '../support/cluster.ts'
import { eventually } from '../support/eventually.ts'
import {
  eightBodies,
  hashOf,
  oneOfEight,
  openRawDocument,
  outcomeOf,
  type Post,
  postTo,
  type Raced,
  type RawDocument,
  type RawRequest,
  raceBodies,
} from '../support/sequence-race.ts'

const rounds = 200
/** Fewer than scoring remembers the hashes of. */
const roundsPerDocument = 20
/** In the middle of a document. */
const killedAt = 110
const refused = '409 session.sequence_mismatch'

interface Taken {
  sessionId: string
  seq: number
  request: RawRequest
  json: object
}

describe.each(clusterLogs())('one number raced by eight bodies on two processes, %s', (log) => {
  let cluster: Cluster
  let baseUrls: string[]
  const taken: Taken[] = []
  const outcomes: Raced['outcomes'][] = []
  const wonAtKill = new Set<string>()

  const posts = (): Post[] => baseUrls.map(postTo)
  const open = () => openRawDocument(postTo(baseUrls[0] ?? ''), cluster.owner.publishable.key)

  /** Starts a process to replace the killed one. */
  async function replaceSecond(): Promise<void> {
    const { baseUrl } = await cluster.serve('collect,scoring,projections')
    baseUrls = [baseUrls[0] ?? '', baseUrl]
  }

  /** Kills a process under eight requests. What got no answer is sent again, to both, and one body may have won. */
  async function raceAndKill(requests: RawRequest[]): Promise<Raced> {
    const racing = raceBodies(requests, posts())
    await cluster.kill(1)
    const early = await racing
    await replaceSecond()
    const again = await raceBodies(requests, posts())
    for (const { request } of [...early.taken, ...again.taken]) wonAtKill.add(hashOf(request))
    return again
  }

  async function raceDocument(document: RawDocument, from: number): Promise<void> {
    let { nonce } = document
    for (let seq = 1; seq <= roundsPerDocument; seq++) {
      const requests = eightBodies(document, seq, nonce)
      const raced =
        from + seq === killedAt ? await raceAndKill(requests) : await raceBodies(requests, posts())
      outcomes.push(raced.outcomes)
      for (const { request, answer } of raced.taken) {
        taken.push({ sessionId: document.sessionId, seq, request, json: answer.json })
        nonce = answer.json.nonce ?? ''
      }
    }
  }

  /** By number, as scoring remembers them. */
  const acknowledged = (session: string) =>
    Object.fromEntries(
      taken
        .filter(({ sessionId }) => sessionId === session)
        .map(({ seq, request }) => [seq, hashOf(request).slice(0, 16)]),
    )

  async function bodiesOnTheLog(): Promise<Set<string>> {
    const { stdout } = await cluster.cli(['events', '--topic', 'tidegate.collect.v1'])
    const stored = jsonLines<{ data: { body_hash?: string } }>(stdout)
    return new Set(stored.flatMap(({ data }) => data.body_hash ?? []))
  }

  beforeAll(async () => {
    cluster = await startCluster({ log, processes: 2, roles: 'collect,scoring,projections' })
    baseUrls = [...cluster.baseUrls]
    for (let round = 0; round < rounds; round += roundsPerDocument)
      await raceDocument(await open(), round)
  }, 600_000)
  afterAll(() => cluster?.stop())

  it('is taken once in each of 200 rounds, also when a process is killed', () => {
    expect(outcomes).toEqual(Array(rounds).fill(oneOfEight))
    expect(taken).toHaveLength(rounds)
    expect(wonAtKill.size).toBe(1)
  })

  it('is on the log as acknowledged, and as nothing else', async () => {
    expect(await bodiesOnTheLog()).toEqual(new Set(taken.map(({ request }) => hashOf(request))))
  })

  it('counts in scoring, and marks no session', async () => {
    const sessions = [...new Set(taken.map(({ sessionId }) => sessionId))]
    await eventually(
      async () => {
        const { rows } = await cluster.pool.query<{ state: string }>(
          'select state from scoring.sessions',
        )
        const states = rows.map(({ state }): SessionState => JSON.parse(state))
        expect(states.map(({ session_id }) => session_id).toSorted()).toEqual(sessions.toSorted())
        for (const { session_id, batches, conflicts, documents } of states) {
          expect({ batches, conflicts }).toEqual({ batches: roundsPerDocument, conflicts: 0 })
          expect(documents[0]?.bodies).toEqual(acknowledged(session_id))
        }
      },
      { timeoutMs: 60_000, intervalMs: 200 },
    )
  }, 70_000)

  it('is refused when it is replayed to a process that started since; the last body gets its answer', async () => {
    await cluster.kill(0)
    baseUrls.reverse()
    await replaceSecond()
    for (const post of posts()) {
      for (const { seq, request, json } of taken) {
        const answer = await post(request)
        expect(outcomeOf(answer)).toBe(seq === roundsPerDocument ? '200' : refused)
        if (seq === roundsPerDocument) expect(answer.json).toEqual(json)
      }
    }
  }, 300_000)

  it('is refused with 503 while the claims are away, and taken once they are back', async () => {
    const document = await open()
    const [first, second] = [document.body(1, document.nonce), document.body(1, document.nonce)]
    const locker = await cluster.pool.connect()
    try {
      await locker.query('begin; lock table tidegate.collect_claims in access exclusive mode')
      const answers = await Promise.all(posts().map((post) => post(first)))
      expect(answers.map(outcomeOf)).toEqual(Array(2).fill('503 service.unavailable'))
    } finally {
      await locker.query('rollback')
      locker.release()
    }
    const [one, other] = posts()
    expect(await one?.(first).then(outcomeOf)).toBe('200')
    expect(await other?.(second).then(outcomeOf)).toBe(refused)
    expect(await other?.(first).then(outcomeOf)).toBe('200')
    const stored = await bodiesOnTheLog()
    expect(stored).toContain(hashOf(first))
    expect(stored).not.toContain(hashOf(second))
  }, 60_000)
})
