import { randomBytes } from 'node:crypto'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Environment } from '../../../schemas/events.ts'
import { type DevelopmentCredentials, given, readCredentials } from '../credentials.ts'
import { chooseClients, clients, type KeyFlags } from './client-keys.ts'
import type { Client } from './generate/families.ts'
import { defaultMix, type TrafficMix } from './generate/plan.ts'
import { openAckFile } from './recorder.ts'
import { formatReport, startProgress } from './report.ts'
import { type SimulationOptions, simulate, succeeded } from './simulate.ts'

interface Flags extends KeyFlags {
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

export function defineSimulate(command: Command): void {
  command
    .option('--base-url <url>', 'the server (default: from credentials.json in DATA_DIR)')
    .option('--publishable-key <key>', "browsers' (default: from credentials.json in DATA_DIR)")
    .option('--ios-key <key>', 'a native-ios key (default: from credentials.json in DATA_DIR)')
    .option('--android-key <key>', 'a native-android key (default: from credentials.json in DATA_DIR)')
    .option('--secret-key <key>', 'to read sessions back (default: from credentials.json in DATA_DIR)')
    .option('--environment <name>', 'whose keys of credentials.json: live or test', environment, 'live')
    .option('--sessions <n>', 'how many sessions', positive, 100)
    .option('--concurrency <n>', 'sessions under way at once', positive, 16)
    .option('--rate <n>', 'sessions begun a second at most', positive)
    .option('--open-loop', 'begin sessions at --rate, however many are under way')
    .option('--seed <text>', 'the same seed sends the same observations (default: random, printed)')
    .addOption(clientsOption())
    .option('--bots <share>', 'share of sessions driven by programs', share, defaultMix.bots)
    .option(
      '--returning <share>',
      'share of sessions of visitors that come back',
      share,
      defaultMix.returning,
    )
    .option('--verify', 'read every session back at the end')
    .option('--acks <file>', 'write a JSON line for each acknowledged body')
    .option('--json', 'print the report as JSON')
    .action(run)
}

async function run(flags: Flags): Promise<void> {
  const known = await readCredentials()
  const options = toOptions(flags, known)
  const progress = startProgress({ total: options.sessions, enabled: !flags.json && process.stderr.isTTY })
  const interrupted = new AbortController()
  process.once('SIGINT', () => interrupted.abort())
  const acks = flags.acks ? openAckFile(flags.acks) : undefined
  const watch = { onProgress: progress.update, onAcknowledged: acks?.write, signal: interrupted.signal }
  const report = await simulate({ ...options, ...watch })
  progress.stop()
  await acks?.close()
  console.log(
    flags.json ? JSON.stringify(report, null, 2) : formatReport(report, organizationOf(flags, known)),
  )
  if (!succeeded(report)) process.exitCode = 1
}

function toOptions(flags: Flags, known: DevelopmentCredentials | undefined): SimulationOptions {
  const keys = known?.[flags.environment]
  const baseUrl = given(flags.baseUrl ?? known?.base_url, '--base-url').replace(/\/+$/, '')
  const chosen = chooseClients({ flags, stored: keys, weights: flags.clients })
  return {
    baseUrl,
    publishableKeys: chosen.keys,
    verifyWith: flags.verify ? given(flags.secretKey ?? keys?.secret_key, '--secret-key') : undefined,
    sessions: flags.sessions,
    concurrency: concurrencyOf(flags),
    rate: flags.rate,
    seed: flags.seed ?? randomBytes(4).toString('hex'),
    mix: { clients: chosen.weights, bots: flags.bots, returning: flags.returning },
  }
}

function concurrencyOf({ openLoop, rate, concurrency, sessions }: Flags): number {
  if (!openLoop) return Math.min(concurrency, sessions)
  if (rate === undefined) throw new Error('--open-loop needs --rate')
  // No session waits for the end of another one.
  return sessions
}

function organizationOf(
  { publishableKey, iosKey, androidKey, secretKey }: Flags,
  known: DevelopmentCredentials | undefined,
) {
  const isGiven = publishableKey ?? iosKey ?? androidKey ?? secretKey
  return isGiven ? undefined : known?.organization_id
}

function positive(text: string): number {
  const value = Number(text)
  if (Number.isInteger(value) && value > 0) return value
  throw new InvalidArgumentError('It must be a whole number above 0.')
}

function share(text: string): number {
  const value = Number(text)
  if (text !== '' && value >= 0 && value <= 1) return value
  throw new InvalidArgumentError('It must be between 0 and 1.')
}

function environment(text: string): Environment {
  if (text === 'live' || text === 'test') return text
  throw new InvalidArgumentError('It must be live or test.')
}

function clientsOption(): Option {
  const shown = Object.entries(defaultMix.clients).map(([client, weight]) => `${client}=${weight}`)
  return new Option('--clients <weights>', 'weights of the clients; by default of those that have a key')
    .argParser(weights)
    .default(defaultMix.clients, shown.join(','))
}

function weights(text: string): TrafficMix['clients'] {
  const parsed = { web: 0, ios: 0, android: 0 }
  for (const part of text.split(',')) {
    const [name = '', weight = ''] = part.split('=')
    if (!isClient(name) || !(Number(weight) >= 0))
      throw new InvalidArgumentError('Example: web=70,ios=15,android=15')
    parsed[name] = Number(weight)
  }
  if (parsed.web + parsed.ios + parsed.android > 0) return parsed
  throw new InvalidArgumentError('At least one weight must be above 0.')
}

function isClient(name: string): name is Client {
  return clients.some((client) => client === name)
}
