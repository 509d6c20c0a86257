import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { z } from 'zod'
import { ApiError } from '../../../infra/errors/errors.ts'
import { parseJsonOrUndefined } from '../../../infra/text.ts'
import type { SubscribableType } from '../../../infra/wire/webhooks/events.ts'
import { dataDirectory, writePrivate } from '../credentials.ts'
import { endpointStatusSchema, requestOrganization, type Target } from './target.ts'

const storedSchema = z.record(
  z.string(),
  z.object({ endpoint_id: z.string(), signing_secret: z.string() }),
)

/**
 * Returns an active endpoint with this URL: updates the endpoint of the previous run, or creates a new one. Stores its id
 * and secret in `file` in DATA_DIR for the next run.
 */
export async function ensureEndpoint(
  target: Target,
  { url, eventTypes }: { url: string; eventTypes: SubscribableType[] },
  { file, name }: { file: string; name: string },
): Promise<{ endpointId: string; signingSecret: string }> {
  const storageKey = `${target.organizationId} ${target.environment}`
  const stored = await readStored(file)
  const previous = stored[storageKey]
  const settings = { url, event_types: eventTypes }
  if (previous && (await tryReactivate(target, previous.endpoint_id, settings)))
    return { endpointId: previous.endpoint_id, signingSecret: previous.signing_secret }
  const schema = endpointStatusSchema.extend({ signing_secret: z.string() })
  const request = {
    method: 'POST',
    path: '/webhooks/endpoints',
    body: { name, ...settings },
    schema,
  } as const
  const { id, signing_secret } = await requestOrganization(target, request)
  const next = { ...stored, [storageKey]: { endpoint_id: id, signing_secret } }
  await writePrivate({
    dataDir: dataDirectory(),
    name: file,
    text: `${JSON.stringify(next, null, 2)}\n`,
  })
  return { endpointId: id, signingSecret: signing_secret }
}

export async function disableEndpoint(target: Target, endpointId: string): Promise<void> {
  await updateEndpoint(target, endpointId, { status: 'disabled' })
}

// Updates and activates the endpoint. Returns false if it was deleted.
function tryReactivate(target: Target, endpointId: string, settings: object): Promise<boolean> {
  return updateEndpoint(target, endpointId, { ...settings, status: 'active' }).then(
    () => true,
    (error: unknown) => {
      if (error instanceof ApiError && error.status === 404) return false
      throw error
    },
  )
}

function updateEndpoint(target: Target, endpointId: string, body: object) {
  const path = `/webhooks/endpoints/${encodeURIComponent(endpointId)}`
  return requestOrganization(target, { method: 'PATCH', path, body, schema: endpointStatusSchema })
}

async function readStored(file: string): Promise<z.output<typeof storedSchema>> {
  const text = await readFile(path.join(dataDirectory(), file), 'utf8').catch(() => '{}')
  return storedSchema.safeParse(parseJsonOrUndefined(text)).data ?? {}
}
