import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Command } from 'commander'
import { z } from 'zod'
import { idOf, jsonFlag, wordOf } from '../arguments.ts'
import { type CommandOutcome, type OperatorOptions, printOutcome } from '../operator/operate.ts'
import { webOnly } from '../simulate/generate/plan.ts'
import {
  askOrganization,
  ownEndpointSchema,
  readTarget,
  type Target,
  type TargetFlags,
  withTarget,
} from './target.ts'

const triggered = [
  'webhook.test',
  'session.fingerprint.calculated',
  'session.result.persisted',
] as const
type Triggered = (typeof triggered)[number]

interface Flags extends OperatorOptions, TargetFlags {
  endpoint?: string
  publishableKey?: string
}

export function registerTrigger(webhooks: Command): void {
  withTarget(webhooks.command('trigger'))
    .description('Send a test, or have a synthetic session raise its events; prints their ids')
    .argument('[type]', `one of ${triggered.join(', ')}`, wordOf(...triggered), 'webhook.test')
    .option(
      '--endpoint <id>',
      'of a webhook.test: only to this one (default: every active endpoint)',
      idOf('we'),
    )
    .option(
      '--publishable-key <key>',
      'for the session (default: from credentials.json in DATA_DIR)',
    )
    .option(...jsonFlag)
    .action((type: Triggered, flags: Flags) => printOutcome(flags, () => trigger(type, flags)))
}

async function trigger(type: Triggered, flags: Flags): Promise<CommandOutcome> {
  const target = await readTarget(flags)
  if (type === 'webhook.test') return sendTests(target, flags.endpoint)
  if (flags.endpoint)
    throw new Error(`--endpoint goes with webhook.test: a ${type} is for all that subscribe to it`)
  return runSession(target, type, flags.publishableKey ?? target.publishableKey)
}

const testSchema = z.object({ event_id: z.string(), delivery_ids: z.array(z.string()) })

async function sendTests(target: Target, endpointId: string | undefined): Promise<CommandOutcome> {
  const ids = endpointId ? [endpointId] : await activeEndpoints(target)
  if (ids.length === 0)
    throw new Error('There is no active endpoint: create one, or start "tidegate webhooks listen".')
  const sent = []
  for (const id of ids) {
    const path = `/webhooks/endpoints/${encodeURIComponent(id)}/test`
    const test = await askOrganization(target, { method: 'POST', path, schema: testSchema })
    sent.push({ ...test, type: 'webhook.test', endpoint_id: id })
  }
  const lines = sent.map(
    ({ event_id, endpoint_id }) => `${event_id}  webhook.test to ${endpoint_id}`,
  )
  return { data: sent, text: lines.join('\n') }
}

async function activeEndpoints(target: Target): Promise<string[]> {
  const schema = z.array(ownEndpointSchema)
  const endpoints = await askOrganization(target, {
    method: 'GET',
    path: '/webhooks/endpoints',
    schema,
  })
  return endpoints.filter(({ status }) => status === 'active').map(({ id }) => id)
}

async function runSession(
  target: Target,
  type: Triggered,
  publishableKey: string | undefined,
): Promise<CommandOutcome> {
  if (!publishableKey)
    throw new Error(
      '--publishable-key is needed with a --secret-key that is not of credentials.json',
    )
  const sessionId = await syntheticSession(target.baseUrl, publishableKey)
  const event = await raisedEvent(target, { type, sessionId })
  const data = [{ event_id: event.id, type, session_id: sessionId }]
  return { data, text: `${event.id}  ${type} of ${sessionId}` }
}

async function syntheticSession(baseUrl: string, publishableKey: string): Promise<string> {
  let sessionId = ''
  const { simulate } = await import('../simulate/simulate.ts')
  const { errors } = await simulate({
    baseUrl,
    publishableKeys: { web: publishableKey },
    sessions: 1,
    concurrency: 1,
    seed: randomBytes(4).toString('hex'),
    mix: webOnly,
    onAcknowledged: ({ session_id }) => {
      sessionId = session_id
    },
  })
  const [error] = errors
  if (error) throw new Error(`The session was refused: ${error.endpoint} ${error.code}`)
  return sessionId
}

const eventSchema = z.object({ id: z.string(), subject: z.object({ id: z.string() }) })

const patienceMs = 15_000
const pollMs = 250

async function raisedEvent(
  target: Target,
  { type, sessionId }: { type: Triggered; sessionId: string },
) {
  const path = `/events?type=${type}&limit=200`
  const end = Date.now() + patienceMs
  while (Date.now() < end) {
    const events = await askOrganization(target, {
      method: 'GET',
      path,
      schema: z.array(eventSchema),
    })
    const raised = events.find(({ subject }) => subject.id === sessionId)
    if (raised) return raised
    await delay(pollMs)
  }
  throw new Error(
    `No ${type} of ${sessionId} within ${patienceMs / 1000} s; a server with the role webhooks must run.`,
  )
}
