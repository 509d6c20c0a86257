import { z } from 'zod'
import { ApiError } from '../../../infra/errors/errors.ts'
import { directType } from '../../../infra/wire/webhooks/direct-call.ts'
import { askServer } from '../ask-server.ts'
import { disableOwnEndpoint, ownEndpoint } from '../webhooks/own-endpoint.ts'
import type { Target } from '../webhooks/target.ts'
import { variableNames } from './integrator.ts'

export interface SampleService {
  serviceId: string
  name: string
  /** Where it listens, with a slash at its end. */
  url: string
}

const serviceSchema = z.object({
  status: z.enum(['active', 'disabled']),
  discoverable: z.boolean(),
  website: z.string(),
})

export const frontPage = 'A sample service for development.'

/**
 * Registers the service and its webhook endpoint, or gives those of the last time the present address. Each service has
 * an endpoint of its own, which is changed only where the service may be. Returns the signing secret.
 */
export async function registerSampleService(
  target: Target,
  service: SampleService,
): Promise<string> {
  const { serviceId } = service
  const known = await find(target, serviceId)
  if (known?.status === 'disabled')
    throw new Error(
      `The service ${serviceId} was disabled for good: name another with --service-id.`,
    )
  if (known?.discoverable && known.website !== service.url && (await isRunning(known.website)))
    throw new Error(
      `${serviceId} runs already, on ${known.website}: name another with --service-id.`,
    )
  const { endpointId, signingSecret } = await ownEndpoint(
    target,
    { url: `${service.url}webhook`, eventTypes: [directType] },
    {
      file: `gate-dev-integrator.${serviceId}.json`,
      name: `tidegate gate dev-integrator ${serviceId}`,
    },
  )
  const changes = { ...definition(service), webhook_endpoint_id: endpointId }
  if (known) await change(target, serviceId, changes)
  else
    await ask(target, { method: 'POST', path: '', body: { id: serviceId, ...changes } }).catch(
      async (error) => {
        await disableOwnEndpoint(target, endpointId).catch(() => {})
        throw error
      },
    )
  return signingSecret
}

export async function hideService(target: Target, { serviceId }: SampleService): Promise<void> {
  await change(target, serviceId, { discoverable: false })
}

function find(target: Target, serviceId: string) {
  return ask(target, { method: 'GET', path: `/${serviceId}` }).catch((error: unknown) => {
    if (error instanceof ApiError && error.status === 404) return undefined
    throw error
  })
}

// Whether another of these commands listens there; one that was killed has left its address behind.
async function isRunning(website: string): Promise<boolean> {
  if (!website.startsWith('http://127.0.0.1:')) return false
  const page = await fetch(website, { signal: AbortSignal.timeout(2000) }).then(
    (response) => response.text(),
    () => '',
  )
  return page.includes(frontPage)
}

function change(target: Target, serviceId: string, body: object) {
  return ask(target, { method: 'PATCH', path: `/${serviceId}`, body })
}

function ask(
  { baseUrl, secretKey: bearer }: Target,
  { path, ...request }: { method: 'GET' | 'POST' | 'PATCH'; path: string; body?: object },
) {
  return askServer({
    ...request,
    baseUrl,
    bearer,
    path: `/v1/gate/services${path}`,
    schema: serviceSchema,
  })
}

const asciiArt = ['  ___  ', ' /   \\ ', '| o o |', ' \\_-_/ '].join('\n')

function definition({ serviceId, name, url }: SampleService) {
  const names = variableNames(serviceId)
  return {
    name,
    description: 'A sample service on this machine, whose accounts are good for nothing.',
    website: url,
    discoverable: true,
    docs_url: `${url}docs`,
    dashboard_login_url: `${url}auth/gate`,
    env_vars: [
      { name: 'API key', key: names.apiKey, secret: true },
      { name: 'Account', key: names.accountId, secret: false },
    ],
    sdks: [
      { label: 'curl', install: `curl -H "Authorization: Bearer $${names.apiKey}" ${url}`, url },
    ],
    branding: { primary_color: '#0f766e', secondary_color: '#f0fdfa', ascii_art: asciiArt },
    consent: { terms_url: `${url}terms`, privacy_url: `${url}privacy` },
  }
}
