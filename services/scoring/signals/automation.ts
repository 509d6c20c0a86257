import type { Snapshot } from '../../../schemas/observations.ts'
import { actsNaturally, hasSyntheticClicks } from './behavior.ts'
import { inBrowser, signals, snapshot } from './signal.ts'
import { rewritesWebdriver } from './tamper.ts'

const selenium =
  /^(__selenium|__webdriver|__fxdriver|__driver_|_selenium|_Selenium|calledSelenium|callSelenium|\$chrome_asyncScriptInfo|__\$webdriverAsyncExecutor|webdriver$|_WEBDRIVER_ELEM_CACHE|__lastWatir)/
// ChromeDriver's own name, or the random one of the same form that some builds replace it with.
const chromedriver =
  /^\$?cdc_[A-Za-z0-9]{22}_|^[a-z]{3}_[A-Za-z0-9]{22}_(Array|Promise|Symbol|Object|Proxy|JSON|Window)$/
const playwright = /^__(pw|playwright)/
const puppeteer = /^__puppeteer|^puppeteer_|^__pptr|^exposeFunctionLeak$|^dummyFn$|^sourceUrlLeak$/
const phantom = /^(callPhantom|_phantom|__phantomas)$/
const others =
  /^(__nightmare|domAutomation|domAutomationController|awesomium|CefSharp|RunPerfTest|fmget_targets|wdioElectron|__cypress|Cypress)$/
const ambiguous = /^(spawn|emit|geb)$/

const globals = (pattern: RegExp) =>
  snapshot((s) => s.automation.globals.some((name) => pattern.test(name)))

const seleniumGlobals = globals(selenium)
const chromedriverMarkers = globals(chromedriver)
const playwrightGlobals = globals(playwright)
const puppeteerGlobals = globals(puppeteer)

export const automationSignals = signals({
  webdriver_detected: {
    name: 'WebDriver detected',
    looksAt: '`navigator.webdriver` is true in the page or an iframe',
    falsePositives: 'people who drive their own browser with WebDriver',
    fires: snapshot(
      ({ automation: a }) =>
        a.webdriver === true || a.webdriver_iframe === true || a.webdriver_worker === true,
    ),
  },
  selenium_globals: {
    name: 'Selenium globals',
    looksAt: 'globals that Selenium and its recorders define',
    falsePositives: 'none',
    fires: seleniumGlobals,
  },
  chromedriver_markers: {
    name: 'ChromeDriver markers',
    looksAt:
      'properties that ChromeDriver adds, by their form: `cdc_` or three letters, 22 random characters, a type',
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
    looksAt: '`callPhantom`, `_phantom`, `__phantomas`, by exact name',
    falsePositives: 'none; `phantom` of the Phantom wallet does not count',
    fires: globals(phantom),
  },
  driver_globals: {
    name: 'Driver globals',
    looksAt: 'globals of Nightmare, old headless Chrome, CEF automation, Cypress and others',
    falsePositives: 'sites that run their own end-to-end tests',
    fires: globals(others),
  },
  driver_document_attributes: {
    name: 'Driver attributes on the document',
    looksAt: '`selenium`, `webdriver` or `driver` attributes on the root element',
    falsePositives: 'none',
    fires: snapshot((s) =>
      s.automation.document_attributes.some((name) => /^(selenium|webdriver|driver)$/.test(name)),
    ),
  },
  sequentum_external: {
    name: 'Sequentum host object',
    looksAt: '`window.external` names Sequentum',
    falsePositives: 'none',
    fires: snapshot((s) => s.automation.sequentum === true),
  },
  ambiguous_driver_globals: {
    name: 'Names that some drivers define',
    looksAt: '`spawn`, `emit`, `geb` on the window',
    falsePositives: 'page code that uses the same names',
    fires: globals(ambiguous),
  },
  electron_runtime: {
    name: 'Electron runtime',
    looksAt: 'Electron process objects in the page',
    falsePositives: 'ordinary desktop apps built on Electron',
    fires: snapshot((s) => s.automation.electron === true),
  },
  developer_tools_detected: {
    name: 'Developer tools or remote debugging',
    looksAt:
      'a logged error is serialised in page, frame or worker, as by the Runtime domain of DevTools',
    falsePositives: 'a person with developer tools open; some extensions',
    fires: snapshot((s) => s.automation.cdp_runtime === true),
  },
  debugged_before_input: {
    name: 'Remote debugging, and nobody has acted yet',
    looksAt: 'remote debugging is on, and no natural movement or typing has come',
    falsePositives: 'a person with developer tools open, before any input',
    fires: inBrowser((s, facts) => s.automation.cdp_runtime === true && !actsNaturally(facts)),
  },
  cdp_driven_input: {
    name: 'Input sent through remote debugging',
    looksAt:
      'remote debugging is on, and every click hits an exact centre or carries protocol coordinates',
    falsePositives: 'none; developer tools do not aim clicks',
    fires: snapshot(
      (s, { behavior }) =>
        s.automation.cdp_runtime === true && behavior !== null && hasSyntheticClicks(behavior),
    ),
  },
})

