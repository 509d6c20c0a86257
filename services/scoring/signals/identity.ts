import { namedAgent } from '../../../infra/agents/catalogue.ts'
import { type Facts, userAgentsOf } from '../session/facts.ts'
import { signals } from './signal.ts'

/** Signals of programs that name themselves, and of the checks of that name. */
export const agentSignals = signals({
  verified_agent: {
    name: 'Agent whose identity was proven',
    looksAt:
      'who a session says that it is was confirmed by a signature, its host name or ranges that the operator publishes',
    falsePositives: 'none',
    fires: ({ identity }) => identity.status === 'verified',
  },
  spoofed_agent: {
    name: 'Agent that is not who it says',
    looksAt: 'the address is none of the operator whose crawler or agent the user agent names',
    falsePositives: 'none; new addresses of a crawler, where lists are old',
    fires: ({ identity }) => identity.status === 'spoofed',
  },
  declared_bot_user_agent: {
    name: 'Declared crawler',
    looksAt: 'the name of a known crawler or AI agent in a user agent string',
    falsePositives: 'none; whoever claims the name is automation, too',
    fires: (facts) => userAgentsOf(facts).some((userAgent) => namedAgent(userAgent) !== null),
  },
  signature_agent_header: {
    name: 'Agent by its header',
    looksAt: 'the request has a Signature-Agent header, whether or not a signature proves it',
    falsePositives: 'none; browsers of people have no such header',
    fires: ({ document }) => document !== null && document.signature_agent !== null,
  },
})

const isInvalid = ({ attestation }: Facts) => attestation?.status === 'invalid'
const invalidBy = (reason: string) => (facts: Facts) =>
  isInvalid(facts) && facts.attestation?.reason === reason

const reasonOf = ({ attestation }: Facts) => attestation?.reason?.replaceAll('_', ' ') ?? null

const isCloned = invalidBy('counter')
const isDistrusted = invalidBy('device')

/** Signals of Apple's and Google's attestations of an app. One of them fires unless they vouch for it. */
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
