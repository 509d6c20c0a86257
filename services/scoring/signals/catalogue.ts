import { answerSignals } from './answers.ts'
import { automationSignals, tamperSignals } from './automation.ts'
import { behaviorSignals, trustSignals } from './behavior.ts'
import { nativeSignals, networkSignals, protocolSignals } from './connection.ts'
import { consistencySignals, headerSignals } from './consistency.ts'
import { deviceSignals } from './devices.ts'
import { headlessSignals, machineSignals } from './headless.ts'
import { agentSignals, attestationSignals } from './identity.ts'
import { repeatSignals } from './repeats.ts'
import type { Definition } from './signal.ts'
import { primitiveSignals } from './tamper.ts'

const all = [
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

/** The name of a signal in events and answers. */
export type Slug = (typeof all)[number]['slug']

export interface Signal extends Definition {
  slug: Slug
}

/** Every signal, which docs/reference/signals.md lists, in the order of decisions. */
export const signalCatalogue: readonly Signal[] = all
