import type { FastifyInstance } from 'fastify'
import type { Registry } from 'prom-client'
import type { Auth } from '../../infra/access/auth.ts'
import type { MissingProxyDetector } from '../../infra/http/missing-proxy.ts'
import type { Idempotency } from '../../infra/idempotency/idempotency.ts'
import type { NetworkSource } from '../../infra/ip/network.ts'
import type { Tx } from '../../infra/postgres/pool.ts'
import { agentRoutes } from '../agents/routes.ts'
import type { ResultSealer } from '../collect/hand-off.ts'
import { firstContinuityId } from '../collect/sealed-ids.ts'
import { consoleRoutes } from '../console/routes.ts'
import { correctionRoutes } from '../corrections/routes.ts'
import type { UnlinkableVisitors } from '../erasure/commands.ts'
import { erasureRoutes } from '../erasure/routes.ts'
import type { Gate } from '../gate/gate.ts'
import { consentPreviewRoutes } from '../gate/management/preview-routes.ts'
import { gateConsoleRoutes } from '../gate/management/routes.ts'
import { gateRoutes } from '../gate/routes.ts'
import { markRoutes } from '../marks/routes.ts'
import { auditRoutes } from '../organizations/audit-routes.ts'
import { serverOrganizationId } from '../organizations/consent-keys.ts'
import { organizationRoutes } from '../organizations/routes.ts'
import { readbackRoutes } from '../readback/routes.ts'
import { alertRoutes } from '../readback/views/alert-routes.ts'
import { deleteViewsNaming } from '../readback/views/commands.ts'
import { viewRoutes } from '../readback/views/routes.ts'
import { visitorLinks } from '../scoring/correct-visitors.ts'
import { stopLinking } from '../scoring/erase.ts'
import { createScoreExplainer } from '../scoring/explain/score.ts'
import type { Directories } from '../scoring/identity/directories.ts'
import type { FindTrusted } from '../scoring/identity/trusted-directories.ts'
import { standardModel } from '../scoring/model/model.ts'
import { scoringModelRoutes } from '../scoring/model/routes.ts'
import { waitForScoring } from '../scoring/open-sessions.ts'
import { createRequestCounter } from '../scoring/requests/metrics.ts'
import { requestRoutes } from '../scoring/requests/routes.ts'
import { signalDisplayNames } from '../scoring/signals/catalogue.ts'
import { readDocuments, readStates } from '../scoring/store.ts'
import { createLinkExplainer } from '../scoring/visitors/explain.ts'
import { readLinks } from '../scoring/visitors/links.ts'
import { buildQuestions } from '../web/build-sdk.ts'
import type { PackageSource } from '../web/packages.ts'
import { type Demo, webRoutes } from '../web/routes.ts'
import { siteStyle } from '../web/site-style.ts'
import { webhookRoutes } from '../webhooks/routes.ts'
import type { AccessControl } from './access.ts'
import { addCollect, type CollectRouteParts } from './collect.ts'
import type { Core } from './dependencies.ts'
import type { Role } from './roles.ts'

export interface AgentKnowledge {
  directories: Directories
  findTrusted: FindTrusted
}

export interface RouteParts {
  core: Core
  accessControl: AccessControl
  network: NetworkSource
  roles: readonly Role[]
  demo: Demo | undefined
  gate: Gate | undefined
  publicUrl: string
  /** Present with the role collect. */
  collect: CollectRouteParts | undefined
  /** Present with the role api. */
  agents: AgentKnowledge | undefined
  registry: Registry
  /** App that serves the console: `app` or another one; undefined with CONSOLE=off. */
  consoleApp: FastifyInstance | undefined
  missingProxy: MissingProxyDetector
  /** Started by `tidegate dev`. */
  isDevelopment: boolean
  /** Present with SDK_PACKAGES=on. */
  packages?: PackageSource | undefined
}

