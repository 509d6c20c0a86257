import type { Snapshot } from '../../../schemas/observations.ts'
import { defineSignals, ifBrowser } from './signal.ts'

// Primitives of the page that libraries and page code never replace.
const inPage = /^(JSON\.stringify|Reflect\.\w+|Crypto\.\w+|TextEncoder\.\w+)$/
// Primitives of a frame that content blockers leave alone, so only an injected script replaces them.
const inFrame =
  /^frame\.(JSON\.stringify|(Function|Object|Reflect|Array|String|Crypto|TextEncoder|console)\.\w+)$/
const webdriver = /^(frame\.)?navigator\.webdriver$/
const identity = /^((frame|worker)\.)?navigator\.(?!webdriver$)/
const agentNames = /^(navigator\.)?(userAgent|appVersion|platform)$/

// Excluded here, because other signals compare them, and screens differ under Firefox's fingerprinting resistance.
const comparedElsewhere =
  /^frame\.(webdriver|userAgent|appVersion|platform|languages?|screen\.\w+)$/

const hasForeign = (matches: (name: string) => boolean) => (s: Snapshot) =>
  s.tamper.foreign_primitives.some(matches)

const isCore = (name: string) => inPage.test(name) || inFrame.test(name)
// Counts a function once for page and frames. Error trackers and content blockers may replace a single one.
const coreFunctionCount = (s: Snapshot) =>
  new Set(s.tamper.foreign_primitives.filter(isCore).map((name) => name.replace(/^frame\./, '')))
    .size
const isNavigator = (name: string) => webdriver.test(name) || identity.test(name)

/** Returns true if the getter of `navigator.webdriver` isn't native, in the page or in a frame. */
export const rewritesWebdriver = hasForeign((name) => webdriver.test(name))

/** Returns true if a script replaced the values that name the browser, as user agent switchers do. */
export const replacesUserAgent = ({ tamper: t }: Snapshot): boolean =>
  [...t.navigator_own_properties, ...t.foreign_primitives].some((name) => agentNames.test(name))

const rewritesIdentity = hasForeign((name) => identity.test(name))

/** Signals that compare the page's primitives with those of a fresh realm. */
export const primitiveSignals = defineSignals({
  rewritten_primitives: {
    name: 'Rewritten built-in functions',
    looksAt:
      'two or more functions of `JSON.stringify`, `Reflect`, `Crypto` and `TextEncoder` are not native. In a fresh frame, which only injected scripts reach, `Function`, `Object`, `Array`, `String` and `console` count too',
    falsePositives: 'extensions that hide their changes in every frame',
    fires: ifBrowser((s, { privacyTool }) => !privacyTool && coreFunctionCount(s) > 1),
  },
  rewritten_navigator: {
    name: 'Rewritten navigator getters',
    looksAt:
      'getters of `Navigator.prototype` other than `webdriver` are not native in the page, a fresh frame or a worker',
    falsePositives: 'user agent switchers, privacy extensions',
    fires: ifBrowser((s, { privacyTool }) => !privacyTool && rewritesIdentity(s)),
  },
  realm_differences: {
    name: 'Fresh frame contradicts the page',
    looksAt:
      'vendor, build, processors, memory, touch points, plugins or time zone in a fresh frame differ from the page',
    falsePositives: 'extensions that skip frames',
    fires: ifBrowser(
      (s, { privacyTool }) =>
        !privacyTool &&
        s.tamper.realm_differences.some(
          (name) => /^frame\./.test(name) && !comparedElsewhere.test(name),
        ),
    ),
  },
  wrapped_page_functions: {
    name: 'Functions wrapped by the page',
    looksAt:
      'other built-in functions are not native, such as `fetch`, timers and listeners, or only one of those in `rewritten_primitives`',
    falsePositives: 'no risk: error trackers, frameworks, polyfills and content blockers do it',
    fires: ifBrowser(
      (s) =>
        coreFunctionCount(s) === 1 || hasForeign((name) => !isCore(name) && !isNavigator(name))(s),
    ),
  },
})
