import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { type Command, Option } from 'commander'
import { z } from 'zod'
import { ApiError } from '../../../infra/errors/errors.ts'
import { createLogger } from '../../../infra/telemetry.ts'
import { parsedJson } from '../../../infra/text.ts'
import { type SubscribableType, subscribableTypes } from '../../../infra/wire/webhooks/events.ts'
import { commaList, httpUrl, numberOf, port, signingSecrets, wordOf } from '../arguments.ts'
import { dataDirectory, writePrivate } from '../credentials.ts'
import { errorText } from '../failure.ts'
import { runUntilSignal } from '../lifetime.ts'
import { printable } from '../tables.ts'
import {
  forward,
  inspect,
  inspectionText,
  isGenuine,
  type LoopbackAnswer,
  type Received,
  type Receiver,
  startReceiver,
} from './receiver.ts'
import {
  type Api,
  createOrganizationApi,
  type OwnEndpoint,
  ownEndpointSchema,
  readTarget,
  type Target,
  type TargetFlags,
  withTarget,
} from './target.ts'

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
  const receiver = await startReceiver({ port: flags.port, answer: answering(flags, secrets) })
  undo.defer(receiver.close)
  // Standard output has nothing but deliveries where a program reads it.
  const tell = flags.json ? console.error : console.log
  if (!flags.register) return tell(`Listening on ${receiver.url}; Ctrl-C ends it.`)
  const { endpointId, secret } = await registerAt(receiver, { flags, undo })
  secrets.unshift(secret)
  tell(`Listening on ${receiver.url} as ${endpointId}; Ctrl-C ends it and disables the endpoint.`)
  if (!flags.json) tell('"tidegate webhooks trigger" sends a test.\n')
}

async function registerAt(
  { url }: Receiver,
  { flags, undo }: { flags: Flags; undo: AsyncDisposableStack },
): Promise<{ endpointId: string; secret: string }> {
  const target = await readTarget(flags)
  const api = createOrganizationApi(target)
  const { endpointId, signingSecret } = await register(api, target, { url, eventTypes: flags.eventTypes })
  undo.defer(() =>
    disable(api, endpointId).catch((error: unknown) => {
      console.error(`The endpoint ${endpointId} was not disabled: ${errorText(error)}`)
    }),
  )
  return { endpointId, secret: signingSecret }
}

function answering(flags: Flags, secrets: string[]): (received: Received) => Promise<LoopbackAnswer> {
  const seen = new Map<string, number>()
  return async (received) => {
    const inspection = inspect(received, { secrets, now: Date.now(), seen })
    // As a receiver must: anybody on this machine can post here.
    const answer = isGenuine(inspection) ? await answerOf(received, flags) : { status: 401 }
    if (flags.json) console.log(JSON.stringify({ ...inspection, answered: answer.status }))
    else console.log(printable(inspectionText(inspection, answer.status)))
    return answer
  }
}

async function answerOf(received: Received, flags: Flags): Promise<LoopbackAnswer> {
  return flags.forward ? forward(received, flags.forward) : { status: flags.status }
}

const status = numberOf(/^[2-5]\d\d$/, 'It must be a status from 200 to 599.')

function eventTypesOption(): Option {
  return new Option('--event-types <list>', 'comma-separated, what to subscribe to')
    .argParser(eventTypes)
    .default([...subscribableTypes], 'all')
}

function eventTypes(text: string): SubscribableType[] {
  return commaList(text).map(wordOf(...subscribableTypes))
}

const defaultListener = { file: 'webhook-listener.json', name: 'tidegate webhooks listen' }

const remembered = z.record(z.string(), z.object({ endpoint_id: z.string(), signing_secret: z.string() }))
type Remembered = z.infer<typeof remembered>

interface Wanted {
  url: string
  eventTypes: SubscribableType[]
  // Who listens: a file of DATA_DIR that remembers it, and the endpoint's name. Default: `tidegate webhooks listen`.
  listener?: { file: string; name: string }
}

/**
 * An active endpoint at `url`: the one of the last time, moved, or a new one. Its id and secret are remembered in a
 * file of DATA_DIR that only its owner may read, so that not every start makes another endpoint.
 */
export async function register(
  api: Api,
  target: Target,
  wanted: Wanted,
): Promise<{ endpointId: string; signingSecret: string }> {
  const place = `${target.organizationId} ${target.environment}`
  const { file } = wanted.listener ?? defaultListener
  const all = await readRemembered(file)
  const known = all[place]
  if (known && (await reuse(api, known.endpoint_id, wanted)))
    return { endpointId: known.endpoint_id, signingSecret: known.signing_secret }
  const { id, signing_secret } = await create(api, wanted)
  const next: Remembered = { ...all, [place]: { endpoint_id: id, signing_secret } }
  await writePrivate({ dataDir: dataDirectory(), name: file, text: `${JSON.stringify(next, null, 2)}\n` })
  return { endpointId: id, signingSecret: signing_secret }
}

export async function disable(api: Api, endpointId: string): Promise<void> {
  const body = { status: 'disabled' }
  await api.request({ method: 'PATCH', path: pathOf(endpointId), body, schema: ownEndpointSchema })
}

async function reuse(api: Api, endpointId: string, { url, eventTypes }: Wanted): Promise<boolean> {
  const body = { url, event_types: eventTypes, status: 'active' }
  return api.request({ method: 'PATCH', path: pathOf(endpointId), body, schema: ownEndpointSchema }).then(
    () => true,
    (error: unknown) => {
      if (error instanceof ApiError && error.status === 404) return false
      throw error
    },
  )
}

function create(
  api: Api,
  { url, eventTypes, listener = defaultListener }: Wanted,
): Promise<OwnEndpoint & { signing_secret: string }> {
  const body = { name: listener.name, url, event_types: eventTypes }
  const schema = ownEndpointSchema.extend({ signing_secret: z.string() })
  return api.request({ method: 'POST', path: '/webhooks/endpoints', body, schema })
}

const pathOf = (endpointId: string) => `/webhooks/endpoints/${encodeURIComponent(endpointId)}`

async function readRemembered(file: string): Promise<Remembered> {
  const text = await readFile(path.join(dataDirectory(), file), 'utf8').catch(() => '{}')
  return remembered.safeParse(parsedJson(text)).data ?? {}
}
