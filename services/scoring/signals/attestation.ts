import type { Facts } from '../session/facts.ts'
import { signals } from './signal.ts'

const isInvalid = ({ attestation }: Facts) => attestation?.status === 'invalid'
const invalidBy = (reason: string) => (facts: Facts) =>
  isInvalid(facts) && facts.attestation?.reason === reason

const reasonOf = ({ attestation }: Facts) => attestation?.reason?.replaceAll('_', ' ') ?? null

const isCloned = invalidBy('counter')
const isDistrusted = invalidBy('device')

/** What Apple or Google say of an app. One of them fires unless they vouch for it. */
export const attestationSignals = signals({
  app_unattested: {
    name: 'App that nothing attests',
    looksAt:
      'nothing of Apple or Google attests the app, so that a script may have made all of it up',
    falsePositives: 'every app that sends no attestation',
    details: reasonOf,
    fires: (facts) =>
      facts.platform !== 'web' && facts.attestation?.status !== 'valid' && !isInvalid(facts),
  },
  attestation_invalid: {
    name: 'Attestation that is not valid',
    looksAt:
      'the app sends an attestation of another document, another app, a development build with a live key, or one that nobody signed',
    falsePositives: 'a clock of the device that is wrong by minutes, with Play Integrity',
    details: reasonOf,
    fires: (facts) => isInvalid(facts) && !isCloned(facts) && !isDistrusted(facts),
  },
  attestation_counter: {
    name: 'Attested key that two devices have',
    looksAt: "the counter of an attested key has not grown since the key's last assertion",
    falsePositives: 'an app that holds an assertion back until after its next launch',
    fires: isCloned,
  },
  device_not_trusted: {
    name: 'Device that Google does not vouch for',
    looksAt: 'a verdict of Google Play that is genuine, and in which the device meets no integrity',
    falsePositives: 'rooted phones, systems that their owners installed',
    fires: isDistrusted,
  },
})
