import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Command } from 'commander'
import { z } from 'zod'
import { choice, idArgument, jsonFlag } from '../arguments.ts'
import { type CommandOutcome, type OperatorOptions, printOutcome } from '../operator/run.ts'
import { webOnlyMix } from '../simulate/generate/plan.ts'
import {
  addTargetOptions,
  endpointStatusSchema,
  readTarget,
  requestOrganization,
  type Target,
  type TargetFlags,
} from './target.ts'

const triggerTypes = [
  'webhook.test',
  'session.fingerprint.calculated',
  'session.result.persisted',
] as const
type TriggerType = (typeof triggerTypes)[number]

interface Flags extends OperatorOptions, TargetFlags {
  endpoint?: string
  publishableKey?: string
}

export function defineTrigger(webhooks: Command): void {
  addTargetOptions(webhooks.command('trigger'))
    .description(
      'Send a test event, or raise the events of a synthetic session, and print their ids',
    )
    .argument(
      '[type]',
      `event type: ${triggerTypes.join(', ')}`,
      choice(...triggerTypes),
      'webhook.test',
    )
    .option(
      '--endpoint <id>',
      'endpoint for webhook.test (default: every active endpoint)',
      idArgument('we'),
    )
    .option(
      '--publishable-key <key>',
      'publishable key for the session (default: from credentials.json in DATA_DIR)',
    )
    .option(...jsonFlag)
    .action((type: TriggerType, flags: Flags) => printOutcome(flags, () => trigger(type, flags)))
}

async function trigger(type: TriggerType, flags: Flags): Promise<CommandOutcome> {
  const target = await readTarget(flags)
  if (type === 'webhook.test') return sendTests(target, flags.endpoint)
  if (flags.endpoint)
    throw new Error(
      `--endpoint works only with webhook.test: a ${type} goes to every subscribed endpoint`,
    )
  return triggerSession(target, type, flags.publishableKey ?? target.publishableKey)
}

const testSchema = z.object({ event_id: z.string(), delivery_ids: z.array(z.string()) })

async function sendTests(target: Target, endpointId: string | undefined): Promise<CommandOutcome> {
  const ids = endpointId ? [endpointId] : await activeEndpoints(target)
  if (ids.length === 0)
    throw new Error('No active endpoint: create one, or start "tidegate webhooks listen".')
  const tests = []
  for (const id of ids) {
    const path = `/webhooks/endpoints/${encodeURIComponent(id)}/test`
    const test = await requestOrganization(target, { method: 'POST', path, schema: testSchema })
    tests.push({ ...test, type: 'webhook.test', endpoint_id: id })
  }
  const lines = tests.map(
    ({ event_id, endpoint_id }) => `${event_id}  webhook.test to ${endpoint_id}`,
  )
  return { data: tests, text: lines.join('\n') }
}

async function activeEndpoints(target: Target): Promise<string[]> {
  const schema = z.array(endpointStatusSchema)
  const endpoints = await requestOrganization(target, {
    method: 'GET',
    path: '/webhooks/endpoints',
    schema,
  })
  return endpoints.filter(({ status }) => status === 'active').map(({ id }) => id)
}

async function triggerSession(
  target: Target,
  type: TriggerType,
  publishableKey: string | undefined,
): Promise<CommandOutcome> {
  if (!publishableKey)
    throw new Error(
      '--publishable-key is required with a --secret-key that is not in credentials.json',
    )
  const sessionId = await sendSession(target.baseUrl, publishableKey)
  const event = await waitForEvent(target, { type, sessionId })
  const data = [{ event_id: event.id, type, session_id: sessionId }]
  return { data, text: `${event.id}  ${type} of ${sessionId}` }
}

async function sendSession(baseUrl: string, publishableKey: string): Promise<string> {
  let sessionId = ''
  const { simulate } = await import('../simulate/simulate.ts')
  const { errors } = await simulate({
    baseUrl,
    publishableKeys: { web: publishableKey },
    sessions: 1,
    concurrency: 1,
    seed: randomBytes(4).toString('hex'),
    mix: webOnlyMix,
    onAcknowledged: ({ session_id }) => {
      sessionId = session_id
    },
  })
  const [error] = errors
  if (error) throw new Error(`The session was rejected: ${error.endpoint} ${error.code}`)
  return sessionId
}

const eventSchema = z.object({ id: z.string(), subject: z.object({ id: z.string() }) })

const timeoutMs = 15_000
const pollMs = 250

async function waitForEvent(
  target: Target,
  { type, sessionId }: { type: TriggerType; sessionId: string },
) {
  const path = `/events?type=${type}&limit=200`
  const deadline = Date.now() + timeoutMs
  while (Date.now() < deadline) {
    const events = await requestOrganization(target, {
      method: 'GET',
      path,
      schema: z.array(eventSchema),
    })
    const event = events.find(({ subject }) => subject.id === sessionId)
    if (event) return event
    await delay(pollMs)
  }
  throw new Error(
    `No ${type} for ${sessionId} within ${timeoutMs / 1000} s: check that a server with the role webhooks is running.`,
  )
}
