import { randomBytes } from 'node:crypto'
import type { FastifyInstance } from 'fastify'
import { z } from 'zod'
import { asId, type Clock, randomId } from '../../infra/ids.ts'
import type { PostOptions, PostOutcome } from '../../infra/safe-http/client.ts'
import {
  type DeliveryKeys,
  type DeliveryPayload,
  deliveryEnvelopeSchema,
  deliveryRequestSchema,
  generateDeliveryKeys,
  openEnvelope,
  sealEnvelope,
} from '../../infra/wire/delivery-envelope.ts'
import { consentUrl } from '../../infra/wire/gate.ts'
import { sealToken } from '../../infra/wire/sealed-token.ts'
import type { ConsentKeys } from '../../services/gate/context.ts'
import { handOffFor } from './gate-proof.ts'

export interface GateFlowOptions {
  app: FastifyInstance
  publicUrl: string
  clock: Clock
  consentKeys: ConsentKeys
}

export interface OpenedSession {
  id: string
  pollToken: string
  keys: DeliveryKeys
}

/** A signup that was approved and whose credentials wait. */
export interface ApprovedSignup extends OpenedSession {
  ackToken: string
  /** Where the service has a dashboard. */
  agentToken: string | undefined
}

export interface ProofChanges {
  verdict?: 'human' | 'bot' | 'inconclusive'
  /** Of another Gate session's page. */
  of?: string
  /** Milliseconds. */
  age?: number
}

let requests = 0

/** An address that nobody else has: some limits are by address. */
export function freshAddress(): string {
  requests++
  return `10.${(requests >> 16) & 255}.${(requests >> 8) & 255}.${requests & 255}`
}

const created = z.object({
  data: z.looseObject({ id: z.string(), poll_token: z.string().optional() }),
})
const consented = z.object({ data: z.looseObject({ approve_token: z.string() }) })
const approvedLogin = z.object({ data: z.looseObject({ code: z.string() }) })
const bundle = z.object({
  data: z.looseObject({
    delivery_bundle: z.object({ integrator: deliveryEnvelopeSchema, gate: deliveryEnvelopeSchema }),
  }),
})

/** The steps of signups and logins, by HTTP, with proofs as a person's consent page makes them. */
export function gateFlow({ app, publicUrl, clock, consentKeys }: GateFlowOptions) {
  async function send(
    method: 'GET' | 'POST',
    path: string,
    { token, body }: { token?: string; body?: object },
  ) {
    const response = await app.inject({
      method,
      url: `/v1/gate/${path}`,
      remoteAddress: freshAddress(),
      headers: { ...(token !== undefined && { authorization: `Bearer ${token}` }) },
      ...(body && { payload: body }),
    })
    if (response.statusCode >= 300)
      throw new Error(`${method} ${path}: ${response.statusCode} ${response.body}`)
    return response.json()
  }

  async function open(serviceId: string): Promise<OpenedSession> {
    const keys = generateDeliveryKeys()
    const body = { service_id: serviceId, account_name: 'Robin', delivery: keys.delivery }
    const { data } = created.parse(await send('POST', 'sessions', { body }))
    return { id: data.id, pollToken: data.poll_token ?? '', keys }
  }

  const approveToken = async (id: string) =>
    consented.parse(await send('GET', `sessions/${id}/consent`, {})).data.approve_token

  /** What the consent page of the session gets from scoring. */
  async function proof(
    id: string,
    token: string,
    { verdict = 'human', of = id, age = 1000 }: ProofChanges = {},
  ) {
    const payload = {
      session_id: randomId('sid', randomBytes),
      decision: {
        event_id: randomId('evt', randomBytes),
        verdict,
        risk_score: 12,
        evaluated_at: new Date(clock() - age).toISOString(),
      },
      request: { url: consentUrl(publicUrl, asId('gate', of)) },
      hand_off: handOffFor(token),
    }
    return sealToken({
      payload,
      secretHashes: await consentKeys.secretHashes(),
      random: randomBytes,
    })
  }

  /** What the page posts when a person approves. */
  async function approval(id: string, changes?: ProofChanges) {
    const approve_token = await approveToken(id)
    return { approve_token, sealed_token: await proof(id, approve_token, changes) }
  }

  const approve = async (id: string) =>
    send('POST', `sessions/${id}/approve`, { body: await approval(id) })

  async function signUp(serviceId: string): Promise<ApprovedSignup> {
    const session = await open(serviceId)
    await approve(session.id)
    const polled = await send('GET', `sessions/${session.id}`, { token: session.pollToken })
    const { gate } = bundle.parse(polled).data.delivery_bundle
    const { ack_token: ackToken = '', outputs } = openEnvelope(gate, session.keys.privateKey)
    return { ...session, ackToken, agentToken: Object.values(outputs)[0] }
  }

  async function openLogin(serviceId: string, agentToken: string): Promise<string> {
    const body = { service_id: serviceId }
    return created.parse(await send('POST', 'login-sessions', { token: agentToken, body })).data.id
  }

  return {
    open,
    approveToken,
    proof,
    approval,
    approve,
    signUp,
    openLogin,
    /** The one-time code of a login that a person approved. */
    loginCode: async (serviceId: string, agentToken: string) =>
      approvedLogin.parse(await approve(await openLogin(serviceId, agentToken))).data.code,
  }
}

export type GateFlow = ReturnType<typeof gateFlow>

const approvedEvent = z.object({ data: z.looseObject({ delivery: deliveryRequestSchema }) })

/** A service that answers an approval as it should, in place of a client that would send it. */
export async function answeringService({ body }: Pick<PostOptions, 'body'>): Promise<PostOutcome> {
  const { delivery } = approvedEvent.parse(JSON.parse(String(body))).data
  const payload: DeliveryPayload = { version: 1, outputs: { ACME_API_KEY: 'secret' } }
  const answer = { encrypted_delivery: sealEnvelope(payload, { delivery, random: randomBytes }) }
  return {
    kind: 'response',
    status: 200,
    body: Buffer.from(JSON.stringify(answer)),
    durationMs: 1,
    retryAfter: undefined,
  }
}
