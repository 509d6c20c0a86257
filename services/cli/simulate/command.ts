import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Environment } from '../../../schemas/events.ts'
import { baseUrl, choice, numericArgument } from '../arguments.ts'
import { attackNames } from './generate/bots.ts'
import { clientNames } from './generate/families.ts'
import { defaultMix, type TrafficMix } from './generate/plan.ts'
import type { SimulateFlags } from './run.ts'

const baseUrlFlag = '--base-url <url>'

export function defineSimulate(command: Command): void {
  command
    .option(
      baseUrlFlag,
      'URL of the server (default: from credentials.json in DATA_DIR)',
      baseUrl({ command, flag: baseUrlFlag }),
    )
    .option(
      '--publishable-key <key>',
      'publishable key for web clients (default: from credentials.json in DATA_DIR)',
    )
    .option(
      '--ios-key <key>',
      'publishable key for native-ios clients (default: from credentials.json in DATA_DIR)',
    )
    .option(
      '--android-key <key>',
      'publishable key for native-android clients (default: from credentials.json in DATA_DIR)',
    )
    .option(
      '--secret-key <key>',
      'secret key for --verify (default: from credentials.json in DATA_DIR)',
    )
    .option(
      '--environment <name>',
      'keys to use from credentials.json: live or test',
      choice<Environment>('live', 'test'),
      'live',
    )
    .option('--sessions <n>', 'number of sessions (default: 100; with --attack, 250)', positive)
    .option('--concurrency <n>', 'sessions in flight', positive, 16)
    .option('--rate <n>', 'maximum sessions started per second', positive)
    .option('--open-loop', 'start sessions at --rate, regardless of how many are in flight')
    .option(
      '--seed <text>',
      'seed to repeat a run with the same observations (default: random, printed)',
    )
    .addOption(clientsOption())
    .option('--bots <share>', 'share of bot sessions, 0 to 1', share, defaultMix.bots)
    .option(
      '--returning <share>',
      'share of sessions from returning visitors, 0 to 1',
      share,
      defaultMix.returning,
    )
    .addOption(attackOption())
    .option('--verify', 'read every session back when done')
    .option('--acks <file>', 'file to write a JSON line to for each acknowledged request body')
    .option('--json', 'print the report as JSON')
    .action(async (flags: SimulateFlags) => (await import('./run.ts')).runSimulation(flags))
}

const positive = numericArgument(/^0*[1-9]\d*$/, 'It must be a whole number above 0.')

function share(text: string): number {
  const value = Number(text)
  if (text !== '' && value >= 0 && value <= 1) return value
  throw new InvalidArgumentError('It must be from 0 to 1.')
}

function attackOption(): Option {
  return new Option(
    '--attack <name>',
    `send bots of one tool to one path: ${attackNames.join(', ')} (default --rate: 5)`,
  )
    .argParser(choice(...attackNames))
    .conflicts(['clients', 'bots', 'returning'])
}

function clientsOption(): Option {
  const text = Object.entries(defaultMix.clients).map(([client, weight]) => `${client}=${weight}`)
  return new Option(
    '--clients <weights>',
    'weight of each client; clients without a key are left out by default',
  )
    .argParser(weights)
    .default(defaultMix.clients, text.join(','))
}

function weights(text: string): TrafficMix['clients'] {
  const parsed = { web: 0, ios: 0, android: 0 }
  for (const part of text.split(',')) {
    const [name = '', weight = ''] = part.split('=')
    const client = clientNames.find((clientName) => clientName === name)
    if (!client || weight === '' || !(Number(weight) >= 0))
      throw new InvalidArgumentError('It must be weights such as web=70,ios=15,android=15.')
    parsed[client] = Number(weight)
  }
  if (parsed.web + parsed.ios + parsed.android > 0) return parsed
  throw new InvalidArgumentError('At least one weight must be above 0.')
}
