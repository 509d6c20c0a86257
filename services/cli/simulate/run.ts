import { randomBytes } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import { readSimulationKey } from '../../../infra/local/development.ts'
import type { Environment } from '../../../schemas/events.ts'
import { type DevelopmentCredentials, dataDirectory, given, readCredentials } from '../credentials.ts'
import { chooseClients, type KeyFlags } from './client-keys.ts'
import type { TrafficMix } from './generate/plan.ts'
import { errorReport, formatReport, startProgress } from './report.ts'
import { type SimulationOptions, simulate, succeeded } from './simulate.ts'

export interface SimulateFlags extends KeyFlags {
  baseUrl?: string
  secretKey?: string
  environment: Environment
  sessions: number
  concurrency: number
  rate?: number
  openLoop?: boolean
  seed?: string
  bots: number
  returning: number
  clients: TrafficMix['clients']
  verify?: boolean
  acks?: string
  json?: boolean
}

export async function runSimulation(flags: SimulateFlags): Promise<void> {
  const known = await readCredentials()
  const options = toOptions(flags, known)
  const progress = startProgress({ total: options.sessions, enabled: !flags.json && process.stderr.isTTY })
  const interrupted = new AbortController()
  process.once('SIGINT', () => interrupted.abort())
  // What must be in the log whatever happens to the server, a JSON line for each body.
  const acks = flags.acks ? createWriteStream(flags.acks) : undefined
  const report = await simulate({
    ...options,
    onProgress: progress.update,
    onAcknowledged: acks && ((body) => acks.write(`${JSON.stringify(body)}\n`)),
    signal: interrupted.signal,
  })
  progress.stop()
  if (acks) await finished(acks.end())
  console.log(
    flags.json ? JSON.stringify(report, null, 2) : formatReport(report, organizationOf(flags, known)),
  )
  if (succeeded(report)) return
  if (flags.json) console.error(errorReport(report))
  process.exitCode = 1
}

function toOptions(flags: SimulateFlags, known: DevelopmentCredentials | undefined): SimulationOptions {
  const keys = known?.[flags.environment]
  const baseUrl = given(flags.baseUrl ?? known?.base_url, '--base-url').replace(/\/+$/, '')
  const chosen = chooseClients({ flags, stored: keys, weights: flags.clients })
  return {
    baseUrl,
    publishableKeys: chosen.keys,
    simulationKey: readSimulationKey(dataDirectory()),
    verifyWith: flags.verify ? given(flags.secretKey ?? keys?.secret_key, '--secret-key') : undefined,
    sessions: flags.sessions,
    concurrency: concurrencyOf(flags),
    rate: flags.rate,
    seed: flags.seed ?? randomBytes(4).toString('hex'),
    mix: { clients: chosen.weights, bots: flags.bots, returning: flags.returning },
  }
}

function concurrencyOf({ openLoop, rate, concurrency, sessions }: SimulateFlags): number {
  if (!openLoop) return Math.min(concurrency, sessions)
  if (rate === undefined) throw new Error('--open-loop needs --rate')
  // No session waits for the end of another one.
  return sessions
}

function organizationOf(
  { publishableKey, iosKey, androidKey, secretKey }: SimulateFlags,
  known: DevelopmentCredentials | undefined,
) {
  const isGiven = publishableKey ?? iosKey ?? androidKey ?? secretKey
  return isGiven ? undefined : known?.organization_id
}
