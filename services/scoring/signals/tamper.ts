import type { Snapshot } from '../../../schemas/observations.ts'
import { browser, type Signal } from './signal.ts'

const base = { family: 'tamper', role: 'risk', category: 'integrity' } as const

const noisy = ({ canvas, audio }: Snapshot) => canvas.noise_detected === true || audio.noise_detected === true

/** APIs that hide automation when patched; privacy extensions patch canvas, audio, sizes and the user agent. */
const stealthTargets = /permissions|plugins|mimeTypes|contentWindow/i

const patchesStealth = ({ tamper }: Snapshot) =>
  tamper.patched_functions.some((name) => stealthTargets.test(name))

/** Built-in functions and values that something replaced. */
export const tamperSignals: Signal[] = [
  {
    ...base,
    slug: 'webdriver_property_overridden',
    name: 'WebDriver flag overridden',
    strength: 'definitive',
    score: 92,
    looksAt: '`webdriver` is an own property of `navigator`, or its getter was replaced',
    falsePositives: 'none known; nothing but hiding automation needs it',
    fires: browser(
      ({ automation, tamper }) =>
        automation.webdriver_own_property === true ||
        tamper.navigator_own_properties.includes('webdriver') ||
        tamper.patched_functions.includes('navigator.webdriver'),
    ),
  },
  {
    ...base,
    slug: 'navigator_overridden',
    name: 'Navigator values overridden',
    strength: 'moderate',
    score: 32,
    looksAt: 'own properties on `navigator` that shadow built-in ones',
    falsePositives: 'privacy extensions (not counted for known privacy browsers), user agent switchers',
    fires: browser(
      (s, { privacyTool }) =>
        !privacyTool && s.tamper.navigator_own_properties.some((name) => name !== 'webdriver'),
    ),
  },
  {
    ...base,
    slug: 'patched_stealth_functions',
    name: 'Functions patched as stealth plugins do',
    strength: 'strong',
    score: 45,
    looksAt:
      'replaced native `permissions`, `Permissions.query`, `plugins`, `mimeTypes` or `contentWindow` of frames',
    falsePositives: 'privacy extensions (not counted for known privacy browsers)',
    fires: browser((s, { privacyTool }) => !privacyTool && patchesStealth(s)),
  },
  {
    ...base,
    slug: 'patched_functions',
    name: 'Patched native functions',
    strength: 'weak',
    score: 10,
    looksAt: 'other built-in functions whose source text is not native',
    falsePositives: 'privacy extensions, polyfills, Brave (not counted)',
    fires: browser(
      (s, { privacyTool }) => !privacyTool && s.tamper.patched_functions.length > 0 && !patchesStealth(s),
    ),
  },
  {
    ...base,
    slug: 'stealth_iframe_proxy',
    name: 'Iframe proxy of a stealth plugin',
    strength: 'strong',
    score: 65,
    looksAt: 'an iframe with `srcdoc` has a content window before it is attached',
    falsePositives: 'none known',
    fires: browser((s) => s.tamper.iframe_srcdoc_proxy === true),
  },
  {
    ...base,
    slug: 'faked_chrome_runtime',
    name: 'Imitated Chrome runtime',
    strength: 'strong',
    score: 60,
    looksAt: 'functions of `chrome.runtime` that can be constructed or have a prototype',
    falsePositives: 'none known',
    fires: browser((s) => s.tamper.chrome_runtime_faked === true),
  },
  {
    ...base,
    slug: 'imitated_plugins',
    name: 'Imitated plugins',
    strength: 'strong',
    score: 55,
    looksAt: '`navigator.plugins` is not a real PluginArray or its members do not refer to each other',
    falsePositives: 'none known',
    fires: browser((s) => s.navigator.plugins_genuine === false),
  },
  {
    ...base,
    slug: 'webgl_parameters_spoofed',
    name: 'Spoofed graphics parameters',
    strength: 'moderate',
    score: 28,
    looksAt: 'parameters that WebGL and WebGL 2 must share differ',
    falsePositives: 'privacy extensions (not counted for known privacy browsers)',
    fires: browser((s, { privacyTool }) => !privacyTool && s.tamper.webgl_parameter_mismatch === true),
  },
  {
    ...base,
    slug: 'fingerprint_noise',
    name: 'Noise in canvas or audio',
    strength: 'weak',
    score: 10,
    looksAt: 'read-back of canvas or audio differs from what was drawn, in no known privacy browser',
    falsePositives: 'privacy extensions',
    fires: browser((s, { privacyTool }) => !privacyTool && noisy(s)),
  },
  {
    ...base,
    slug: 'privacy_hardening_indicators',
    name: 'Privacy hardening indicators',
    role: 'context',
    strength: 'moderate',
    score: 0,
    looksAt: 'Brave, resistance to fingerprinting, a clock in steps of 5 ms or more in Firefox, noise',
    falsePositives: 'not evidence of risk; it lowers the weight of tamper signals',
    fires: browser((s, { privacyTool }) => privacyTool || noisy(s)),
  },
]
