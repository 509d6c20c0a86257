import { answerSignals } from './answers.ts'
import { automationSignals, tamperSignals } from './automation.ts'
import { behaviorSignals, trustSignals } from './behavior.ts'
import { nativeSignals, networkSignals, protocolSignals } from './connection.ts'
import { consistencySignals, headerSignals } from './consistency.ts'
import { deviceSignals } from './devices.ts'
import { headlessSignals, machineSignals } from './headless.ts'
import { agentSignals, attestationSignals } from './identity.ts'
import { repeatSignals } from './repeats.ts'
import type { SignalDefinition } from './signal.ts'
import { primitiveSignals } from './tamper.ts'

const signals = [
  ...agentSignals,
  ...automationSignals,
  ...headlessSignals,
  ...tamperSignals,
  ...primitiveSignals,
  ...consistencySignals,
  ...deviceSignals,
  ...answerSignals,
  ...protocolSignals,
  ...headerSignals,
  ...networkSignals,
  ...machineSignals,
  ...behaviorSignals,
  ...nativeSignals,
  ...attestationSignals,
  ...repeatSignals,
  ...trustSignals,
]

/** Name of a signal in events and API responses. */
export type Slug = (typeof signals)[number]['slug']

export interface Signal extends SignalDefinition {
  slug: Slug
}

/** All signals (docs/reference/signals.md), in the order in which decisions list them. */
export const signalCatalogue: readonly Signal[] = signals

/** Display names by signal. */
export const signalDisplayNames: Record<string, string> = Object.fromEntries(
  signalCatalogue.map(({ slug, name }) => [slug, name]),
)
