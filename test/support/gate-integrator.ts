import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { deliveryRequestSchema, sealEnvelope } from '../../infra/wire/delivery-envelope.ts'
import type { Behaviour } from './webhook-behaviours.ts'
import { type Incoming, startWebhookReceiver, type WebhookReceiver } from './webhook-receiver.ts'

export interface Integrator extends WebhookReceiver {
  /** Created accounts by Gate session, one for each, however often it was requested. */
  accounts: ReadonlyMap<string, { gateAccountId: string; asked: number }>
}

const approvalSchema = z.object({
  data: z.looseObject({
    gate_session_id: z.string(),
    gate_account_id: z.string(),
    delivery: deliveryRequestSchema,
  }),
})

/** Chooses the response to a request about a Gate session. `signUp` is the correct one. */
export type Choose = (gateSessionId: string, signUp: Behaviour) => Behaviour

interface IntegratorOptions {
  choose?: Choose
}

/** Starts a service that creates an account for each approval and encrypts the credentials. */
export async function startIntegrator({
  choose = (_id, signUp) => signUp,
}: IntegratorOptions = {}): Promise<Integrator> {
  const accounts = new Map<string, { gateAccountId: string; asked: number }>()
  const answers = new Map<string, string>()

  function signUp(body: string): string {
    const { data } = approvalSchema.parse(JSON.parse(body))
    const { gate_session_id: id, gate_account_id: gateAccountId, delivery } = data
    accounts.set(id, { gateAccountId, asked: (accounts.get(id)?.asked ?? 0) + 1 })
    const outputs = { ACME_API_KEY: `acme-${randomBytes(8).toString('hex')}` }
    const sealed = () => sealEnvelope({ version: 1, outputs }, { delivery, random: randomBytes })
    const answer = answers.get(id) ?? JSON.stringify({ encrypted_delivery: sealed() })
    answers.set(id, answer)
    return answer
  }

  const answering = (body: string): Behaviour => ({
    name: 'sign up',
    meaning: 'acknowledged',
    answer: (_request, response) =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end(signUp(body)),
  })
  const chosen = ({ body }: Incoming) => choose(sessionIdOf(body), answering(body))
  const receiver = await startWebhookReceiver({ choose: chosen })
  return { ...receiver, accounts }
}

/** Returns the Gate session of the approval in the body. */
export const sessionIdOf = (body: string): string =>
  approvalSchema.parse(JSON.parse(body)).data.gate_session_id
