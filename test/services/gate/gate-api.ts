import { afterAll } from 'vitest'
import { asId } from '../../../infra/ids.ts'
import type { PostOptions, RequestOutcome } from '../../../infra/safe-http/client.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import { type ApiOptions, startApi } from '../../support/api.ts'
import { answeringService, freshAddress, gateFlow } from '../../support/gate-flow.ts'
import { gateOwner } from '../../support/gate-world.ts'
import { setStatus } from '../../support/organization-status.ts'
import { publicUrl, type Send } from '../../support/send.ts'

export type ServiceAnswer = (sent: PostOptions) => Promise<RequestOutcome> | RequestOutcome

export function responding(status: number, content: unknown = ''): ServiceAnswer {
  const body = Buffer.from(typeof content === 'string' ? content : JSON.stringify(content))
  return () => ({ kind: 'response', status, retryAfter: undefined, body, durationMs: 0 })
}

/** Services that respond as scripted, and the requests that they received. */
export function scriptedServices() {
  const script: { answer: ServiceAnswer } = { answer: answeringService }
  const sent: PostOptions[] = []
  return {
    script,
    sentTo: (gateSessionId: string) => sent.filter(({ body }) => body.includes(gateSessionId)),
    /** Delays the response until it is released; `asked` resolves at the first request. */
    holdAnswers() {
      const { promise: released, resolve: letGo } = Promise.withResolvers<void>()
      const { promise: asked, resolve } = Promise.withResolvers<void>()
      script.answer = async (request) => {
        resolve()
        await released
        return answeringService(request)
      }
      return { asked, letGo }
    },
    client: {
      post: async (options: PostOptions) => {
        sent.push(options)
        return script.answer(options)
      },
    },
  }
}

/** Starts a server in this process whose services respond as a test says. */
export async function useGateApi(options: Pick<ApiOptions, 'gate' | 'log'> = {}) {
  const { client, ...services } = scriptedServices()
  const api = await startApi({ ...options, services: client })
  afterAll(() => api.stop())
  if (!api.gate) throw new Error('there is no Gate')
  const { parts } = api.gate
  const flow = gateFlow({
    app: api.app,
    publicUrl,
    clock: parts.clock,
    consentKeys: parts.consentKeys,
  })

  /** Sends a request below /v1/gate, by default from a new address. */
  async function ask(path: string, { ip = freshAddress(), ...request }: Omit<Send, 'url'> = {}) {
    const { status, headers, body } = await api.send({ ...request, ip, url: `/v1/gate/${path}` })
    const { data, error } = body ?? {}
    /** Returns the status, the error code, and the fields that the error names. */
    const names = (error?.details?.fields ?? []).map(({ name }: { name: string }) => name)
    const outcome = [status, ...(error ? [error.code, ...names] : [])].join(' ')
    return { status, headers, body, data, error, outcome }
  }
  const post = (path: string, body?: unknown, more: Omit<Send, 'url'> = {}) =>
    ask(path, { method: 'POST', body, ...more })

  return {
    ...api,
    ...services,
    parts,
    flow,
    ask,
    post,
    owner: (fields?: Parameters<typeof gateOwner>[1]) => gateOwner(api.deps, fields),
    setStatus: (organizationId: string, status: 'active' | 'suspended' | 'deleted') =>
      setStatus(api.deps, organizationId, status),
    session: (id: string) => findGateSession(api.pool, asId('gate', id)),
  }
}
