import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import type { FastifyInstance } from 'fastify'
import {
  contentTypes,
  type FileType,
  fileRoute,
  isolationHeaders,
  pageHeaders,
} from '../../../infra/http/pages.ts'
import { isId } from '../../../infra/ids.ts'
import { findGateSession } from '../../../projections/gate/queries.ts'
import type { GateContext } from '../context.ts'
import { findRegisteredService } from '../registry/registered-services.ts'

const folder = path.join(import.meta.dirname, 'assets')
// Anyone with the page's URL can decide the request, so it must not leak in a referrer.
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
      const imageSources = ["'self'", ...(logo ? [logo] : [])]
      return reply
        .headers({
          ...pageHeaders({ imageSources, referrer, caching: 'no-store' }),
          ...isolationHeaders,
        })
        .header('content-type', contentTypes.html)
        .send(html.replace('{{publishableKey}}', key))
    },
  )
  const receiptHtml = await readFile(path.join(folder, 'receipt.html'), 'utf8')
  app.get('/gate/receipt/:gateSessionId', { schema: { hide: true } }, (_request, reply) =>
    reply
      .headers({ ...pageHeaders({ referrer, caching: 'no-store' }), ...isolationHeaders })
      .header('content-type', contentTypes.html)
      .send(receiptHtml),
  )
  await consentAssetRoutes(app, '/gate/assets', {
    ...pageHeaders({ referrer, caching: 'no-cache' }),
    'cross-origin-resource-policy': 'same-origin',
  })
}

// Returns undefined for an unknown session, too, because the page's script reports that.
async function logoOriginOf(
  gateSessionId: string,
  { pool, publicUrl }: GateContext,
): Promise<string | undefined> {
  const session = isId('gate', gateSessionId)
    ? await findGateSession(pool, gateSessionId)
    : undefined
  if (!session) return undefined
  const service = await findRegisteredService(pool, { serviceId: session.service_id, publicUrl })
  return logoOrigin(service?.definition.branding.logo_url)
}

const typeByExtension: Record<string, FileType> = { '.css': 'css', '.js': 'js' }

/** Serves the scripts and styles of the consent page below `prefix`. */
export async function consentAssetRoutes(
  app: FastifyInstance,
  prefix: string,
  headers: Record<string, string>,
): Promise<void> {
  for (const file of await readdir(folder)) {
    const type = typeByExtension[path.extname(file)]
    if (!type) continue
    const body = await readFile(path.join(folder, file), 'utf8')
    fileRoute(app, { url: `${prefix}/${file}`, type, body }, headers)
  }
}

// Origins that are safe in a content security policy: without wildcards and characters that end a directive.
const plainOrigin = /^https?:\/\/[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::\d{1,5})?$/

export function logoOrigin(logoUrl: string | null | undefined): string | undefined {
  const origin = logoUrl ? URL.parse(logoUrl)?.origin : undefined
  return origin && plainOrigin.test(origin) ? origin : undefined
}
