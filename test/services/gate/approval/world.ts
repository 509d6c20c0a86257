import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { generateToken, type Token, tokenHashes } from '../../../../infra/crypto/tokens.ts'
import { decidedEvent } from '../../../../infra/event-store/decide.ts'
import type { DomainEvent } from '../../../../infra/event-store/event.ts'
import { type GateSessionId, randomId } from '../../../../infra/ids.ts'
import type { PostOptions, PostOutcome } from '../../../../infra/safe-http/client.ts'
import {
  type DeliveryKeys,
  deliveryRequestSchema,
  generateDeliveryKeys,
  openEnvelope,
  sealEnvelope,
} from '../../../../infra/wire/delivery-envelope.ts'
import { findGateSession } from '../../../../projections/gate/queries.ts'
import type { ApprovalDeps } from '../../../../services/gate/approval/account-request.ts'
import { startSignupApproval } from '../../../../services/gate/approval/commands.ts'
import { foundSession, serviceStream, sessionStream } from '../../../../services/gate/sessions.ts'
import { findBundle } from '../../../../services/gate/vault.ts'
import { createSigningSecrets } from '../../../../services/webhooks/deliveries/attempt.ts'
import { createDirectCalls } from '../../../../services/webhooks/direct-calls.ts'
import { proof, signupOpened } from '../given.ts'
import { gateOwner } from '../../../support/gate-world.ts'
import { openServiceWorld } from '../../../support/service-world.ts'
import { gateOptions, gateParts } from '../parts.ts'

export type Answer = (options: PostOptions) => Promise<PostOutcome> | PostOutcome

export interface Signup {
  id: GateSessionId
  keys: DeliveryKeys
  pollToken: Token<'gtpoll'>
}

const sentSchema = z.object({
  id: z.string(),
  data: z.object({ gate_account_id: z.string(), delivery: deliveryRequestSchema }),
})

/** What was sent, as the service reads it. */
export const sentBy = ({ body }: PostOptions) => sentSchema.parse(JSON.parse(body))

/** A response of the service. */
export function responding(status: number, content: unknown = ''): Answer {
  const body = Buffer.from(typeof content === 'string' ? content : JSON.stringify(content))
  return () => ({ kind: 'response', status, retryAfter: undefined, body, durationMs: 0 })
}

/** The service's good answer: an account by the id that it was sent. */
export const account: Answer = (sent) => {
  const { gate_account_id, delivery } = sentBy(sent).data
  const outputs = { ACME_API_KEY: `key of ${gate_account_id}` }
  const encrypted_delivery = sealEnvelope(
    { version: 1, outputs },
    { delivery, random: randomBytes },
  )
  return responding(200, { encrypted_delivery })(sent)
}

export const timeOut: Answer = () => ({
  kind: 'failure',
  reason: 'timeout',
  message: 'The receiver took too long.',
  durationMs: 10_000,
})

/** Gate over a real log, database and webhook calls, whose receiver is the test's script; so is the clock. */
export async function openApprovalWorld() {
  const world = await openServiceWorld()
  const { pool, log, codec, now, base, deps } = world
  const { keyring } = base
  const { decide } = deps
  const sent: PostOptions[] = []
  const script: { answer: Answer } = { answer: account }
  const client = {
    post: async (options: PostOptions) => {
      sent.push(options)
      return script.answer(options)
    },
  }
  const secretHash = randomBytes(32).toString('hex')
  const options = gateOptions(world, {
    directCalls: createDirectCalls({
      ...deps,
      log,
      codec,
      client,
      secrets: createSigningSecrets(keyring),
    }),
    consentKeys: {
      publishableKey: async () => 'pk_live_x',
      secretHashes: async () => [secretHash],
    },
  })
  const parts = gateParts(options)
  const { vault, pages } = parts

  /** Something happens to a service. */
  async function happenTo(serviceId: string, event: DomainEvent): Promise<void> {
    const eventId = randomId('evt', randomBytes)
    const about = { organizationId: null, environment: null, now: now.ms }
    await decide({
      ...serviceStream(serviceId),
      load: async () => undefined,
      decide: () => [decidedEvent(event, { ...about, eventId })],
    })
  }

  async function happen(event: DomainEvent, id: GateSessionId): Promise<void> {
    const about = { organizationId: null, environment: null, now: now.ms }
    const eventId = randomId('evt', randomBytes)
    await decide({
      ...sessionStream(id),
      load: async () => undefined,
      decide: () => [decidedEvent(event, { ...about, eventId })],
    })
  }

  /** A signup that waits for consent; without an owner, for the built-in service. */
  async function signup(
    owner?: { serviceId: string; organizationId: string },
    name = 'Robin',
    changes: { claim?: 'supported'; requested_ip?: string } = {},
  ): Promise<Signup> {
    const id = randomId('gate', randomBytes)
    const keys = generateDeliveryKeys()
    const pollToken = generateToken('gtpoll', randomBytes)
    const opened = signupOpened({
      poll_token_hash: tokenHashes(keyring, pollToken)[0],
      gate_session_id: id,
      service_id: owner?.serviceId ?? 'tidegate',
      organization_id: owner?.organizationId ?? null,
      account_name: name,
      metadata: JSON.stringify({ team: 'blue' }),
      delivery_key_id: keys.delivery.key_id,
      delivery_public_key: keys.delivery.public_key,
      opened_at: now.ms,
      ...changes,
    })
    await happen(opened, id)
    return { id, keys, pollToken }
  }

  const find = async (id: GateSessionId) => foundSession(await findGateSession(pool, id))

  /** A person approves. */
  async function approve({ id }: Signup): Promise<void> {
    const token = await pages.open(id)
    await startSignupApproval(
      { ...parts, decide },
      { session: await find(id), token, proof, isSameNetwork: true, acceptedEnvVars: [] },
    )
  }

  /** A signup that a person has approved. */
  async function started(...args: Parameters<typeof signup>): Promise<Signup> {
    const made = await signup(...args)
    await approve(made)
    return made
  }

  /** What whoever signed up can read of an approved signup. */
  async function delivered({ id, keys }: Signup) {
    const bundle = await findBundle(vault, await find(id))
    if (!bundle) throw new Error(`nothing is delivered to ${id}`)
    return {
      integrator: openEnvelope(bundle.integrator, keys.privateKey),
      gate: openEnvelope(bundle.gate, keys.privateKey),
    }
  }

  /** How long was waited each time. */
  const waits: number[] = []
  /** Waits pass at once, on the clock. */
  const approvalDeps = (changes: Partial<ApprovalDeps> = {}): ApprovalDeps => ({
    ...parts,
    sleep: async (ms) => {
      waits.push(ms)
      now.ms += Math.max(0, ms)
    },
    ...changes,
  })

  /** As after a restore from a dump, which has no keys. */
  const loseKeys = () => pool.query('truncate tidegate.gate_vault')

  return {
    ...world,
    loseKeys,
    secretHash,
    options,
    parts,
    waits,
    approvalDeps,
    script,
    /** Requests to services, in their order. */
    sent,
    sentTo: (id: GateSessionId) => sent.filter(({ body }) => body.includes(id)),
    owner: (fields?: Parameters<typeof gateOwner>[1]) => gateOwner(deps, fields),
    signup,
    approve,
    started,
    find,
    delivered,
    happen,
    happenTo,
  }
}

export type ApprovalWorld = Awaited<ReturnType<typeof openApprovalWorld>>