const noisy = ({ canvas, audio }: Snapshot) =>
  canvas.noise_detected === true || audio.noise_detected === true

// APIs that hide automation when patched; privacy extensions patch canvas, audio, sizes and the user agent.
const stealthTargets = /permissions|plugins|mimeTypes|contentWindow/i

const patchesStealth = ({ tamper }: Snapshot) =>
  tamper.patched_functions.some((name) => stealthTargets.test(name))

export const tamperSignals = signals({
  webdriver_property_overridden: {
    name: 'WebDriver flag overridden',
    looksAt:
      '`webdriver` is an own property of `navigator`, or its getter was replaced or taken away',
    falsePositives: 'none; nothing but hiding automation needs it',
    fires: inBrowser(
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
    fires: inBrowser(
      (s, { privacyTool }) =>
        !privacyTool && s.tamper.navigator_own_properties.some((name) => name !== 'webdriver'),
    ),
  },
  patched_stealth_functions: {
    name: 'Functions patched as stealth plugins do',
    looksAt:
      'replaced native `permissions`, `Permissions.query`, `plugins`, `mimeTypes` or `contentWindow` of frames',
    falsePositives: 'privacy extensions',
    fires: inBrowser((s, { privacyTool }) => !privacyTool && patchesStealth(s)),
  },
  patched_functions: {
    name: 'Patched native functions',
    looksAt: 'other built-in functions whose source text is not native',
    falsePositives: 'privacy extensions, polyfills',
    fires: inBrowser(
      (s, { privacyTool }) =>
        !privacyTool && s.tamper.patched_functions.length > 0 && !patchesStealth(s),
    ),
  },
  stealth_iframe_proxy: {
    name: 'Iframe proxy of a stealth plugin',
    looksAt: 'an iframe with `srcdoc` has a content window before it is attached',
    falsePositives: 'none',
    fires: inBrowser((s) => s.tamper.iframe_srcdoc_proxy === true),
  },
  faked_chrome_runtime: {
    name: 'Imitated Chrome runtime',
    looksAt: 'functions of `chrome.runtime` that can be constructed or have a prototype',
    falsePositives: 'none',
    fires: inBrowser((s) => s.tamper.chrome_runtime_faked === true),
  },
  imitated_plugins: {
    name: 'Imitated plugins',
    looksAt:
      '`navigator.plugins` is no real PluginArray, or its members do not refer to each other',
    falsePositives: 'none',
    fires: inBrowser((s) => s.navigator.plugins_genuine === false),
  },
  native_claims_in_browser: {
    name: 'App observations from a page',
    looksAt: 'a session of a page sends `native`, which only an app can observe',
    falsePositives: 'none',
    fires: ({ claimsNative }) => claimsNative,
  },
  webgl_parameters_spoofed: {
    name: 'Spoofed graphics parameters',
    looksAt: 'parameters that WebGL and WebGL 2 must share differ',
    falsePositives: 'privacy extensions',
    fires: inBrowser(
      (s, { privacyTool }) => !privacyTool && s.tamper.webgl_parameter_mismatch === true,
    ),
  },
  fingerprint_noise: {
    name: 'Noise in canvas or audio',
    looksAt:
      'read-back of canvas or audio differs from what was drawn, in no known privacy browser',
    falsePositives: 'privacy extensions',
    fires: inBrowser((s, { privacyTool }) => !privacyTool && noisy(s)),
  },
  privacy_hardening_indicators: {
    name: 'Privacy hardening indicators',
    looksAt:
      'Brave, resistance to fingerprinting, a clock in steps of 5 ms or more in Firefox, noise',
    falsePositives: 'no risk: tamper signals weigh less',
    fires: inBrowser((s, { privacyTool }) => privacyTool || noisy(s)),
  },
})
