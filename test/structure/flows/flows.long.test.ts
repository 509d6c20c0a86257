import { existsSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { afterEach, expect, it } from 'vitest'
import { answersOf } from '../../../bench/recorded-answers.ts'
import { createCollectClient } from '../../../infra/wire/collect/client.ts'
import { headersOf } from '../../../services/cli/simulate/generate/headers.ts'
import { planSession } from '../../../services/cli/simulate/generate/plan.ts'
import type { Owner } from '../../support/cluster.ts'
import { eventually } from '../../support/eventually.ts'
import { openRaceWorld } from '../../support/gate-races.ts'
import { accept } from '../../support/webhook-behaviours.ts'
import { startWebhookReceiver } from '../../support/webhook-receiver.ts'
import { openWebhookWorld, sessionIds } from '../../support/webhook-world.ts'

/** Milliseconds for which an idle server is watched: longer than the longest of its timers that matter. */
const idleMs = 3000

/** Records which of the project's files one flow runs in a server process. */
function createRecorder() {
  const folder = mkdtempSync(path.join(tmpdir(), 'tidegate-flow-'))
  const socket = path.join(folder, 's')
  const hook = new URL('./record-hook.ts', import.meta.url).href
  const idle = new Set<string>()

  async function watchIdle(): Promise<void> {
    await take(socket)
    await delay(idleMs)
    for (const line of await take(socket)) idle.add(line)
  }

  return {
    /** The environment to start the server with. */
    env: { FROM_SOURCE: '1', RECORD_SOCKET: socket, NODE_OPTIONS: `--import=${hook}` },
    /** The files of which `flow` ran a function that an idle server, and the same server before and after, does not run. */
    async record(flow: () => Promise<void>): Promise<string[]> {
      await watchIdle()
      await flow()
      const ran = await take(socket)
      await watchIdle()
      const files = ran
        .filter((line) => !idle.has(line))
        .map((line) => line.slice(0, line.indexOf(':')))
      return [...new Set(files)].sort()
    },
    close: () => rmSync(folder, { recursive: true, force: true }),
  }
}

function take(socketPath: string): Promise<string[]> {
  const { promise, resolve, reject } = Promise.withResolvers<string[]>()
  const asked = request({ socketPath, path: '/' }, (response) => {
    const parts: Buffer[] = []
    response.on('data', (part: Buffer) => parts.push(part))
    response.on('end', () => {
      const text = Buffer.concat(parts).toString()
      if (response.statusCode === 200) resolve(text.split('\n').filter(Boolean))
      else reject(new Error(text))
    })
  })
  asked.on('error', reject)
  asked.end()
  return promise
}

/** A document that has posted nothing; `send` posts its first batch. */
async function openDocument(baseUrl: string, { publishable }: Owner, seed: string) {
  const plan = planSession(seed, 0, {
    clients: { web: 1, ios: 0, android: 0 },
    bots: 0,
    returning: 0,
  })
  const headers = headersOf(plan)
  const client = createCollectClient({
    endpoint: baseUrl,
    publishableKey: publishable.key,
    fetch: (url, request) =>
      fetch(url, { ...request, headers: { ...request.headers, ...headers } }),
    sdk: plan.sdk,
    ...(plan.page && { page: plan.page }),
  })
  const opened = await client.open()
  const [first] = plan.batches
  if (!first?.snapshot) throw new Error('a plan begins with a snapshot')
  const proofs = answersOf(first.snapshot.navigator.user_agent ?? '', opened)
  const batch = { ...first, snapshot: { ...first.snapshot, proofs } }
  return { sessionId: opened.sessionId, send: () => client.sendBatch(batch) }
}

const root = path.resolve(import.meta.dirname, '../../..')

/** Reads "Flows, file by file" of docs/internals/architecture.md. Throws for a path that is not there. */
function documentedFlows() {
  const page = readFileSync(path.join(root, 'docs/internals/architecture.md'), 'utf8')
  const part = /^## Flows, file by file\n(.*?)(?=^## )/ms.exec(page)?.[1]
  if (!part) throw new Error('docs/internals/architecture.md has no part "Flows, file by file"')
  const [intro = '', ...sections] = part.split(/^### /m)
  return {
    common: pathsIn(intro),
    flows: sections.map((text) => {
      const [title = ''] = text.split('\n')
      const [list = '', elsewhere = ''] = text.split('Runs too:')
      return { title, files: pathsIn(list), elsewhere: pathsIn(elsewhere) }
    }),
  }
}

/** The files that paths in backticks name; a folder stands for all that is below it, `*` for the files of one folder. */
function pathsIn(text: string): string[] {
  const named = [...text.matchAll(/`((?:schemas|infra|projections|services)\/[^`]*)`/g)].map(
    ([, name]) => String(name),
  )
  return named.flatMap((name) => {
    const found =
      name.includes('*') || name.endsWith('/')
        ? below(name)
        : [name].filter((file) => existsSync(path.join(root, file)))
    if (found.length === 0)
      throw new Error(`docs/internals/architecture.md names ${name}, which is not there`)
    return found
  })
}

function below(name: string): string[] {
  return globSync(name.endsWith('/') ? `${name}**/*.ts` : name, { cwd: root })
}

const page = documentedFlows()

let undo = new AsyncDisposableStack()
afterEach(async () => {
  await undo.disposeAsync()
  undo = new AsyncDisposableStack()
})

async function openWorld(roles: string) {
  const { env, record, close } = createRecorder()
  undo.defer(close)
  const world = await openWebhookWorld({ log: 'postgres', roles, env })
  undo.defer(world.close)
  /** Waits until the query's first column is the text. */
  const shows = (text: string, values: string[], expected: string) =>
    eventually(async () => {
      const { rows } = await world.pool.query(text, values)
      expect(String(Object.values(rows[0] ?? {})[0])).toBe(expected)
    })
  return { ...world, record, shows }
}

it('a batch, to its row', async () => {
  const { cluster, tenant, record, shows } = await openWorld('collect,api,scoring,projections')
  const document = async (seed: string) => openDocument(cluster.baseUrls[0] ?? '', tenant, seed)
  const decisions = 'select count(*)::int from read.decisions where session_id = $1'
  const run = async ({ sessionId, send }: Awaited<ReturnType<typeof document>>) => {
    await send()
    await shows(decisions, [sessionId], '1')
  }
  await run(await document('warm'))
  const measured = await document('measured')
  const ran = await record(() => run(measured))
  judge('A batch, to its row', ran)
  judge(
    'A visitor, known again',
    ran.filter((file) => file.startsWith('services/scoring/visitors/')),
  )
}, 180_000)

it('a rotation of a key', async () => {
  const { cluster, tenant, record, shows } = await openWorld('api,projections')
  const rotate = async () => {
    const keys = `/v1/organizations/${tenant.organizationId}/api-keys`
    const { id } = await cluster.read<{ id: string }>(keys, { body: { name: 'Old' } })
    return async () => {
      await cluster.read(`${keys}/${id}/rotations`, { method: 'POST' })
      await shows('select status from read.api_keys where key_id = $1', [id], 'rotating')
    }
  }
  await (await rotate())()
  expect(cluster.baseUrls).toHaveLength(1)
  judge('A rotation of a key', await record(await rotate()))
}, 180_000)

it('a webhook, from the decision to the delivery', async () => {
  const world = await openWorld('api,projections,webhooks')
  const receiver = await startWebhookReceiver({ choose: () => accept })
  undo.defer(receiver.close)
  await world.createEndpoint(receiver.url('/'), ['session.result.persisted'])
  const delivered = 'select count(*)::int from read.webhook_deliveries where status = $1'
  const deliver = async (name: string, count: number) => {
    await world.score(world.tenant, sessionIds(name, 1))
    await world.shows(delivered, ['succeeded'], String(count))
  }
  await deliver('warm', 1)
  judge(
    'A webhook, from the decision to the delivery',
    await world.record(() => deliver('measured', 2)),
  )
}, 180_000)

it('an approval of a signup', async () => {
  const recorder = createRecorder()
  undo.defer(recorder.close)
  const races = await openRaceWorld({ log: 'postgres', processes: 1, env: recorder.env })
  undo.defer(races.stop)
  const prepare = async () => {
    const { id } = await races.open()
    const body = await races.approval(id)
    return async () => {
      const { outcome } = await races.ask(`sessions/${id}/approve`, { body })
      expect(outcome).toBe('200')
    }
  }
  await (await prepare())()
  judge('An approval of a signup', await recorder.record(await prepare()))
}, 180_000)

/** Compares what ran with the flow's list, outside of which nothing may run, and prints how many files that are. */
function judge(title: string, ran: string[]): void {
  const flow = page.flows.find((documented) => documented.title === title)
  if (!flow)
    throw new Error(
      `docs/internals/architecture.md has no flow "${title}"; it runs\n${ran.join('\n')}`,
    )
  const common = ran.filter((file) => page.common.includes(file))
  console.log(
    `${title}: ${ran.length} files run, ${flow.files.length} listed, ${common.length} of the common ground's ${page.common.length}`,
  )
  const known = new Set([...page.common, ...flow.files, ...flow.elsewhere])
  const outside = ran.filter((file) => !known.has(file))
  expect(outside, `${title}: files that run and are not listed`).toEqual([])
}
