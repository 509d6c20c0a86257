import type { Snapshot } from '../../../schemas/observations.ts'
import { hasNaturalPointerOrTyping, hasSyntheticClicks } from './behavior.ts'
import { defineSignals, ifBrowser, ifSnapshot } from './signal.ts'
import { rewritesWebdriver } from './tamper.ts'

const selenium =
  /^(__selenium|__webdriver|__fxdriver|__driver_|_selenium|_Selenium|calledSelenium|callSelenium|\$chrome_asyncScriptInfo|__\$webdriverAsyncExecutor|webdriver$|_WEBDRIVER_ELEM_CACHE|__lastWatir)/
// ChromeDriver's prefix, or a random one of the same form that patched builds use.
const chromedriver =
  /^\$?cdc_[A-Za-z0-9]{22}_|^[a-z]{3}_[A-Za-z0-9]{22}_(Array|Promise|Symbol|Object|Proxy|JSON|Window)$/
const playwright = /^__(pw|playwright)/
const puppeteer = /^__puppeteer|^puppeteer_|^__pptr|^exposeFunctionLeak$|^dummyFn$|^sourceUrlLeak$/
const phantom = /^(callPhantom|_phantom|__phantomas)$/
const otherDrivers =
  /^(__nightmare|domAutomation|domAutomationController|awesomium|CefSharp|RunPerfTest|fmget_targets|wdioElectron|__cypress|Cypress)$/
const ambiguous = /^(spawn|emit|geb)$/

const globals = (pattern: RegExp) =>
  ifSnapshot((s) => s.automation.globals.some((name) => pattern.test(name)))

const seleniumGlobals = globals(selenium)
const chromedriverMarkers = globals(chromedriver)
const playwrightGlobals = globals(playwright)
const puppeteerGlobals = globals(puppeteer)

export const automationSignals = defineSignals({
  webdriver_detected: {
    name: 'WebDriver detected',
    looksAt: '`navigator.webdriver` is true in the page, an iframe or a worker',
    falsePositives: 'people who drive their own browser with WebDriver',
    fires: ifSnapshot(
      ({ automation: a }) =>
        a.webdriver === true || a.webdriver_iframe === true || a.webdriver_worker === true,
    ),
  },
  selenium_globals: {
    name: 'Selenium globals',
    looksAt: 'globals defined by Selenium and its recorders',
    falsePositives: 'none',
    fires: seleniumGlobals,
  },
  chromedriver_markers: {
    name: 'ChromeDriver markers',
    looksAt:
      'properties in the format that ChromeDriver adds: `cdc_` or three letters, 22 random characters, a type',
    falsePositives: 'none',
    fires: chromedriverMarkers,
  },
  playwright_globals: {
    name: 'Playwright globals',
    looksAt: 'globals that Playwright injects (`__pwInitScripts`, `__playwright__binding__`)',
    falsePositives: 'none',
    fires: playwrightGlobals,
  },
  puppeteer_globals: {
    name: 'Puppeteer globals',
    looksAt: 'evaluation and binding names that Puppeteer leaves in the page',
    falsePositives: 'none',
    fires: puppeteerGlobals,
  },
  phantom_globals: {
    name: 'PhantomJS globals',
    looksAt: 'globals `callPhantom`, `_phantom` or `__phantomas`, by exact name',
    falsePositives: 'none; `phantom` of the Phantom wallet does not count',
    fires: globals(phantom),
  },
  driver_globals: {
    name: 'Driver globals',
    looksAt: 'globals of Nightmare, old headless Chrome, CEF automation, Cypress and others',
    falsePositives: 'sites that run their own end-to-end tests',
    fires: globals(otherDrivers),
  },
  driver_document_attributes: {
    name: 'Driver attributes on the root element',
    looksAt: '`selenium`, `webdriver` or `driver` attributes on the root element',
    falsePositives: 'none',
    fires: ifSnapshot((s) =>
      s.automation.document_attributes.some((name) => /^(selenium|webdriver|driver)$/.test(name)),
    ),
  },
  sequentum_external: {
    name: 'Sequentum host object',
    looksAt: '`window.external` names Sequentum',
    falsePositives: 'none',
    fires: ifSnapshot((s) => s.automation.sequentum === true),
  },
  ambiguous_driver_globals: {
    name: 'Globals that some drivers define',
    looksAt: 'globals `spawn`, `emit` or `geb`',
    falsePositives: 'page code that uses the same names',
    fires: globals(ambiguous),
  },
  electron_runtime: {
    name: 'Electron runtime',
    looksAt: 'Electron process objects in the page',
    falsePositives: 'ordinary desktop apps built on Electron',
    fires: ifSnapshot((s) => s.automation.electron === true),
  },
  developer_tools_detected: {
    name: 'Developer tools or remote debugging',
    looksAt:
      'a logged error is serialized in page, frame or worker, as by the Runtime domain of DevTools',
    falsePositives: 'people with developer tools open; some extensions',
    fires: ifSnapshot((s) => s.automation.cdp_runtime === true),
  },
  debugged_before_input: {
    name: 'Remote debugging before any input',
    looksAt: 'remote debugging is on, and there was no natural movement or typing yet',
    falsePositives: 'people with developer tools open, before any input',
    fires: ifBrowser(
      (s, facts) => s.automation.cdp_runtime === true && !hasNaturalPointerOrTyping(facts),
    ),
  },
  cdp_driven_input: {
    name: 'Input sent through remote debugging',
    looksAt:
      'remote debugging is on, and every click hits an exact center or has protocol coordinates',
    falsePositives: 'none; developer tools do not aim clicks',
    fires: ifSnapshot(
      (s, { behavior }) =>
        s.automation.cdp_runtime === true && behavior !== null && hasSyntheticClicks(behavior),
    ),
  },
})

