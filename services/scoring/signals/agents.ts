import { namedAgent } from '../../../infra/agents/catalogue.ts'
import { userAgentsOf } from '../session/facts.ts'
import { signals } from './signal.ts'

/** What sessions say of themselves that are programs, and what checks of that said. */
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
