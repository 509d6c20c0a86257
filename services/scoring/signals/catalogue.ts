import { answerSignals } from './answers.ts'
import { automationSignals, tamperSignals } from './automation.ts'
import { behaviorSignals, trustSignals } from './behavior.ts'
import { nativeSignals, networkSignals, protocolSignals } from './connection.ts'
import { consistencySignals, headerSignals } from './consistency.ts'
import { headlessSignals, machineSignals } from './headless.ts'
import { repeatSignals } from './repeats.ts'
import type { Definition } from './signal.ts'
import { primitiveSignals } from './tamper.ts'
import weights from './weights.json' with { type: 'json' }

const judgedByHand = [
  ...automationSignals,
  ...headlessSignals,
  ...tamperSignals,
  ...primitiveSignals,
  ...consistencySignals,
  ...answerSignals,
  ...protocolSignals,
  ...headerSignals,
  ...networkSignals,
  ...machineSignals,
  ...behaviorSignals,
  ...nativeSignals,
  ...repeatSignals,
  ...trustSignals,
]

/** The name of a signal in events and answers. */
export type Slug = (typeof judgedByHand)[number]['slug']

export interface Signal extends Definition {
  slug: Slug
}

const points: Partial<Record<Slug, number>> = weights

/** Every signal, which docs/reference/signals.md lists, with the points that were fitted (bench/detection/fit.ts). */
export const signalCatalogue: (Signal & { prior: number })[] = judgedByHand.map((signal) => ({
  ...signal,
  prior: signal.score,
  score: points[signal.slug] ?? signal.score,
}))
