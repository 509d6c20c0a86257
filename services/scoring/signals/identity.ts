import { agentOfUserAgent } from '../../../infra/agents/catalogue.ts'
import { type Facts, userAgentsOf } from '../session/facts.ts'
import { defineSignals } from './signal.ts'

/** Signals about programs that declare themselves, and whether the claim was verified. */
export const agentSignals = defineSignals({
  verified_agent: {
    name: 'Verified agent',
    looksAt:
      "the claimed agent was verified by a signature, its host name or the operator's published ranges",
    falsePositives: 'none',
    fires: ({ identity }) => identity.status === 'verified',
  },
  spoofed_agent: {
    name: 'Spoofed agent',
    looksAt:
      'the user agent names a crawler or agent, but the address does not belong to its operator',
    falsePositives: "none; a crawler's new addresses, if the lists are old",
    fires: ({ identity }) => identity.status === 'spoofed',
  },
  declared_bot_user_agent: {
    name: 'Declared crawler',
    looksAt: 'a user agent string has the name of a known crawler or AI agent',
    falsePositives: 'none; anything that claims the name is automation',
    fires: (facts) => userAgentsOf(facts).some((userAgent) => agentOfUserAgent(userAgent) !== null),
  },
  signature_agent_header: {
    name: 'Signature-Agent header',
    looksAt: 'the request has a Signature-Agent header, with or without a valid signature',
    falsePositives: 'none; ordinary browsers do not send this header',
    fires: ({ document }) => document !== null && document.signature_agent !== null,
  },
})

const isInvalid = ({ attestation }: Facts) => attestation?.status === 'invalid'
const invalidBy = (reason: string) => (facts: Facts) =>
  isInvalid(facts) && facts.attestation?.reason === reason

const reasonOf = ({ attestation }: Facts) => attestation?.reason?.replaceAll('_', ' ') ?? null

const isCloned = invalidBy('counter')
const isDistrusted = invalidBy('device')

/** Signals about app attestations by Apple and Google. One of them fires unless the attestation is valid. */
export const attestationSignals = defineSignals({
  app_unattested: {
    name: 'App not attested',
    looksAt: 'neither Apple nor Google attests the app, so a script may have invented the session',
    falsePositives: 'every app without attestation',
    details: reasonOf,
    fires: (facts) =>
      facts.platform !== 'web' && facts.attestation?.status !== 'valid' && !isInvalid(facts),
  },
  attestation_invalid: {
    name: 'Invalid attestation',
    looksAt:
      'the attestation is for another document or app, is from a development build used with a live key, or has no valid signature',
    falsePositives: 'with Play Integrity, a device clock that is wrong by minutes',
    details: reasonOf,
    fires: (facts) => isInvalid(facts) && !isCloned(facts) && !isDistrusted(facts),
  },
  attestation_counter: {
    name: 'Attested key used on two devices',
    looksAt: 'the counter of an attested key did not increase since the last assertion',
    falsePositives: 'an app that sends an assertion only after its next launch',
    fires: isCloned,
  },
  device_not_trusted: {
    name: 'Device fails Google Play integrity',
    looksAt: 'a genuine Google Play verdict says that the device meets no integrity level',
    falsePositives: 'rooted phones, custom ROMs',
    fires: isDistrusted,
  },
})
