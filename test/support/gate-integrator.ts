import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { deliveryRequestSchema, sealEnvelope } from '../../infra/wire/delivery-envelope.ts'
import type { Behaviour } from './webhook-behaviours.ts'
import { type Incoming, startWebhookReceiver, type WebhookReceiver } from './webhook-receiver.ts'

export interface Integrator extends WebhookReceiver {
  /** Accounts that it made, by Gate session: one each, however often it was asked. */
  accounts: ReadonlyMap<string, { gateAccountId: string; asked: number }>
}

const approvalSchema = z.object({
  data: z.looseObject({
    gate_session_id: z.string(),
    gate_account_id: z.string(),
    delivery: deliveryRequestSchema,
  }),
})

/** How a request about a Gate session is answered; `signUp` is how it should be. */
export type Choose = (gateSessionId: string, signUp: Behaviour) => Behaviour

interface IntegratorOptions {
  choose?: Choose
}

/** A service that makes an account for each approval it is told of, and seals its credentials. */
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

/** Which Gate session the approval in the body is about. */
export const sessionIdOf = (body: string): string =>
  approvalSchema.parse(JSON.parse(body)).data.gate_session_id
