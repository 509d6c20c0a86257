import { approveOverHttp, requestSignup } from '../gate-approve.ts'
import type { MarkedVisitor } from './visits.ts'

interface Gate {
  baseUrl: string
  serviceId: string
}

/**
 * Signs a person up for a service through an agent, with marks in everything that agent and person send. Returns the
 * Gate session.
 */
export async function signUpMarked(
  { marks, address }: MarkedVisitor,
  { baseUrl, serviceId }: Gate,
): Promise<string> {
  const agent = {
    'x-forwarded-for': address,
    'user-agent': `agent/${marks.text('gate.user-agent')}`,
    'x-request-id': marks.text('x-request-id'),
  }
  const headers = {
    'x-forwarded-for': address,
    'x-request-id': marks.text('x-request-id'),
    [`x-${marks.text('gate.a header of the page')}`]: 'x',
  }
  const account_name = `Name ${marks.text('gate.account_name')}`
  const metadata = { [marks.text('gate.metadata name')]: { inner: [marks.text('gate.metadata')] } }
  const { id } = await requestSignup(
    baseUrl,
    { service_id: serviceId, account_name, metadata },
    agent,
  )
  const approval = { baseUrl, gateSessionId: id, account_name, headers }
  const { data } = await approveOverHttp(approval)
  if (data?.status !== 'approved') throw new Error(`the signup is ${data?.status}`)
  return id
}
