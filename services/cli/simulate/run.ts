import { randomBytes } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import { readSimulationKey } from '../../../infra/local/development.ts'
import type { Environment } from '../../../schemas/events.ts'
import {
  type DevelopmentCredentials,
  dataDirectory,
  readCredentials,
  requireValue,
} from '../credentials.ts'
import { progressBar } from '../progress.ts'
import { chooseClients, type KeyFlags } from './client-keys.ts'
import type { AttackName } from './generate/bots.ts'
import { attackMix, type TrafficMix } from './generate/plan.ts'
import { errorReport, formatReport } from './report.ts'
import { type SimulationOptions, simulate, succeeded } from './simulate.ts'

export interface SimulateFlags extends KeyFlags {
  baseUrl?: string
  secretKey?: string
  environment: Environment
  sessions?: number
  concurrency: number
  rate?: number
  openLoop?: boolean
  seed?: string
  bots: number
  returning: number
  clients: TrafficMix['clients']
  attack?: AttackName
  verify?: boolean
  acks?: string
  json?: boolean
}

export async function runSimulation(flags: SimulateFlags): Promise<void> {
  const credentials = await readCredentials()
  const options = toOptions(flags, credentials)
  const bar = flags.json ? undefined : progressBar(options.sessions)
  const interruption = new AbortController()
  process.once('SIGINT', () => interruption.abort())
  // Each acknowledged body must be in the log, even if the server crashes afterwards.
  const acks = flags.acks ? createWriteStream(flags.acks) : undefined
  const report = await simulate({
    ...options,
    onProgress: (done) => bar?.set(done),
    onAcknowledged: acks && ((body) => acks.write(`${JSON.stringify(body)}\n`)),
    signal: interruption.signal,
  }).finally(() => bar?.end())
  if (acks) await finished(acks.end())
  const { publishableKey, iosKey, androidKey, secretKey } = flags
  const explicitKey = publishableKey ?? iosKey ?? androidKey ?? secretKey
  const organization = explicitKey ? undefined : credentials?.organization_id
  console.log(flags.json ? JSON.stringify(report, null, 2) : formatReport(report, organization))
  if (succeeded(report)) return
  if (flags.json) console.error(errorReport(report))
  process.exitCode = 1
}

// 250 sessions in 50 seconds.
const attackTraffic = { sessions: 250, rate: 5 }

function toOptions(
  flags: SimulateFlags,
  credentials: DevelopmentCredentials | undefined,
): SimulationOptions {
  const stored = credentials?.[flags.environment]
  const { attack, concurrency, openLoop, bots, returning } = flags
  const { sessions, rate } = { ...(attack ? attackTraffic : { sessions: 100 }), ...flags }
  if (openLoop && rate === undefined) throw new Error('--open-loop needs --rate')
  const baseUrl = requireValue(flags.baseUrl ?? credentials?.base_url, '--base-url').replace(
    /\/+$/,
    '',
  )
  const mix = attack ? attackMix(attack) : { clients: flags.clients, bots, returning }
  const { keys, weights } = chooseClients({ flags, stored, weights: mix.clients })
  return {
    baseUrl,
    publishableKeys: keys,
    simulationKey: readSimulationKey(dataDirectory()),
    readbackKey: flags.verify
      ? requireValue(flags.secretKey ?? stored?.secret_key, '--secret-key')
      : undefined,
    sessions,
    // In an open loop, sessions never wait for others to finish.
    concurrency: openLoop ? sessions : Math.min(concurrency, sessions),
    rate,
    seed: flags.seed ?? randomBytes(4).toString('hex'),
    mix: { ...mix, clients: weights },
  }
}
