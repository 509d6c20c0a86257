import type { Snapshot } from '../../../schemas/observations.ts'
import { type Signal, snapshot } from './signal.ts'

const base = { family: 'native', role: 'risk', category: 'integrity' } as const

type Native = NonNullable<Snapshot['native']>
const app = (test: (native: Native) => boolean) => snapshot((s) => s.native !== null && test(s.native))

/** What the iOS and Android SDKs report about the device and the app. */
export const nativeSignals: Signal[] = [
  {
    ...base,
    slug: 'native_hooks',
    name: 'Hooked app',
    strength: 'strong',
    score: 58,
    looksAt: 'instrumentation such as Frida or Xposed inside the app',
    falsePositives: 'security testing',
    fires: app((n) => n.hooks === true),
  },
  {
    ...base,
    slug: 'native_emulator',
    name: 'Simulator or emulator',
    category: 'environment',
    strength: 'strong',
    score: 45,
    looksAt: 'the app runs in a simulator or emulator',
    falsePositives: 'developers, Android on Chromebooks',
    fires: app((n) => n.simulator_or_emulator === true),
  },
  {
    ...base,
    slug: 'native_code_signing_invalid',
    name: 'Changed app',
    strength: 'strong',
    score: 50,
    looksAt: 'the signature of the app is not valid',
    falsePositives: 'development builds',
    fires: app((n) => n.code_signing_invalid === true),
  },
  {
    ...base,
    slug: 'native_jailbreak_or_root',
    name: 'Jailbroken or rooted device',
    strength: 'moderate',
    score: 25,
    looksAt: 'signs of a jailbreak or of root',
    falsePositives: 'enthusiasts',
    fires: app((n) => n.jailbreak_or_root === true),
  },
  {
    ...base,
    slug: 'native_debugger',
    name: 'Debugger attached to the app',
    strength: 'moderate',
    score: 25,
    looksAt: 'a debugger is attached',
    falsePositives: 'developers',
    fires: app((n) => n.debugger === true),
  },
]
