import { createHash, randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  type CollectClient,
  createCollectClient,
  type FetchLike,
} from '../../infra/wire/collect/client.ts'
import { cli } from '../support/cli.ts'
import { eventually } from '../support/eventually.ts'
import { metricOf } from '../support/metrics.ts'
import { type RunningTidegate, startTidegate } from '../support/tidegate.ts'

/** Sessions under way when the load begins, which hand off in the middle of it. */
const running = 16
/** Opens begun in each tick, whatever became of those before. */
const tick = { ms: 25, opens: 25 }
const mostTicks = 200
/** The load goes on until so many new sessions were shed. */
const enoughShed = 400
const mostGrowthMb = 400
/** So few in flight that each tick's opens are beyond what is admitted, however fast the machine is. */
const env = {
  COLLECT_MAX_BACKLOG_MS: '100',
  COLLECT_MAX_IN_FLIGHT: '40',
  HAND_OFF_TIMEOUT_MS: '2000',
}

interface Answer {
  kind: string
  status: number
  retryAfter: string | null
}

interface Seen {
  answers: Answer[]
  /** Hashes of bodies with response 200, which must be on the log. */
  bodyHashes: string[]
  openedIds: string[]
}

const quiet = { version: 1, elapsed_ms: 5 } as const
const sdk = { name: 'test', version: '1', platform: 'ios' } as const

function clientOf(
  { baseUrl, credentials }: RunningTidegate,
  seen: Seen,
  attempts: number,
): CollectClient {
  return createCollectClient({
    endpoint: baseUrl,
    publishableKey: credentials.live.ios_publishable_key,
    fetch: noting(seen),
    sdk,
    retry: { attempts },
  })
}

function noting(seen: Seen): FetchLike {
  return async (url, request) => {
    const response = await fetch(url, request)
    const { status, headers } = response
    const kind = url.slice(url.lastIndexOf('/') + 1)
    seen.answers.push({ kind, status, retryAfter: headers.get('retry-after') })
    if (status === 200 && kind !== 'sessions')
      seen.bodyHashes.push(createHash('sha256').update(request.body).digest('hex'))
    return response
  }
}

/** Any 32 bytes are a public key, so an open costs the sender nothing. */
async function openOne({ baseUrl, credentials }: RunningTidegate, seen: Seen): Promise<void> {
  const response = await fetch(`${baseUrl}/v2/collect/sessions`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${credentials.live.ios_publishable_key}`,
      'content-type': 'application/json',
    },
    body: JSON.stringify({ clientPublicKey: randomBytes(32).toString('base64url'), sdk }),
  })
  const { status, headers } = response
  seen.answers.push({ kind: 'sessions', status, retryAfter: headers.get('retry-after') })
  const { sessionId } = (await response.json()) as { sessionId?: string }
  if (sessionId) seen.openedIds.push(sessionId)
}

const shedOf = ({ answers }: Seen) =>
  answers.filter(({ kind, status }) => kind === 'sessions' && status === 503).length

/** An open loop: a slow answer makes the next tick no later. Bounded in time and count. */
async function overload(server: RunningTidegate, seen: Seen): Promise<void> {
  const opens: Promise<void>[] = []
  for (let i = 0; i < mostTicks && shedOf(seen) < enoughShed; i++) {
    opens.push(...Array.from({ length: tick.opens }, () => openOne(server, seen)))
    await delay(tick.ms)
  }
  await Promise.all(opens)
}

async function handOff(client: CollectClient): Promise<string> {
  await client.sendBatch(quiet)
  return (await client.requestResult(quiet)).sealedToken
}

async function peakMb(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024
}

describe('an open loop of new sessions far beyond what one process takes', () => {
  let server: RunningTidegate
  const seen: Seen = { answers: [], bodyHashes: [], openedIds: [] }
  let tokens: string[]
  let sessionIds: string[]
  let grownMb: number

  beforeAll(async () => {
    server = await startTidegate({ env, hasPostgres: true })
    const clients = Array.from({ length: running }, () => clientOf(server, seen, 100))
    const opened = await Promise.all(clients.map((client) => client.open()))
    sessionIds = opened.map(({ sessionId }) => sessionId)
    const before = await peakMb(server.pid)
    const load = overload(server, seen)
    tokens = await Promise.all(clients.map(handOff))
    await load
    grownMb = (await peakMb(server.pid)) - before
    const results = seen.answers
      .filter(({ kind }) => kind === 'results')
      .map(({ status }) => status)
    console.log(
      `${seen.openedIds.length} opened, ${shedOf(seen)} shed, results ${results}, grown ${grownMb} MB`,
    )
  }, 120_000)

  afterAll(() => server?.stop())

  it('sheds new sessions, and says when to come back', () => {
    expect(shedOf(seen)).toBeGreaterThanOrEqual(enoughShed)
    for (const { status, retryAfter } of seen.answers) {
      expect([200, 503]).toContain(status)
      if (status === 503) expect(['1', '2', '3']).toContain(retryAfter)
    }
  })

  it('finishes the running ones', () => {
    expect(tokens).toHaveLength(running)
  })

  it('keeps its memory within bounds', () => {
    expect(grownMb).toBeLessThan(mostGrowthMb)
  })

  it('takes a fresh session at once when the load is over, and hands it off', async () => {
    const fresh = async () => {
      const client = clientOf(server, seen, 1)
      sessionIds.push((await client.open()).sessionId)
      return handOff(client)
    }
    expect(await eventually(fresh, { timeoutMs: 30_000, intervalMs: 250 })).toEqual(
      expect.any(String),
    )
    await eventually(async () =>
      expect(await metricOf(server.baseUrl, 'tidegate_collect_backlog_seconds')).toBe(0),
    )
    expect(await metricOf(server.baseUrl, 'tidegate_collect_in_flight')).toBe(0)
  }, 60_000)

  it('has everything on the log that it acknowledged', async () => {
    const { stdout } = await cli(['events', '--topic', 'tidegate.collect.v1'], {
      DATA_DIR: server.dataDir,
    })
    for (const name of [...seen.openedIds, ...seen.bodyHashes])
      expect(stdout).toContain(`"${name}"`)
  }, 60_000)

  it('shows every session of which it acknowledged a body', async () => {
    const headers = { authorization: `Bearer ${server.credentials.live.secret_key}` }
    await eventually(
      async () => {
        const answers = await Promise.all(
          sessionIds.map((id) => fetch(`${server.baseUrl}/v1/sessions/${id}`, { headers })),
        )
        expect(answers.filter(({ status }) => status !== 200)).toEqual([])
      },
      { timeoutMs: 30_000, intervalMs: 200 },
    )
  }, 60_000)
})
