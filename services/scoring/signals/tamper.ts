import type { Snapshot } from '../../../schemas/observations.ts'
import { inBrowser, signals } from './signal.ts'

// Primitives of the page that libraries and page code never replace.
const inPage = /^(JSON\.stringify|Reflect\.\w+|Crypto\.\w+|TextEncoder\.\w+)$/
// Primitives of a frame that only a script in every frame can have replaced, and that content blockers do not replace.
const inFrame =
  /^frame\.(JSON\.stringify|(Function|Object|Reflect|Array|String|Crypto|TextEncoder|console)\.\w+)$/
const webdriver = /^(frame\.)?navigator\.webdriver$/
const identity = /^((frame|worker)\.)?navigator\.(?!webdriver$)/
const agentNames = /^(navigator\.)?(userAgent|appVersion|platform)$/

// Other signals look at these between page, frame and worker; screens differ with resistance to fingerprinting.
const comparedElsewhere =
  /^frame\.(webdriver|userAgent|appVersion|platform|languages?|screen\.\w+)$/

const foreign = (matches: (name: string) => boolean) => (s: Snapshot) =>
  s.tamper.foreign_primitives.some(matches)

const isCore = (name: string) => inPage.test(name) || inFrame.test(name)
// One function may be that of an error tracker or a content blocker, in the page and in every frame.
const coreFunctions = (s: Snapshot) =>
  new Set(s.tamper.foreign_primitives.filter(isCore).map((name) => name.replace(/^frame\./, '')))
    .size
const isOfNavigator = (name: string) => webdriver.test(name) || identity.test(name)

/** Whether the getter of `navigator.webdriver` is not the browser's own, in the page or in every frame. */
export const rewritesWebdriver = foreign((name) => webdriver.test(name))

/** Returns true where a script of the page replaced what names the browser, as user agent switchers do. */
export const replacesUserAgent = ({ tamper: t }: Snapshot): boolean =>
  [...t.navigator_own_properties, ...t.foreign_primitives].some((name) => agentNames.test(name))

const rewritesIdentity = foreign((name) => identity.test(name))

/** Signals of the comparison between the page's primitives and those of a fresh realm. */
export const primitiveSignals = signals({
  rewritten_primitives: {
    name: 'Rewritten primitives of the language',
    looksAt:
      'two or more of `JSON.stringify`, `Reflect`, random numbers and text encoding are not native. In a fresh frame, which only an injected script reaches, `Function`, `Object`, `Array`, `String` and `console` count as well',
    falsePositives: 'extensions that hide their changes in every frame',
    fires: inBrowser((s, { privacyTool }) => !privacyTool && coreFunctions(s) > 1),
  },
  rewritten_navigator: {
    name: 'Rewritten getters of navigator',
    looksAt:
      'getters of `Navigator.prototype` other than `webdriver` are not native, in the page, a fresh frame or a worker',
    falsePositives: 'user agent switchers, privacy extensions',
    fires: inBrowser((s, { privacyTool }) => !privacyTool && rewritesIdentity(s)),
  },
  realm_differences: {
    name: 'A fresh frame says something else',
    looksAt:
      'vendor, build, processors, memory, touch points, plugins or time zone in a fresh frame against the page',
    falsePositives: 'extensions that skip frames',
    fires: inBrowser(
      (s, { privacyTool }) =>
        !privacyTool &&
        s.tamper.realm_differences.some(
          (name) => /^frame\./.test(name) && !comparedElsewhere.test(name),
        ),
    ),
  },
  wrapped_page_functions: {
    name: 'Functions that the page wraps',
    looksAt:
      'other primitives that are not native, such as `fetch`, timers and listeners, or one alone of `rewritten_primitives`',
    falsePositives: 'no risk: error trackers, frameworks, polyfills and content blockers do it',
    fires: inBrowser(
      (s) => coreFunctions(s) === 1 || foreign((name) => !isCore(name) && !isOfNavigator(name))(s),
    ),
  },
})
