import { type Command, Option } from 'commander'
import { createLogger } from '../../../infra/telemetry.ts'
import { type SubscribableType, subscribableTypes } from '../../../infra/wire/webhooks/events.ts'
import { commaList, httpUrl, numericArgument, port, signingSecrets, wordOf } from '../arguments.ts'
import { errorText } from '../failure.ts'
import { runUntilSignal } from '../lifetime.ts'
import { type LoopbackAnswer, type LoopbackRequest, serveLoopback } from '../loopback-server.ts'
import { printable } from '../tables.ts'
import { disableOwnEndpoint, ownEndpoint } from './own-endpoint.ts'
import { forward, inspect, inspectionText, isGenuine } from './receiver.ts'
import { readTarget, type TargetFlags, withTarget } from './target.ts'

interface Flags extends TargetFlags {
  port: number
  eventTypes: SubscribableType[]
  status: number
  forward?: string
  secret?: string[]
  register: boolean
  json: boolean
}

export function registerListen(webhooks: Command): void {
  const command = withTarget(webhooks.command('listen'))
  const forwardFlag = '--forward <url>'
  const secretFlag = '--secret <secret>'
  command
    .description('Receive deliveries on this machine, verify and print them, until Ctrl-C')
    .option('--port <n>', 'to listen on; 0 picks a free one', port, 0)
    .addOption(eventTypesOption())
    .option('--status <n>', 'what to answer, so that retries can be watched', status, 200)
    .option(
      forwardFlag,
      'post each delivery on, and answer what is answered there',
      httpUrl({ command, flag: forwardFlag }),
    )
    .option(
      secretFlag,
      'whsec_... that signs too; more than once during a rotation',
      signingSecrets({ command, flag: secretFlag }),
    )
    .option('--no-register', 'only listen: the endpoint was created elsewhere; needs --secret')
    .option('--json', 'print a JSON line for each delivery', false)
    .action(listen)
}

const stopWithinMs = 10_000

async function listen(flags: Flags, command: Command): Promise<void> {
  if (!flags.register && !flags.secret) command.error('error: --no-register needs --secret')
  const start = (undo: AsyncDisposableStack) =>
    startListening(flags, undo).catch((error: unknown) => {
      throw new Error(errorText(error), { cause: error })
    })
  await runUntilSignal({ start, stopWithinMs, logger: createLogger('warn', process.stderr) })
}

async function startListening(flags: Flags, undo: AsyncDisposableStack): Promise<void> {
  const secrets = [...(flags.secret ?? [])]
  const receiver = await serveLoopback({ port: flags.port, answer: answering(flags, secrets) })
  undo.defer(receiver.close)
  // Standard output has nothing but deliveries where a program reads it.
  const tell = flags.json ? console.error : console.log
  if (!flags.register) return tell(`Listening on ${receiver.url}; Ctrl-C ends it.`)
  const target = await readTarget(flags)
  const endpoint = { url: receiver.url, eventTypes: flags.eventTypes }
  const { endpointId, signingSecret } = await ownEndpoint(target, endpoint, listener)
  undo.defer(() =>
    disableOwnEndpoint(target, endpointId).catch((error: unknown) => {
      console.error(`The endpoint ${endpointId} was not disabled: ${errorText(error)}`)
    }),
  )
  secrets.unshift(signingSecret)
  tell(`Listening on ${receiver.url} as ${endpointId}; Ctrl-C ends it and disables the endpoint.`)
  if (!flags.json) tell('"tidegate webhooks trigger" sends a test.\n')
}

const listener = { file: 'webhook-listener.json', name: 'tidegate webhooks listen' }

function answering(
  flags: Flags,
  secrets: string[],
): (received: LoopbackRequest) => Promise<LoopbackAnswer> {
  const seen = new Map<string, number>()
  return async (received) => {
    if (received.method !== 'POST') return { status: 405 }
    const inspection = inspect(received, { secrets, now: Date.now(), seen })
    // A receiver must refuse what is not signed, because anybody on this machine can post here.
    const answer = isGenuine(inspection) ? await answerOf(received, flags) : { status: 401 }
    if (flags.json) console.log(JSON.stringify({ ...inspection, answered: answer.status }))
    else console.log(printable(inspectionText(inspection, answer.status)))
    return answer
  }
}

async function answerOf(received: LoopbackRequest, flags: Flags): Promise<LoopbackAnswer> {
  return flags.forward ? forward(received, flags.forward) : { status: flags.status }
}

const status = numericArgument(/^[2-5]\d\d$/, 'It must be a status from 200 to 599.')

function eventTypesOption(): Option {
  return new Option('--event-types <list>', 'comma-separated, what to subscribe to')
    .argParser((text) => commaList(text).map(wordOf(...subscribableTypes)))
    .default([...subscribableTypes], 'all')
}
