import { Registry } from 'prom-client'
import { readConfig } from '../infra/config.ts'
import { createMissingProxyDetector } from '../infra/http/missing-proxy.ts'
import { createRandom } from '../infra/random.ts'
import { createLogger } from '../infra/telemetry.ts'
import type { Claim } from '../services/collect/claims.ts'
import { createDocumentCounter } from '../services/collect/metrics.ts'
import { createAccessControl } from '../services/server/access.ts'
import { addCollect, openAdmission, openRecipientCache } from '../services/server/collect.ts'
import { openCore } from '../services/server/dependencies.ts'
import { createHttp } from '../services/server/http.ts'
import { createLocalDecisions } from '../services/server/local-decisions.ts'

// The role collect without claims of sequence numbers. The difference from `serve` is the cost of claims.
const config = readConfig(process.env)
const undo = new AsyncDisposableStack()
const core = await openCore({
  config,
  databaseUrl: config.DATABASE_URL ?? '',
  masterKeys: config.TIDEGATE_MASTER_KEYS ?? '',
  logger: createLogger(config.LOG_LEVEL),
  clock: Date.now,
  random: createRandom(),
})
undo.defer(core.close)
const publicUrl = 'http://127.0.0.1'
const registry = new Registry()
const parts = {
  publicUrl,
  running: [],
  registry,
  isStopping: () => false,
  roles: [],
  missingProxy: createMissingProxyDetector(core),
  undo,
}
const { app, counters } = await createHttp(core, parts)
const { auth } = createAccessControl(core, { counters, undo })
const admission = openAdmission(core, { registry, undo })
const recipients = openRecipientCache(core, undo)
// Without `appendIf`, collect uses this claim, which does nothing.
const { appendIf: _, ...log } = core.log
const claims = { claim: async (mine: Claim) => mine }
const countDocument = createDocumentCounter(registry)
const resultSealer = addCollect(app, {
  ...core,
  localDecisions: createLocalDecisions(core.applied),
  log,
  auth,
  admission,
  claims,
  countDocument,
  recipients,
  publicUrl,
})
undo.defer(() => resultSealer.close())
undo.defer(() => app.close())
console.log(`Unclaimed is ready: ${await app.listen({ port: 0, host: '127.0.0.1' })}`)
process.once('SIGTERM', () => void undo.disposeAsync())