/** Adds the routes of the roles. Returns collect's result sealer, which the caller must close. */
export async function addRoutes(
  app: FastifyInstance,
  parts: RouteParts,
): Promise<ResultSealer | undefined> {
  const { core, accessControl, network, roles, demo, gate, collect, publicUrl, agents } = parts
  const { consoleMeter: meter, ...keys } = accessControl
  if (agents) addRequestRoutes(app, { ...parts, agents })
  if (roles.includes('api')) {
    addRest(app, { ...keys, core, network })
    const packages = parts.packages && { source: parts.packages, publicUrl }
    await webRoutes(app, { random: core.random, demo, packages })
  }
  if (parts.consoleApp) {
    await consentPreviewRoutes(parts.consoleApp, await siteStyle())
    await consoleRoutes(parts.consoleApp, {
      ...core,
      publicUrl,
      meter,
      missingProxy: parts.missingProxy,
      questionsScript: buildQuestions,
      teachesAtLogin: parts.isDevelopment,
      addRest(api, auth) {
        addRest(api, { ...keys, auth, core, network })
        gateConsoleRoutes(api, { ...core, auth })
      },
    })
  }
  if (gate) await gateRoutes(app, { ...keys, gate })
  return collect && addCollect(app, { ...core, ...keys, ...collect, publicUrl })
}

interface RestParts extends Pick<RouteParts, 'core' | 'network'> {
  auth: Auth
  idempotency: Idempotency
}

/** Adds the REST API: for back ends with API keys, and with the same handlers for people in the console. */
function addRest(app: FastifyInstance, { core, network, ...access }: RestParts): void {
  const readOptions = { ...core, ...access, pool: core.readPool }
  const options = { ...core, ...access }
  const explainMatch = createLinkExplainer(core.readPool)
  const explainScore = createScoreExplainer(core.readPool)
  const roleOf = (signal: string) => standardModel.signals[signal]?.role
  const findDocuments = (sessionId: string) => readDocuments(core.readPool, sessionId)
  readbackRoutes(app, { ...readOptions, explainMatch, explainScore, roleOf, findDocuments })
  scoringModelRoutes(app, { ...readOptions, signalNames: signalDisplayNames })
  organizationRoutes(app, options)
  auditRoutes(app, options)
  correctionRoutes(app, { ...options, visitors: visitorLinks })
  markRoutes(app, options)
  viewRoutes(app, options)
  alertRoutes(app, options)
  agentRoutes(app, { ...readOptions, network })
  webhookRoutes(app, options)
  erasureRoutes(app, { ...options, ...erasureParts(core) })
}

type RequestParts = Pick<RouteParts, 'core' | 'accessControl' | 'network' | 'registry'>

function addRequestRoutes(
  app: FastifyInstance,
  { core, accessControl, network, registry, agents }: RequestParts & { agents: AgentKnowledge },
): void {
  const { FIRST_PARTY_URLS: firstPartyUrls, SIGNATURE_MAX_SECONDS } = core.config
  const maxLifetimeMs = SIGNATURE_MAX_SECONDS * 1000
  const parts = {
    network,
    ...agents,
    firstPartyUrls,
    maxLifetimeMs,
    onScored: createRequestCounter(registry),
  }
  requestRoutes(app, { ...core, ...accessControl, ...parts })
}

function erasureParts(core: Core) {
  const { keyring } = core
  return {
    waitForScoring: () => waitForScoring(core),
    stopLinking: (tx: Tx, { erasedSessionIds, ...visitors }: UnlinkableVisitors) =>
      stopLinking(tx, {
        ...visitors,
        continuityIds: erasedSessionIds.flatMap((id) =>
          keyring.all.map((master) => firstContinuityId(master, id)),
        ),
      }),
    deleteViewsNaming,
    serverOrganizationId,
    exportDeps: {
      pool: core.readPool,
      readStates: (sessionIds: string[]) => readStates(core.readPool, sessionIds),
      readLinks: (sessionIds: string[]) => readLinks(core.readPool, sessionIds),
    },
  }
}
