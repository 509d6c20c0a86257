import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { z } from 'zod'
import { ApiError } from '../../../infra/errors/errors.ts'
import { parsedJson } from '../../../infra/text.ts'
import type { SubscribableType } from '../../../infra/wire/webhooks/events.ts'
import { dataDirectory, writePrivate } from '../credentials.ts'
import { askOrganization, ownEndpointSchema, type Target } from './target.ts'

const rememberedSchema = z.record(
  z.string(),
  z.object({ endpoint_id: z.string(), signing_secret: z.string() }),
)

/**
 * An active endpoint at `url`: the one of the last time, whose URL is changed, or a new one. Its id and secret are
 * remembered in `file` of DATA_DIR, which only its owner may read, so that not every start makes another endpoint.
 */
export async function ownEndpoint(
  target: Target,
  { url, eventTypes }: { url: string; eventTypes: SubscribableType[] },
  { file, name }: { file: string; name: string },
): Promise<{ endpointId: string; signingSecret: string }> {
  const place = `${target.organizationId} ${target.environment}`
  const remembered = await readRemembered(file)
  const known = remembered[place]
  const settings = { url, event_types: eventTypes }
  if (known && (await isThere(target, known.endpoint_id, settings)))
    return { endpointId: known.endpoint_id, signingSecret: known.signing_secret }
  const schema = ownEndpointSchema.extend({ signing_secret: z.string() })
  const created = {
    method: 'POST',
    path: '/webhooks/endpoints',
    body: { name, ...settings },
    schema,
  } as const
  const { id, signing_secret } = await askOrganization(target, created)
  const next = { ...remembered, [place]: { endpoint_id: id, signing_secret } }
  await writePrivate({
    dataDir: dataDirectory(),
    name: file,
    text: `${JSON.stringify(next, null, 2)}\n`,
  })
  return { endpointId: id, signingSecret: signing_secret }
}

export async function disableOwnEndpoint(target: Target, endpointId: string): Promise<void> {
  await change(target, endpointId, { status: 'disabled' })
}

// Makes it active with the settings; false where it was deleted.
function isThere(target: Target, endpointId: string, settings: object): Promise<boolean> {
  return change(target, endpointId, { ...settings, status: 'active' }).then(
    () => true,
    (error: unknown) => {
      if (error instanceof ApiError && error.status === 404) return false
      throw error
    },
  )
}

function change(target: Target, endpointId: string, body: object) {
  const path = `/webhooks/endpoints/${encodeURIComponent(endpointId)}`
  return askOrganization(target, { method: 'PATCH', path, body, schema: ownEndpointSchema })
}

async function readRemembered(file: string): Promise<z.output<typeof rememberedSchema>> {
  const text = await readFile(path.join(dataDirectory(), file), 'utf8').catch(() => '{}')
  return rememberedSchema.safeParse(parsedJson(text)).data ?? {}
}
