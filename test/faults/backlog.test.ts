import { createHash } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  type CollectClient,
  CollectError,
  type FetchLike,
} from '../../infra/wire/collect/client.ts'
import { type Cluster, clusterLogs, startCluster } from '../support/cluster.ts'
import { createTestClient } from '../support/devices.ts'
import { eventually } from '../support/eventually.ts'
import { metricOf } from '../support/metrics.ts'
import type { ServerProcess } from '../support/server-process.ts'

const maxBacklogMs = 500
const env = { COLLECT_MAX_BACKLOG_MS: String(maxBacklogMs), HAND_OFF_TIMEOUT_MS: '1000' }
const patient = { timeoutMs: 30_000, intervalMs: 50 }
const quiet = { version: 1, elapsed_ms: 5 } as const
/** Sessions under way when scoring is paused. */
const running = 8

interface Answer {
  url: string
  status: number
  retryAfter: string | null
  bodyHash: string
}

describe.each(clusterLogs())('collect with scoring in another process, %s', (log) => {
  let cluster: Cluster
  let scoring: ServerProcess
  beforeAll(async () => {
    cluster = await startCluster({ log, env, roles: 'collect,projections,api' })
  }, 120_000)
  afterAll(() => cluster?.stop())

  const newClient = (answers: Answer[] = [], attempts = 1): CollectClient =>
    createTestClient(cluster, { fetch: noting(answers), retry: { attempts } })

  /** Opens sessions until one is refused; the ids of those that were not. */
  async function openUntilShed(answers: Answer[]): Promise<string[]> {
    const opened: string[] = []
    const shed = await eventually(async () => {
      const error = await newClient(answers)
        .open()
        .then(({ sessionId }) => opened.push(sessionId))
        .catch((error: unknown) => error)
      expect(error).toBeInstanceOf(CollectError)
      return error
    }, patient)
    expect(shed).toMatchObject({ status: 503, code: 'service.unavailable' })
    return opened
  }

  async function openFresh(): Promise<CollectClient> {
    const client = newClient()
    await client.open()
    return client
  }

  const backlogSeconds = () => metricOf(cluster.baseUrl, 'tidegate_collect_backlog_seconds')

  it('sheds new sessions while nothing is scored, and takes them again once that goes on', async () => {
    const client = newClient()
    await client.open()
    await openUntilShed([])
    expect((await client.sendBatch(quiet)).seq).toBe(1)
    scoring = await cluster.serve('scoring')
    const fresh = await eventually(openFresh, patient)
    await fresh.sendBatch(quiet)
    expect(await eventually(() => fresh.requestResult(quiet), patient)).toMatchObject({
      sealedToken: expect.any(String),
    })
  }, 120_000)

  it('sheds by age while scoring is paused, and loses nothing of what it acknowledged', async () => {
    const answers: Answer[] = []
    const clients = Array.from({ length: running }, () => newClient(answers, 100))
    const ids = (await Promise.all(clients.map((client) => client.open()))).map(
      ({ sessionId }) => sessionId,
    )
    await eventually(async () => expect(await backlogSeconds()).toBe(0), patient)
    const { handOffs, others } = await whilePaused(scoring, async () => {
      await Promise.all(clients.map((client) => client.sendBatch(quiet)))
      const handOffs = clients.map((client) => client.requestResult(quiet))
      const others = await openUntilShed(answers)
      // The window of the previous overload may already have rejected a request.
      const atLeast = maxBacklogMs / 1000
      await eventually(async () => expect(await backlogSeconds()).toBeGreaterThan(atLeast), patient)
      // None hangs while nothing is scored.
      await eventually(() => {
        expect(handOffsIn(answers).map(([first]) => first?.status)).toEqual(
          Array(running).fill(503),
        )
      }, patient)
      return { handOffs, others }
    })
    expect((await Promise.all(handOffs)).map(({ sessionId }) => sessionId)).toEqual(ids)
    expectSameBytes(handOffsIn(answers))
    for (const { status, retryAfter } of answers.filter(({ status }) => status !== 200)) {
      expect({ status, retryAfter }).toEqual({
        status: 503,
        retryAfter: expect.stringMatching(/^[123]$/),
      })
    }
    for (const id of ids) await cluster.read(`/v1/sessions/${id}`)
    await expectOnLog([...others, ...acknowledged(answers)])
    await eventually(async () => expect(await backlogSeconds()).toBe(0), patient)
    expect(await openFresh()).toBeDefined()
  }, 120_000)

  async function expectOnLog(names: string[]): Promise<void> {
    const { stdout } = await cluster.cli(['events', '--topic', 'tidegate.collect.v1'])
    for (const name of names) expect(stdout).toContain(`"${name}"`)
  }
})

function noting(answers: Answer[]): FetchLike {
  return async (url, request) => {
    const response = await fetch(url, request)
    const { status, headers } = response
    const bodyHash = createHash('sha256').update(request.body).digest('hex')
    answers.push({ url, status, retryAfter: headers.get('retry-after'), bodyHash })
    return response
  }
}

/** Stops only this process; it goes on whatever becomes of the work. */
async function whilePaused<T>({ pid }: ServerProcess, work: () => Promise<T>): Promise<T> {
  process.kill(pid, 'SIGSTOP')
  try {
    return await work()
  } finally {
    process.kill(pid, 'SIGCONT')
  }
}

/** The answers to the results requests of each session. */
function handOffsIn(answers: Answer[]): Answer[][] {
  const results = answers.filter(({ url }) => url.endsWith('/results'))
  return [...Map.groupBy(results, ({ url }) => url).values()]
}

function expectSameBytes(handOffs: Answer[][]): void {
  for (const answers of handOffs) {
    expect(answers.map(({ status }) => status).at(-1)).toBe(200)
    expect(new Set(answers.map(({ bodyHash }) => bodyHash)).size).toBe(1)
  }
}

/** The hashes of bodies that were answered 200. */
function acknowledged(answers: Answer[]): string[] {
  const bodies = answers.filter(({ url, status }) => status === 200 && url.includes('/documents/'))
  return bodies.map(({ bodyHash }) => bodyHash)
}
