import { type Command, Option } from 'commander'
import { createLogger } from '../../../infra/telemetry.ts'
import { type SubscribableType, subscribableTypes } from '../../../infra/wire/webhooks/events.ts'
import { choice, commaList, httpUrl, numericArgument, port, signingSecrets } from '../arguments.ts'
import { errorText } from '../failure.ts'
import { type LoopbackRequest, type LoopbackResponse, startLoopback } from '../loopback-server.ts'
import { runUntilSignal } from '../stop-signals.ts'
import { printable } from '../tables.ts'
import { disableEndpoint, ensureEndpoint } from './ensure-endpoint.ts'
import { forwardDelivery, inspectDelivery, inspectionText, isGenuine } from './receiver.ts'
import { addTargetOptions, readTarget, type TargetFlags } from './target.ts'

interface Flags extends TargetFlags {
  port: number
  eventTypes: SubscribableType[]
  status: number
  forward?: string
  secret?: string[]
  register: boolean
  json: boolean
}

export function defineListen(webhooks: Command): void {
  const command = addTargetOptions(webhooks.command('listen'))
  const forwardFlag = '--forward <url>'
  const secretFlag = '--secret <secret>'
  command
    .description('Receive, verify and print webhook deliveries on this machine; stop with Ctrl-C')
    .option('--port <n>', 'port to listen on; 0 picks a free one', port, 0)
    .addOption(eventTypesOption())
    .option('--status <n>', 'status to respond with, for example 500 to watch retries', status, 200)
    .option(
      forwardFlag,
      'forward each delivery to this URL and return its response',
      httpUrl({ command, flag: forwardFlag }),
    )
    .option(
      secretFlag,
      'additional signing secret (whsec_...); repeatable',
      signingSecrets({ command, flag: secretFlag }),
    )
    .option('--no-register', 'do not create an endpoint, only listen; needs --secret')
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
  const server = await startLoopback({ port: flags.port, handle: createReceiver(flags, secrets) })
  undo.defer(server.close)
  // With --json, standard output contains only deliveries.
  const print = flags.json ? console.error : console.log
  if (!flags.register) return print(`Listening on ${server.url}; press Ctrl-C to stop.`)
  const target = await readTarget(flags)
  const endpoint = { url: server.url, eventTypes: flags.eventTypes }
  const { endpointId, signingSecret } = await ensureEndpoint(target, endpoint, endpointFile)
  undo.defer(() =>
    disableEndpoint(target, endpointId).catch((error: unknown) => {
      console.error(`Failed to disable the endpoint ${endpointId}: ${errorText(error)}`)
    }),
  )
  secrets.unshift(signingSecret)
  print(
    `Listening on ${server.url} as ${endpointId}; press Ctrl-C to stop and disable the endpoint.`,
  )
  // The program behind --forward verifies deliveries, too.
  if (flags.forward) print(`Signing secret: ${signingSecret}`)
  if (!flags.json) print('Send a test with "tidegate webhooks trigger".\n')
}

const endpointFile = { file: 'webhook-listener.json', name: 'tidegate webhooks listen' }

function createReceiver(
  flags: Flags,
  secrets: string[],
): (request: LoopbackRequest) => Promise<LoopbackResponse> {
  const timesSeen = new Map<string, number>()
  return async (request) => {
    if (request.method !== 'POST') return { status: 405 }
    const inspection = inspectDelivery(request, { secrets, now: Date.now(), timesSeen })
    // Reject unsigned requests, because any process on this machine can post here.
    const response = isGenuine(inspection) ? await respond(request, flags) : { status: 401 }
    if (flags.json) console.log(JSON.stringify({ ...inspection, answered: response.status }))
    else console.log(printable(inspectionText(inspection, response.status)))
    return response
  }
}

async function respond(request: LoopbackRequest, flags: Flags): Promise<LoopbackResponse> {
  return flags.forward ? forwardDelivery(request, flags.forward) : { status: flags.status }
}

const status = numericArgument(/^[2-5]\d\d$/, 'It must be a status from 200 to 599.')

function eventTypesOption(): Option {
  return new Option('--event-types <list>', 'event types to subscribe to, comma-separated')
    .argParser((text) => commaList(text).map(choice(...subscribableTypes)))
    .default([...subscribableTypes], 'all')
}