const hasNoise = ({ canvas, audio }: Snapshot) =>
  canvas.noise_detected === true || audio.noise_detected === true

// APIs that are patched to hide automation. Privacy extensions patch canvas, audio, sizes and the user agent instead.
const stealthTargets = /permissions|plugins|mimeTypes|contentWindow/i

const patchesStealth = ({ tamper }: Snapshot) =>
  tamper.patched_functions.some((name) => stealthTargets.test(name))

export const tamperSignals = defineSignals({
  webdriver_property_overridden: {
    name: 'WebDriver flag overridden',
    looksAt: '`webdriver` is an own property of `navigator`, or its getter was replaced or removed',
    falsePositives: 'none; only hiding automation needs this',
    fires: ifBrowser(
      (s) =>
        s.automation.webdriver_own_property === true ||
        s.tamper.navigator_own_properties.includes('webdriver') ||
        s.tamper.patched_functions.includes('navigator.webdriver') ||
        rewritesWebdriver(s),
    ),
  },
  navigator_overridden: {
    name: 'Navigator values overridden',
    looksAt: 'own properties on `navigator` that shadow built-in ones',
    falsePositives: 'privacy extensions, user agent switchers',
    fires: ifBrowser(
      (s, { privacyTool }) =>
        !privacyTool && s.tamper.navigator_own_properties.some((name) => name !== 'webdriver'),
    ),
  },
  patched_stealth_functions: {
    name: 'Functions patched like a stealth plugin',
    looksAt:
      'native `permissions`, `Permissions.query`, `plugins`, `mimeTypes` or `contentWindow` was replaced',
    falsePositives: 'privacy extensions',
    fires: ifBrowser((s, { privacyTool }) => !privacyTool && patchesStealth(s)),
  },
  patched_functions: {
    name: 'Patched native functions',
    looksAt: 'the source text of other built-in functions is not native',
    falsePositives: 'privacy extensions, polyfills',
    fires: ifBrowser(
      (s, { privacyTool }) =>
        !privacyTool && s.tamper.patched_functions.length > 0 && !patchesStealth(s),
    ),
  },
  stealth_iframe_proxy: {
    name: 'Iframe proxy of a stealth plugin',
    looksAt: 'an iframe with `srcdoc` has a content window before it is attached',
    falsePositives: 'none',
    fires: ifBrowser((s) => s.tamper.iframe_srcdoc_proxy === true),
  },
  faked_chrome_runtime: {
    name: 'Faked Chrome runtime',
    looksAt: 'functions of `chrome.runtime` can be constructed or have a prototype',
    falsePositives: 'none',
    fires: ifBrowser((s) => s.tamper.chrome_runtime_faked === true),
  },
  imitated_plugins: {
    name: 'Faked plugins',
    looksAt:
      '`navigator.plugins` is not a real PluginArray, or its members do not refer to each other',
    falsePositives: 'none',
    fires: ifBrowser((s) => s.navigator.plugins_genuine === false),
  },
  native_claims_in_browser: {
    name: 'App observations from a page',
    looksAt: 'a page sends `native` observations, which only an app can make',
    falsePositives: 'none',
    fires: ({ claimsNative }) => claimsNative,
  },
  webgl_parameters_spoofed: {
    name: 'Spoofed graphics parameters',
    looksAt: 'parameters that WebGL and WebGL 2 must share are different',
    falsePositives: 'privacy extensions',
    fires: ifBrowser(
      (s, { privacyTool }) => !privacyTool && s.tamper.webgl_parameter_mismatch === true,
    ),
  },
  fingerprint_noise: {
    name: 'Noise in canvas or audio',
    looksAt:
      'canvas or audio data read back differs from what was drawn, outside known privacy browsers',
    falsePositives: 'privacy extensions',
    fires: ifBrowser((s, { privacyTool }) => !privacyTool && hasNoise(s)),
  },
  privacy_hardening_indicators: {
    name: 'Privacy hardening indicators',
    looksAt:
      'Brave, fingerprinting resistance, a clock with steps of 5 ms or more in Firefox, or noise in canvas or audio',
    falsePositives: 'no risk: tamper signals count less',
    fires: ifBrowser((s, { privacyTool }) => privacyTool || hasNoise(s)),
  },
})
