import { readFile } from 'node:fs/promises'
import path from 'node:path'
import type { FastifyInstance } from 'fastify'
import { endpoint } from '../../../infra/http/endpoint.ts'
import {
  contentTypes,
  fileRoute,
  isolationHeaders,
  pageHeaders,
} from '../../../infra/http/pages.ts'
import { single } from '../../../infra/http/schemas.ts'
import { findService } from '../../../projections/gate/queries.ts'
import type { GateServiceRow } from '../../../projections/gate/tables.ts'
import type { GateManagement } from '../context.ts'
import { consentAssetRoutes } from '../page/routes.ts'
import { noSuchService, requireOwnedService } from '../registry/decide.ts'
import { isServiceId } from '../registry/fields.ts'
import { signupVariablesOf } from '../registry/ownership.ts'
import { registryEntryJson } from '../registry/registered-services.ts'
import { serviceParams } from '../registry/schemas.ts'
import { gateRoute } from '../requests.ts'
import { sessionTtlMs } from '../sessions.ts'
import { consentSchema } from '../signup/schemas.ts'

const folder = path.join(import.meta.dirname, '../page/assets')
const page = '/console/consent-preview'
// Allows logos of all servers, because the page may not look up the service before the person is authenticated.
const imageSources = ["'self'", 'https:', 'http:']
const headers = {
  ...pageHeaders({ imageSources, referrer: 'no-referrer', caching: 'no-cache' }),
  ...isolationHeaders,
}

/**
 * Serves a preview of a service's consent page to the console. Its files are below the page, because the console may
 * have its own port, without the consent page and the site's style.
 */
export async function consentPreviewRoutes(app: FastifyInstance, siteStyle: string): Promise<void> {
  const html = previewHtml(await readFile(path.join(folder, 'consent.html'), 'utf8'))
  app.get(`${page}/:environment/:serviceId`, { schema: { hide: true } }, (_request, reply) =>
    reply.headers(headers).header('content-type', contentTypes.html).send(html),
  )
  fileRoute(app, { url: `${page}/site.css`, type: 'css', body: siteStyle }, headers)
  await consentAssetRoutes(app, page, headers)
}

/** Returns the consent page with relative URLs and without the SDK. */
function previewHtml(html: string): string {
  return html
    .replaceAll('"/assets/mark.svg"', '"../../assets/mark.svg"')
    .replaceAll(/"\/(?:gate\/)?assets\//g, '"../')
    .replace('"../main.js"', '"../preview.js"')
    .replaceAll(/^.*(?:tidegate-key|\/t\.js).*\n/gm, '')
}

/** Adds the route that the preview reads its data from. */
export function consentPreviewDataRoute(
  app: FastifyInstance,
  { pool, auth, clock }: GateManagement,
): void {
  endpoint(app, {
    ...gateRoute,
    route: 'GET /gate/services/:serviceId/consent-preview',
    auth: auth.requireSecret('gate:services:read'),
    operationId: 'previewGateConsent',
    summary: 'Retrieve sample consent data',
    params: serviceParams,
    responses: { 200: single(consentSchema) },
    errors: [404],
    async run(request) {
      const { serviceId } = request.params
      if (!isServiceId(serviceId)) throw noSuchService()
      const owned = { ...auth.dataScope(request), serviceId }
      const service = requireOwnedService(await findService(pool, serviceId), owned)
      return { data: sampleConsent(service, clock()) }
    },
  })
}

function sampleConsent(service: GateServiceRow, now: number) {
  return {
    object: 'gate_consent' as const,
    gate_session_id: `gate_${'0'.repeat(26)}`,
    kind: 'signup' as const,
    status: 'pending' as const,
    account_name: 'Robin',
    service: registryEntryJson(service),
    variables: signupVariablesOf(service),
    approve_token: '',
    confirmation_code: 'K4-7M9',
    requested_by: {
      ip_address: '203.0.113.9',
      user_agent: 'tidegate',
      at: new Date(now).toISOString(),
      network: { same: true, country: null, operator: null },
    },
    expires_at: new Date(now + sessionTtlMs).toISOString(),
  }
}
