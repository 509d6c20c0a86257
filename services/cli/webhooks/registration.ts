import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { z } from 'zod'
import { ApiError } from '../../../infra/errors/errors.ts'
import type { SubscribableType } from '../../../infra/wire/webhooks/event-types.ts'
import { dataDirectory } from '../credentials.ts'
import { writePrivate } from '../development.ts'
import { type Api, type Endpoint, endpointSchema } from './api.ts'
import type { Target } from './target.ts'

const defaultListener = { file: 'webhook-listener.json', name: 'tidegate webhooks listen' }

/** By organization and environment. */
const remembered = z.record(z.string(), z.object({ endpoint_id: z.string(), signing_secret: z.string() }))
type Remembered = z.infer<typeof remembered>

export interface Registration {
  endpointId: string
  signingSecret: string
}

interface Wanted {
  url: string
  eventTypes: SubscribableType[]
  /** Who listens: a file of DATA_DIR that remembers it, and the endpoint's name. Default: `tidegate webhooks listen`. */
  listener?: { file: string; name: string }
}

/**
 * An active endpoint at `url`: the one of the last time, moved, or a new one. Its id and secret are remembered in a
 * file of DATA_DIR that only its owner may read, so that not every start makes another endpoint.
 */
export async function register(api: Api, target: Target, wanted: Wanted): Promise<Registration> {
  const place = `${target.organizationId} ${target.environment}`
  const { file } = wanted.listener ?? defaultListener
  const all = await readRemembered(file)
  const known = all[place]
  if (known && (await reuse(api, known.endpoint_id, wanted)))
    return { endpointId: known.endpoint_id, signingSecret: known.signing_secret }
  const { id, signing_secret } = await create(api, wanted)
  const next: Remembered = { ...all, [place]: { endpoint_id: id, signing_secret } }
  await writePrivate({ dataDir: dataDirectory(), name: file, text: `${JSON.stringify(next, null, 2)}\n` })
  return { endpointId: id, signingSecret: signing_secret }
}

/** Nothing is delivered to it any more; what is due is skipped. */
export async function disable(api: Api, endpointId: string): Promise<void> {
  const body = { status: 'disabled' }
  await api.request({ method: 'PATCH', path: pathOf(endpointId), body, schema: endpointSchema })
}

/** Whether there still is such an endpoint, now active at the URL. */
async function reuse(api: Api, endpointId: string, { url, eventTypes }: Wanted): Promise<boolean> {
  const body = { url, event_types: eventTypes, status: 'active' }
  return api.request({ method: 'PATCH', path: pathOf(endpointId), body, schema: endpointSchema }).then(
    () => true,
    (error: unknown) => {
      if (error instanceof ApiError && error.status === 404) return false
      throw error
    },
  )
}

function create(
  api: Api,
  { url, eventTypes, listener = defaultListener }: Wanted,
): Promise<Endpoint & { signing_secret: string }> {
  const body = { name: listener.name, url, event_types: eventTypes }
  const schema = endpointSchema.extend({ signing_secret: z.string() })
  return api.request({ method: 'POST', path: '/webhooks/endpoints', body, schema })
}

const pathOf = (endpointId: string) => `/webhooks/endpoints/${encodeURIComponent(endpointId)}`

/** Nothing when there is no such file, or it is not ours. */
async function readRemembered(file: string): Promise<Remembered> {
  const text = await readFile(path.join(dataDirectory(), file), 'utf8').catch(() => '{}')
  try {
    return remembered.safeParse(JSON.parse(text)).data ?? {}
  } catch {
    return {}
  }
}
