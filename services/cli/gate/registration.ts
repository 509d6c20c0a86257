import { z } from 'zod'
import { ApiError } from '../../../infra/errors/errors.ts'
import { directEventType } from '../../../infra/wire/webhooks/direct-call.ts'
import { requestServer } from '../request-server.ts'
import { disableEndpoint, ensureEndpoint } from '../webhooks/ensure-endpoint.ts'
import type { Target } from '../webhooks/target.ts'
import { variableNames } from './integrator.ts'

export interface SampleService {
  serviceId: string
  name: string
  /** URL it listens on, with a trailing slash. */
  url: string
}

const serviceSchema = z.object({
  status: z.enum(['active', 'disabled']),
  discoverable: z.boolean(),
  website: z.string(),
})

export const frontPage = 'A sample service for development.'

/**
 * Registers the service and its webhook endpoint, or updates their URLs if a previous run registered them. Returns the
 * signing secret. If the service is disabled or already running, throws and changes nothing.
 */
export async function registerSampleService(
  target: Target,
  service: SampleService,
): Promise<string> {
  const { serviceId } = service
  const existing = await findRegisteredService(target, serviceId)
  if (existing?.status === 'disabled')
    throw new Error(
      `The service ${serviceId} is permanently disabled: choose another with --service-id.`,
    )
  if (
    existing?.discoverable &&
    existing.website !== service.url &&
    (await isRunning(existing.website))
  )
    throw new Error(
      `${serviceId} is already running on ${existing.website}: choose another with --service-id.`,
    )
  const { endpointId, signingSecret } = await ensureEndpoint(
    target,
    { url: `${service.url}webhook`, eventTypes: [directEventType] },
    {
      file: `gate-dev-integrator.${serviceId}.json`,
      name: `tidegate gate dev-integrator ${serviceId}`,
    },
  )
  const changes = { ...definition(service), webhook_endpoint_id: endpointId }
  if (existing) await updateService(target, serviceId, changes)
  else
    await requestServices(target, {
      method: 'POST',
      path: '',
      body: { id: serviceId, ...changes },
    }).catch(async (error) => {
      await disableEndpoint(target, endpointId).catch(() => {})
      throw error
    })
  return signingSecret
}

export async function hideService(target: Target, { serviceId }: SampleService): Promise<void> {
  await updateService(target, serviceId, { discoverable: false })
}

function findRegisteredService(target: Target, serviceId: string) {
  return requestServices(target, { method: 'GET', path: `/${serviceId}` }).catch(
    (error: unknown) => {
      if (error instanceof ApiError && error.status === 404) return undefined
      throw error
    },
  )
}

// Returns true if another dev-integrator serves the website. A killed one leaves its URL registered, too.
async function isRunning(website: string): Promise<boolean> {
  if (!website.startsWith('http://127.0.0.1:')) return false
  const page = await fetch(website, { signal: AbortSignal.timeout(2000) }).then(
    (response) => response.text(),
    () => '',
  )
  return page.includes(frontPage)
}

function updateService(target: Target, serviceId: string, body: object) {
  return requestServices(target, { method: 'PATCH', path: `/${serviceId}`, body })
}

function requestServices(
  { baseUrl, secretKey: bearer }: Target,
  { path, ...request }: { method: 'GET' | 'POST' | 'PATCH'; path: string; body?: object },
) {
  return requestServer({
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
    description: 'A sample service on this machine. Its accounts do nothing.',
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
