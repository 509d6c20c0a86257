import type { Facts } from '../facts.ts'
import { automationSignals } from './automation.ts'
import { behaviorSignals } from './behavior.ts'
import { consistencySignals } from './consistency.ts'
import { headerSignals } from './headers.ts'
import { headlessSignals } from './headless.ts'
import { machineSignals } from './machine.ts'
import { nativeSignals } from './native.ts'
import { networkSignals } from './network.ts'
import { protocolSignals } from './protocol.ts'
import type { Signal } from './signal.ts'
import { tamperSignals } from './tamper.ts'
import { trustSignals } from './trust.ts'

/** Every signal, in the order of docs/scoring.md. */
export const catalogue: Signal[] = [
  ...automationSignals,
  ...headlessSignals,
  ...tamperSignals,
  ...consistencySignals,
  ...protocolSignals,
  ...headerSignals,
  ...networkSignals,
  ...machineSignals,
  ...behaviorSignals,
  ...nativeSignals,
  ...trustSignals,
]

/** The signals that fire on what is known, in catalogue order. */
export function fire(facts: Facts): Signal[] {
  return catalogue.filter((signal) => signal.fires(facts))
}
