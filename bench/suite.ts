import type { Environment } from './environment.ts'
import type { Measurement } from './measurement.ts'
import { measureCollect } from './measures/collect.ts'
import { measureGuard } from './measures/guard.ts'
import { measureHostile } from './measures/hostile.ts'
import { measureLog } from './measures/log.ts'
import { measureOverload } from './measures/overload.ts'
import { measureReadable } from './measures/readable.ts'
import { measureReadback } from './measures/readback.ts'
import { measureRebuild } from './measures/rebuild.ts'
import { measureSessionCost } from './measures/session-cost.ts'
import { measureStartup } from './measures/startup.ts'
import { measureHandOff, measureMemory, type Traffic } from './measures/traffic.ts'
import { measureWebhooks } from './measures/webhooks.ts'
import { quickScale, type Scale } from './scale.ts'

export const stepNames = [
  'memory',
  'cost',
  'hand-off',
  'readable',
  'readback',
  'overload',
  'webhooks',
  'rebuild',
  'collect',
  'guard',
  'hostile',
  'log',
  'startup',
] as const
export type StepName = (typeof stepNames)[number]

export interface SuiteOptions {
  environment: Environment
  scale: Scale
  steps: readonly StepName[]
  onMeasured: (measurement: Measurement) => void
}

/** Runs the steps on one log, in an order in which each finds the data that it needs. */
export async function runSuite({ environment, scale, steps, onMeasured }: SuiteOptions): Promise<void> {
  const step = async (name: StepName, measure: () => Promise<Measurement[]>) => {
    if (steps.includes(name)) for (const measurement of await measure()) onMeasured(measurement)
  }
  await withAllInOne(environment, async (traffic) => {
    const sessions = (steps.includes('memory') ? scale : quickScale).sessions[environment.logName]
    // Not a step that can be left out: what it leaves behind is what is read and rebuilt afterwards.
    const { measurement, sessionsPerSecond } = await measureMemory(traffic, sessions)
    await step('memory', async () => [measurement])
    await step('cost', () => measureSessionCost(traffic, scale.costSessions))
    await step('hand-off', () => measureHandOff(traffic, scale.handOffs))
    const load = { peak: sessionsPerSecond, seconds: scale.halfPeakSeconds }
    await step('readable', async () => [await measureReadable({ ...traffic, ...load })])
    await step('readback', async () => [await measureReadback(traffic, scale)])
    await step('overload', () =>
      measureOverload(traffic, { peak: sessionsPerSecond, seconds: scale.overloadSeconds }),
    )
  })
  await step('webhooks', () => measureWebhooks(environment, scale))
  await step('rebuild', async () => [await measureRebuild(environment, scale.rebuilds)])
  await step('collect', () => measureCollect(environment, scale))
  await step('guard', () => measureGuard(environment, scale))
  await step('hostile', () => measureHostile(environment, scale))
  await step('log', () => measureLog(environment, scale))
  await step('startup', () => measureStartup(environment, scale.turns))
}

async function withAllInOne(
  environment: Environment,
  work: (traffic: Traffic) => Promise<void>,
): Promise<void> {
  const child = await environment.startAllInOne()
  try {
    await work({ environment, child })
  } finally {
    await child.stop()
  }
}
