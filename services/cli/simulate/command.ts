import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Environment } from '../../../schemas/events.ts'
import { baseUrl, numericArgument, wordOf } from '../arguments.ts'
import { clientNames } from './generate/families.ts'
import { defaultMix, type TrafficMix } from './generate/plan.ts'
import type { SimulateFlags } from './run.ts'

const baseUrlFlag = '--base-url <url>'

export function defineSimulate(command: Command): void {
  command
    .option(
      baseUrlFlag,
      'the server (default: from credentials.json in DATA_DIR)',
      baseUrl({ command, flag: baseUrlFlag }),
    )
    .option('--publishable-key <key>', "browsers' (default: from credentials.json in DATA_DIR)")
    .option('--ios-key <key>', 'a native-ios key (default: from credentials.json in DATA_DIR)')
    .option(
      '--android-key <key>',
      'a native-android key (default: from credentials.json in DATA_DIR)',
    )
    .option(
      '--secret-key <key>',
      'to read sessions back (default: from credentials.json in DATA_DIR)',
    )
    .option(
      '--environment <name>',
      'whose keys of credentials.json: live or test',
      wordOf<Environment>('live', 'test'),
      'live',
    )
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
    .action(async (flags: SimulateFlags) => (await import('./run.ts')).runSimulation(flags))
}

const positive = numericArgument(/^0*[1-9]\d*$/, 'It must be a whole number above 0.')

function share(text: string): number {
  const value = Number(text)
  if (text !== '' && value >= 0 && value <= 1) return value
  throw new InvalidArgumentError('It must be between 0 and 1.')
}

function clientsOption(): Option {
  const text = Object.entries(defaultMix.clients).map(([client, weight]) => `${client}=${weight}`)
  return new Option(
    '--clients <weights>',
    'weights of the clients; by default of those that have a key',
  )
    .argParser(weights)
    .default(defaultMix.clients, text.join(','))
}

function weights(text: string): TrafficMix['clients'] {
  const parsed = { web: 0, ios: 0, android: 0 }
  for (const part of text.split(',')) {
    const [name = '', weight = ''] = part.split('=')
    const client = clientNames.find((known) => known === name)
    if (!client || weight === '' || !(Number(weight) >= 0))
      throw new InvalidArgumentError('It must be weights such as web=70,ios=15,android=15.')
    parsed[client] = Number(weight)
  }
  if (parsed.web + parsed.ios + parsed.android > 0) return parsed
  throw new InvalidArgumentError('At least one weight must be above 0.')
}
