import { z } from 'zod'
import { ApiError } from '../../../../infra/http/errors.ts'
import { directType } from '../../../../infra/webhooks/direct-call.ts'
import { askServer } from '../../server.ts'
import { createApi } from '../../webhooks/api.ts'
import { register } from '../../webhooks/registration.ts'
import type { Target } from '../../webhooks/target.ts'
import { variableNames } from './accounts.ts'

export interface SampleService {
  serviceId: string
  name: string
  /** Where it listens, with a slash at its end. */
  url: string
}

const listener = { file: 'gate-dev-integrator.json', name: 'tidegate gate dev-integrator' }
const serviceSchema = z.object({ status: z.enum(['active', 'disabled']) })

/** Registers the service and its webhook endpoint, or leads those of the last time here. Returns the signing secret. */
export async function registerService(target: Target, service: SampleService): Promise<string> {
  const url = `${service.url}webhook`
  const { endpointId, signingSecret } = await register(createApi(target), target, {
    url,
    eventTypes: [directType],
    listener,
  })
  const changes = { ...definition(service), webhook_endpoint_id: endpointId }
  const { status } = await change(target, { ...service, changes }).catch((error: unknown) => {
    if (!(error instanceof ApiError && error.status === 404)) throw error
    const body = { id: service.serviceId, ...changes }
    return ask(target, { method: 'POST', path: '', body })
  })
  if (status === 'active') return signingSecret
  throw new Error(`The service ${service.serviceId} was disabled for good: name another with --service-id.`)
}

/** Nobody can begin a signup for it any more. */
export async function hideService(target: Target, { serviceId }: SampleService): Promise<void> {
  await change(target, { serviceId, changes: { discoverable: false } })
}

function change(target: Target, { serviceId, changes }: { serviceId: string; changes: object }) {
  return ask(target, { method: 'PATCH', path: `/${serviceId}`, body: changes })
}

interface Asked {
  method: 'POST' | 'PATCH'
  path: string
  body: object
}

function ask({ baseUrl, secretKey: bearer }: Target, { path, ...request }: Asked) {
  return askServer({ ...request, baseUrl, bearer, path: `/v1/gate/services${path}`, schema: serviceSchema })
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
    sdks: [{ label: 'curl', install: `curl -H "Authorization: Bearer $${names.apiKey}" ${url}`, url }],
    branding: { primary_color: '#0f766e', secondary_color: '#f0fdfa', ascii_art: asciiArt },
    consent: { terms_url: `${url}terms`, privacy_url: `${url}privacy` },
  }
}
