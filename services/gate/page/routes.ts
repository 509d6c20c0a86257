import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import type { FastifyInstance } from 'fastify'
import {
  contentTypes,
  type FileType,
  fileRoute,
  isolation,
  pageHeaders,
} from '../../../infra/http/pages.ts'
import { isId } from '../../../infra/ids.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateContext } from '../context.ts'
import { findRegistered } from '../registry/registered.ts'

const folder = path.join(import.meta.dirname, 'assets')
// Whoever knows the address of a consent page may decide about the request.
const referrer = 'no-referrer'

export async function consentPageRoutes(app: FastifyInstance, context: GateContext): Promise<void> {
  const html = await readFile(path.join(folder, 'consent.html'), 'utf8')
  app.get<{ Params: { gateSessionId: string } }>(
    '/gate/consent/:gateSessionId',
    { schema: { hide: true } },
    async ({ params }, reply) => {
      const [key, logo] = await Promise.all([
        context.consentKeys.publishableKey(),
        logoOriginOf(params.gateSessionId, context),
      ])
      const images = ["'self'", ...(logo ? [logo] : [])]
      return reply
        .headers({ ...pageHeaders({ images, referrer, caching: 'no-store' }), ...isolation })
        .header('content-type', contentTypes.html)
        .send(html.replace('{{publishableKey}}', key))
    },
  )
  const receipt = await readFile(path.join(folder, 'receipt.html'), 'utf8')
  app.get('/gate/receipt/:gateSessionId', { schema: { hide: true } }, (_request, reply) =>
    reply
      .headers({ ...pageHeaders({ referrer, caching: 'no-store' }), ...isolation })
      .header('content-type', contentTypes.html)
      .send(receipt),
  )
  await assetRoutes(app)
}

// The page itself does not show whether there is such a session, because its script fetches that.
async function logoOriginOf(
  gateSessionId: string,
  { pool, publicUrl }: GateContext,
): Promise<string | undefined> {
  const session = isId('gate', gateSessionId)
    ? await findGateSession(pool, gateSessionId)
    : undefined
  if (!session) return undefined
  const service = await findRegistered(pool, { serviceId: session.service_id, publicUrl })
  return logoOrigin(service?.definition.branding.logo_url)
}

const types: Record<string, FileType> = { '.css': 'css', '.js': 'js' }

async function assetRoutes(app: FastifyInstance): Promise<void> {
  const headers = {
    ...pageHeaders({ referrer, caching: 'no-cache' }),
    'cross-origin-resource-policy': 'same-origin',
  }
  for (const file of await readdir(folder)) {
    const type = types[path.extname(file)]
    if (!type) continue
    const body = await readFile(path.join(folder, file), 'utf8')
    fileRoute(app, { url: `/gate/assets/${file}`, type, body }, headers)
  }
}

// An origin that a content security policy can name: no wildcard, nothing that ends a directive.
const plainOrigin = /^https?:\/\/[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?$/

export function logoOrigin(logoUrl: string | null | undefined): string | undefined {
  const origin = logoUrl ? URL.parse(logoUrl)?.origin : undefined
  return origin && plainOrigin.test(origin) ? origin : undefined
}
