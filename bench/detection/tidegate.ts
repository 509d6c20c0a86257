import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { promisify } from 'node:util'
import { inflateRawSync } from 'node:zlib'
import { z } from 'zod'
import { openToken } from '../../infra/wire/sealed-token.ts'
import type { SentObservations } from '../../schemas/observations.ts'
import type { DevelopmentCredentials, EnvironmentKeys } from '../../services/cli/credentials.ts'
import { startChild } from '../child.ts'

const run = promisify(execFile)
const root = path.resolve(import.meta.dirname, '../..')

const fired = z.object({
  signal: z.string(),
  role: z.string(),
  category: z.string(),
  strength: z.string(),
  signal_score: z.number(),
})
const detail = z.object({
  data: z.object({
    decision: z.object({
      event_id: z.string(),
      automation_status: z.string(),
      risk_score: z.number(),
    }),
    signals_fired: z.array(fired),
  }),
})
const token = z.object({ decision: z.object({ event_id: z.string() }) })
const recorded = z.object({ type: z.string(), data: z.object({ payload: z.string() }) })

export type FiredSignal = z.output<typeof fired>

export type Verdict = 'human' | 'inconclusive' | 'bot'

/** Session data that a backend reads. */
export interface Judgement {
  verdict: Verdict
  score: number
  signals: FiredSignal[]
}

/** Server with its own database, as started by `make run`. */
export interface Tidegate {
  url: string
  keys: EnvironmentKeys
  /** Waits for the read model to have the decision in the token, and returns the session. */
  judgement(handoff: { sessionId: string; sealedToken: string }): Promise<Judgement>
  /** Returns the observations of a session as received, oldest first. */
  observations(sessionId: string): Promise<SentObservations[]>
  stop(): Promise<void>
}

/** Starts a server. With `isTaught`, first teaches it this machine's Chromium, Firefox and WebKitGTK. */
export async function startTidegate({ isTaught = false } = {}): Promise<Tidegate> {
  const folder = await mkdtemp(path.join(tmpdir(), 'tidegate-eval-'))
  const limits = { RATE_LIMIT_SECRET: '1000000', RATE_LIMIT_PUBLISHABLE: '1000000' }
  const settings = {
    DATA_DIR: folder,
    PORT: '0',
    LOG_LEVEL: 'warn',
    HAND_OFF_TIMEOUT_MS: '10000',
    ...limits,
    // Lets forgers set their client address.
    TRUSTED_PROXIES: 'loopback',
  }
  const server = await startChild(['services/cli/main.ts', 'dev'], settings)
  if (isTaught) await teach(server, settings)
  const text = await readFile(path.join(folder, 'credentials.json'), 'utf8')
  const { live: keys }: DevelopmentCredentials = JSON.parse(text)
  return {
    url: server.url,
    keys,
    judgement: (handoff) => judgement({ url: server.url, secretKey: keys.secret_key, ...handoff }),
    observations: (sessionId) => observations(sessionId, settings),
    async stop() {
      await server.stop()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

const taughtEngines = ['blink', 'gecko', 'webkitgtk']

async function teach({ url }: { url: string }, settings: Record<string, string>): Promise<void> {
  const options = { cwd: root, env: { ...process.env, ...settings } }
  const { stdout } = await run(
    process.execPath,
    ['services/cli/main.ts', 'learn', '--open'],
    options,
  )
  console.log(stdout.trim())
  for (let attempt = 0; attempt < 300; attempt++) {
    const metrics = await (await fetch(`${url}/metrics`)).text()
    const isLearned = (engine: string) =>
      new RegExp(`^tidegate_engine_visitors\\{[^}]*engine="${engine}"[^}]*\\} 20$`, 'm').test(
        metrics,
      )
    if (taughtEngines.every(isLearned)) return
    await delay(100)
  }
  throw new Error('the server did not learn Chromium, Firefox and WebKitGTK')
}

interface Reading {
  url: string
  secretKey: string
  sessionId: string
  sealedToken: string
}

async function judgement({ url, secretKey, sessionId, sealedToken }: Reading): Promise<Judgement> {
  const { decision: asked } = token.parse(openToken(sealedToken, { secretKey }))
  const headers = { Authorization: `Bearer ${secretKey}` }
  for (let attempt = 0; attempt < 100; attempt++) {
    const answer = await fetch(`${url}/v1/sessions/${sessionId}`, { headers })
    const session = answer.ok ? detail.parse(await answer.json()).data : undefined
    if (session?.decision.event_id === asked.event_id) {
      const { automation_status: status, risk_score: score } = session.decision
      return { verdict: verdictOf(status), score, signals: session.signals_fired }
    }
    await delay(100)
  }
  throw new Error(`the session ${sessionId} never showed the decision ${asked.event_id}`)
}

function verdictOf(status: string): Verdict {
  if (status === 'human') return 'human'
  return status === 'automated' ? 'bot' : 'inconclusive'
}

async function observations(
  sessionId: string,
  env: Record<string, string>,
): Promise<SentObservations[]> {
  const args = [
    'services/cli/main.ts',
    'events',
    '--open',
    '--topic',
    'tidegate.collect.v1',
    '--key',
    sessionId,
  ]
  const options = { cwd: root, env: { ...process.env, ...env }, maxBuffer: 64 * 1024 * 1024 }
  const { stdout } = await run(process.execPath, args, options)
  const events = stdout.split('\n').filter((line) => line.startsWith('{'))
  return events.flatMap((line) => {
    const event = recorded.safeParse(JSON.parse(line)).data
    return event
      ? [JSON.parse(inflateRawSync(Buffer.from(event.data.payload, 'base64')).toString())]
      : []
  })
}
