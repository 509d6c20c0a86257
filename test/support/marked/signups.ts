import { generateDeliveryKeys } from '../../../infra/wire/delivery-envelope.ts'
import { eventually } from '../eventually.ts'
import { consentProof } from '../gate-proof.ts'
import type { MarkedVisitor } from './visits.ts'

interface Gate {
  baseUrl: string
  serviceId: string
}

/**
 * The person's agent asks a service for an account, and the person approves it. All that an agent and a person can say
 * is marked; their address is the person's own. Returns the Gate session.
 */
export async function signUpMarked(
  visitor: MarkedVisitor,
  { baseUrl, serviceId }: Gate,
): Promise<string> {
  const { marks } = visitor
  const accountName = `Name ${marks.text('gate.account_name')}`
  const created = await send(visitor, `${baseUrl}/v1/gate/sessions`, {
    service_id: serviceId,
    account_name: accountName,
    metadata: { [marks.text('gate.metadata name')]: { inner: [marks.text('gate.metadata')] } },
    delivery: generateDeliveryKeys().delivery,
  })
  const session = `${baseUrl}/v1/gate/sessions/${created.id}`
  const { approve_token } = await send(visitor, `${session}/consent`)
  const headers = {
    'x-forwarded-for': visitor.address,
    [`x-${marks.text('gate.a header of the page')}`]: 'x',
  }
  const proof = await consentProof({
    baseUrl,
    gateSessionId: created.id,
    approveToken: approve_token,
    headers,
  })
  const approval = { approve_token, sealed_token: proof.sealedToken, account_name: accountName }
  await eventually(async () => {
    const { status } = await send(visitor, `${session}/approve`, approval)
    if (status !== 'approved') throw new Error(`the signup is ${status}`)
  })
  return created.id
}

async function send({ marks, address }: MarkedVisitor, url: string, body?: object) {
  const answer = await fetch(url, {
    method: body ? 'POST' : 'GET',
    headers: {
      'x-forwarded-for': address,
      'user-agent': `agent/${marks.text('gate.user-agent')}`,
      'x-request-id': marks.text('x-request-id'),
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  })
  const text = await answer.text()
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${text}`)
  const { data }: { data: { id: string; approve_token: string; status: string } } = JSON.parse(text)
  return data
}
