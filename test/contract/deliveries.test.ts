import { randomBytes } from 'node:crypto'
import { Ajv2020 } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createKeyring } from '../../infra/crypto/keyring.ts'
import { asId } from '../../infra/ids.ts'
import type { PostOptions } from '../../infra/safe-http/client.ts'
import { deliveryTypes } from '../../infra/wire/webhooks/events.ts'
import { generateSigningSecret, sealSigningSecret } from '../../infra/wire/webhooks/signature.ts'
import { sessionEventTypes } from '../../projections/sessions/tables.ts'
import type { EndpointRow, WebhookEventRow } from '../../projections/webhooks/tables.ts'
import { createSigningSecrets, makeAttempt } from '../../services/webhooks/deliveries/attempt.ts'
import { decideTest } from '../../services/webhooks/endpoints/send-test.ts'
import type { Notice } from '../../services/webhooks/events/schemas.ts'
import { expiryNotice } from '../../services/webhooks/key-expiry.ts'
import { buildDecisionEvent } from '../../services/webhooks/planner/build-events.ts'
import { noticeEvent } from '../../services/webhooks/raise.ts'
import { startWorld, type World } from '../authorization/world.ts'
import vector from '../fixtures/gate-delivery/vector.v1.json' with { type: 'json' }
import signed from '../fixtures/gate-delivery/webhook-signature.json' with { type: 'json' }
import { secretKey } from '../services/organizations/fixtures.ts'
import { endpoint, endpointId, now, organization } from '../services/webhooks/endpoints/fixtures.ts'
import { codeBlock } from '../support/code-block.ts'
import { sessionScored } from '../support/session-scored.ts'

const parameter = z.object({
  name: z.string(),
  in: z.literal('header'),
  required: z.literal(true),
  schema: z.looseObject({ type: z.literal('string') }),
})
const webhook = z.object({
  operationId: z.string(),
  parameters: z.array(parameter),
  requestBody: z.object({
    content: z.object({ 'application/json': z.object({ schema: z.object({ $ref: z.string() }) }) }),
  }),
  responses: z.record(z.string(), z.looseObject({ description: z.string() })),
})
const document = z.looseObject({ webhooks: z.record(z.string(), z.object({ post: webhook })) })

let world: World
let described: z.output<typeof document>
const ajv = new Ajv2020({ strict: false, validateSchema: false, allErrors: true })
addFormats.default(ajv)

beforeAll(async () => {
  world = await startWorld()
  const response = await world.app.inject('/openapi.json')
  described = document.parse(response.json())
  ajv.addSchema(described, 'ours')
})
afterAll(() => world.stop())

const keyring = createKeyring(randomBytes(32).toString('base64'))

/** An endpoint in the middle of a rotation: two of its secrets sign. */
function rotating(): EndpointRow {
  const seal = () =>
    sealSigningSecret({
      keyring,
      random: randomBytes,
      secret: generateSigningSecret(randomBytes),
      endpointId,
    })
  const secrets = [null, now + 1000].map((expires_at) => ({
    sealed: seal(),
    created_at: now,
    expires_at,
  }))
  return { ...endpoint, secrets }
}

/** The request that is made for an event. */
async function requestOf(event: WebhookEventRow): Promise<PostOptions> {
  const posts: PostOptions[] = []
  const post = async (options: PostOptions) => {
    posts.push(options)
    return {
      kind: 'failure',
      reason: 'connect',
      message: 'nobody is there',
      durationMs: 1,
    } as const
  }
  const deps = { client: { post }, secrets: createSigningSecrets(keyring), clock: () => now }
  await makeAttempt(deps, { event, endpoint: rotating() })
  const [only] = posts
  if (!only) throw new Error('nothing was sent')
  return only
}

/** A stored event of each type. */
function events(): WebhookEventRow[] {
  const eventId = asId('evt', `evt_${'3'.repeat(26)}`)
  const state = { organization, endpoint, recentTests: [], isRepeat: false }
  const tests = decideTest(state, { eventId, now }).flatMap(({ event }) =>
    event.type === 'WebhookEventRaised' ? [event.data] : [],
  )
  const scored = sessionScored({ is_provisional: false })
  const raised = [
    ...sessionEventTypes.map((type) => buildDecisionEvent(scored, type, now)),
    ...tests,
  ]
  const stored = raised.map(({ event_id, type, ...event }) => ({
    ...event,
    id: event_id,
    type: z.enum(deliveryTypes).parse(type),
  }))
  return [...stored, approval(), ...notices().map(noticeRow)]
}

/** With the data of the published example. */
function approval(): WebhookEventRow {
  return {
    id: `evt_${'4'.repeat(26)}`,
    organization_id: organization.id,
    environment: 'live',
    type: 'gate.session.approved',
    subject_type: 'gate_session',
    subject_id: 'gate_0123456789abcdefghjkmnpqrs',
    data: JSON.stringify(JSON.parse(signed.raw_body).data),
    created_at: now,
  }
}

