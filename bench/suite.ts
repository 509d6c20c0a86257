import type { Environment } from './environment.ts'
import type { Measurement } from './measurement.ts'
import { measureAppends } from './measures/appends.ts'
import { measureClaims, measureCollect } from './measures/collect.ts'
import { measureGuard } from './measures/guard.ts'
import { measureHostile } from './measures/hostile.ts'
import { measureLog } from './measures/log.ts'
import { measureMainThread } from './measures/main-thread.ts'
import { measureOverload } from './measures/overload.ts'
import { measurePeak } from './measures/peak.ts'
import { measureReadable } from './measures/readable.ts'
import { measureReadback } from './measures/readback.ts'
import { measureRebuild } from './measures/rebuild.ts'
import { measureRequests } from './measures/requests.ts'
import { measureRoles } from './measures/roles.ts'
import { measureSessionCost } from './measures/session-cost.ts'
import { measureStartup } from './measures/startup.ts'
import { measureHandOff, measureMemory, type Traffic } from './measures/traffic.ts'
import { measureWebhooks } from './measures/webhooks.ts'
import { quickScale, type Scale } from './scale.ts'

export const stepNames = [
  'memory',
  'peak',
  'cost',
  'hand-off',
  'readable',
  'readback',
  'requests',
  'overload',
  'roles',
  'webhooks',
  'rebuild',
  'collect',
  'claims',
  'guard',
  'hostile',
  'log',
  'appends',
  'startup',
  'main-thread',
] as const
export type StepName = (typeof stepNames)[number]

/** The steps of the table in docs/reports/performance.md. */
export const tableSteps: readonly StepName[] = [
  'cost',
  'hand-off',
  'readback',
  'webhooks',
  'collect',
  'appends',
]

export interface SuiteOptions {
  environment: Environment
  scale: Scale
  steps: readonly StepName[]
  onMeasured: (measurement: Measurement) => void
}

/** Runs the steps on a log, in an order in which each finds the data that it needs. */
export async function runSuite({
  environment,
  scale,
  steps,
  onMeasured,
}: SuiteOptions): Promise<void> {
  const step = async (name: StepName, measure: () => Promise<Measurement[]>) => {
    if (steps.includes(name)) for (const measurement of await measure()) onMeasured(measurement)
  }
  const peak = await withAllInOne(environment, async (traffic) => {
    const sessions = (steps.includes('memory') || steps.includes('rebuild') ? scale : quickScale)
      .sessions[environment.logName]
    // Always runs both: later steps read and rebuild the sessions, and derive their load from the peak.
    const memory = await measureMemory(traffic, sessions)
    await step('memory', async () => [memory])
    const measured = await measurePeak(traffic, steps.includes('peak') ? scale : quickScale)
    await step('peak', async () => [measured])
    const peak = measured.value.median
    await step('cost', () => measureSessionCost(traffic, scale))
    await step('hand-off', () => measureHandOff(traffic, scale.handOffs))
    await step('readable', () =>
      measureReadable({ ...traffic, peak, seconds: scale.halfPeakSeconds }),
    )
    await step('readback', async () => [await measureReadback(traffic, scale)])
    return peak
  })
  await step('requests', () => measureRequests(environment, scale))
  const overload = { environment, peak, seconds: scale.overloadSeconds }
  await step('overload', () => measureOverload(overload))
  await step('roles', () => measureRoles(environment, scale.costSessions))
  await step('webhooks', () => measureWebhooks(environment, scale))
  await step('rebuild', async () => [await measureRebuild(environment, scale.rebuilds)])
  await step('collect', () => measureCollect(environment, scale))
  await step('claims', () => measureClaims(environment, scale))
  await step('guard', () => measureGuard(environment, scale))
  await step('hostile', () => measureHostile(environment, scale))
  await step('log', () => measureLog(environment, scale))
  await step('appends', () => measureAppends(environment, scale))
  await step('startup', () => measureStartup(environment, scale.turns))
  // Runs once, because the log does not affect a page.
  if (environment.logName === 'embedded')
    await step('main-thread', () => measureMainThread(environment, scale.turns))
}

async function withAllInOne<T>(
  environment: Environment,
  work: (traffic: Traffic) => Promise<T>,
): Promise<T> {
  const child = await environment.startAllInOne()
  try {
    return await work({ environment, child })
  } finally {
    await child.stop()
  }
}