function notices(): Notice[] {
  const scope = { organizationId: organization.id, environment: 'live', at: now } as const
  const at = new Date(now).toISOString()
  const ids = { id: `alert_${'5'.repeat(26)}`, view_id: `view_${'6'.repeat(26)}` }
  const alert = { ...ids, kind: 'count', threshold: 60, window_minutes: 60 } as const
  const status = { status: 'disabled', disabled_reason: 'gone', failing_since: at } as const
  const failing = { id: endpointId, name: 'Back end', ...status }
  return [
    expiryNotice({ ...secretKey, expires_at: now }, now),
    {
      ...scope,
      type: 'endpoint.failing',
      occasion: endpointId,
      subject: { type: 'webhook_endpoint', id: endpointId },
      data: { object: 'webhook_endpoint_health', endpoint: failing },
    },
    ...(['alert.opened', 'alert.closed'] as const).map((type) => ({
      ...scope,
      type,
      occasion: alert.id,
      subject: { type: 'alert', id: alert.id },
      data: { object: 'alert', alert, value: 61, at } as const,
    })),
  ]
}

function noticeRow(notice: Notice): WebhookEventRow {
  const { event } = noticeEvent({ ...notice, endpointIds: [endpointId] })
  if (event.type !== 'WebhookEventRaised') throw new Error(`raised ${event.type}`)
  const { event_id: id, endpoint_ids: _, route: __, ...data } = event.data
  return { ...data, id, type: notice.type }
}

function problems(pointer: string, value: unknown): string[] {
  const validate = ajv.getSchema(`ours${pointer}`)
  if (!validate) throw new Error(`no schema at ${pointer}`)
  return validate(value)
    ? []
    : (validate.errors ?? []).map((one) => `${one.instancePath} ${one.message}`)
}

const itemOf = (type: string) => {
  const item = described.webhooks[type]
  if (!item) throw new Error(`${type} is not described`)
  return item.post
}
const bodySchema = (type: string) =>
  itemOf(type).requestBody.content['application/json'].schema.$ref

describe('the webhooks of /openapi.json', () => {
  test('are all that is sent', () => {
    const sent = events().map(({ type }) => type)
    expect(Object.keys(described.webhooks).sort()).toEqual(sent.toSorted())
    expect(sent.toSorted()).toEqual(deliveryTypes.toSorted())
  })

  test('describe the bodies that are sent', async () => {
    for (const event of events()) {
      const { body } = await requestOf(event)
      expect([event.type, problems(bodySchema(event.type), JSON.parse(body))]).toEqual([
        event.type,
        [],
      ])
    }
  })

  test.each(deliveryTypes.filter((type) => type !== 'alert.closed'))(
    'describe the example of %s in the guide',
    async (type) => {
      const example: unknown = JSON.parse(await codeBlock('guide/webhooks.md', `example: ${type}`))
      expect(problems(bodySchema(type), example)).toEqual([])
    },
  )

  test('describe no body of another type', async () => {
    for (const event of events()) {
      const body: unknown = JSON.parse((await requestOf(event)).body)
      for (const type of Object.keys(described.webhooks).filter((one) => one !== event.type))
        expect([type, event.type, problems(bodySchema(type), body).length > 0]).toEqual([
          type,
          event.type,
          true,
        ])
    }
  })

  test('describe the headers that are sent, and no others', async () => {
    for (const event of events()) {
      const { headers } = await requestOf(event)
      const { parameters } = itemOf(event.type)
      // Those two are of every request with a body; OpenAPI has no parameter for the first.
      const own = Object.keys(headers).filter(
        (name) => !['content-type', 'user-agent'].includes(name),
      )
      expect(parameters.map(({ name }) => name).sort()).toEqual(own.sort())
      parameters.forEach(({ name }, i) => {
        const at = `#/webhooks/${event.type}/post/parameters/${i}/schema`
        expect([name, problems(at, headers[name])]).toEqual([name, []])
      })
    }
  })

  test('say what each answer leads to', () => {
    for (const [type, { post }] of Object.entries(described.webhooks)) {
      const answers =
        type === 'gate.session.approved'
          ? ['408', '409', '425', '429', '2XX', '3XX', '4XX']
          : ['410', '429', '2XX']
      expect([type, Object.keys(post.responses)]).toEqual([type, [...answers, 'default']])
    }
  })

  test('say what an approval has to be answered with', () => {
    const at =
      '#/webhooks/gate.session.approved/post/responses/2XX/content/application~1json/schema'
    expect(problems(at, { encrypted_delivery: vector.envelope })).toEqual([])
    expect(problems(at, { encrypted_delivery: { ...vector.envelope, salt: 'short' } })).not.toEqual(
      [],
    )
    expect(problems(at, {})).not.toEqual([])
  })

  test('have operation ids of their own', () => {
    const ids = Object.values(described.webhooks).map(({ post }) => post.operationId)
    const ofPaths = JSON.stringify(world.app.swagger().paths)
    expect(new Set(ids).size).toBe(ids.length)
    for (const id of ids) expect(ofPaths).not.toContain(`"operationId":"${id}"`)
  })
})
