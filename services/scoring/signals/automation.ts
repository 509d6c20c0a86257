import type { Snapshot } from '../../../schemas/observations.ts'
import { actsNaturally, hasSyntheticClicks } from './behavior.ts'
import { inBrowser, signals, snapshot } from './signal.ts'
import { rewritesWebdriver } from './tamper.ts'

const automationBase = { role: 'risk', category: 'environment' } as const
const definitive = { ...automationBase, strength: 'definitive' } as const

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

const globals = (pattern: RegExp) => snapshot((s) => s.automation.globals.some((name) => pattern.test(name)))

const seleniumGlobals = globals(selenium)
const chromedriverMarkers = globals(chromedriver)
const playwrightGlobals = globals(playwright)
const puppeteerGlobals = globals(puppeteer)

export const automationSignals = [
  ...signals(definitive, {
    webdriver_detected: {
      channel: 'webdriver',
      name: 'WebDriver detected',
      score: 100,
      looksAt: '`navigator.webdriver` is true in the page or an iframe',
      falsePositives: 'people who drive their own browser with WebDriver',
      fires: snapshot(
        ({ automation: a }) =>
          a.webdriver === true || a.webdriver_iframe === true || a.webdriver_worker === true,
      ),
    },
    selenium_globals: {
      channel: 'globals',
      name: 'Selenium globals',
      score: 98,
      looksAt: 'globals that Selenium and its recorders define',
      falsePositives: 'none',
      fires: seleniumGlobals,
    },
    chromedriver_markers: {
      channel: 'globals',
      name: 'ChromeDriver markers',
      score: 98,
      looksAt:
        'properties that ChromeDriver adds, by their form: `cdc_` or three letters, 22 random characters, a type',
      falsePositives: 'none',
      fires: chromedriverMarkers,
    },
    playwright_globals: {
      channel: 'globals',
      name: 'Playwright globals',
      score: 98,
      looksAt: 'globals that Playwright injects (`__pwInitScripts`, `__playwright__binding__`)',
      falsePositives: 'none',
      fires: playwrightGlobals,
    },
    puppeteer_globals: {
      channel: 'globals',
      name: 'Puppeteer globals',
      score: 98,
      looksAt: 'evaluation and binding names that Puppeteer leaves in the page',
      falsePositives: 'none',
      fires: puppeteerGlobals,
    },
    phantom_globals: {
      channel: 'globals',
      name: 'PhantomJS globals',
      score: 97,
      looksAt: '`callPhantom`, `_phantom`, `__phantomas`, by exact name',
      falsePositives: 'none; `phantom` of the Phantom wallet does not count',
      fires: globals(phantom),
    },
    driver_globals: {
      channel: 'globals',
      name: 'Driver globals',
      score: 96,
      looksAt: 'globals of Nightmare, old headless Chrome, CEF automation, Cypress and others',
      falsePositives: 'sites that run their own end-to-end tests',
      fires: globals(others),
    },
    driver_document_attributes: {
      channel: 'globals',
      name: 'Driver attributes on the document',
      score: 97,
      looksAt: '`selenium`, `webdriver` or `driver` attributes on the root element',
      falsePositives: 'none',
      fires: snapshot((s) =>
        s.automation.document_attributes.some((name) => /^(selenium|webdriver|driver)$/.test(name)),
      ),
    },
    sequentum_external: {
      channel: 'globals',
      name: 'Sequentum host object',
      score: 97,
      looksAt: '`window.external` names Sequentum',
      falsePositives: 'none',
      fires: snapshot((s) => s.automation.sequentum === true),
    },
  }),
  ...signals(automationBase, {
    ambiguous_driver_globals: {
      channel: 'globals',
      name: 'Names that some drivers define',
      strength: 'weak',
      score: 6,
      looksAt: '`spawn`, `emit`, `geb` on the window',
      falsePositives: 'page code that uses the same names',
      fires: globals(ambiguous),
    },
    electron_runtime: {
      channel: 'globals',
      name: 'Electron runtime',
      strength: 'weak',
      score: 8,
      looksAt: 'Electron process objects in the page',
      falsePositives: 'ordinary desktop apps built on Electron',
      fires: snapshot((s) => s.automation.electron === true),
    },
    developer_tools_detected: {
      channel: 'console',
      name: 'Developer tools or remote debugging',
      strength: 'moderate',
      score: 34,
      looksAt: 'a logged error is serialised in page, frame or worker, as by the Runtime domain of DevTools',
      falsePositives: 'a person with developer tools open; some extensions',
      fires: snapshot((s) => s.automation.cdp_runtime === true),
    },
    debugged_before_input: {
      channel: 'console',
      name: 'Remote debugging, and nobody has acted yet',
      strength: 'weak',
      score: 4,
      atLeast: 45,
      looksAt: 'remote debugging is on, and no natural movement or typing has come',
      falsePositives: 'a person with developer tools open, before any input',
      fires: inBrowser((s, facts) => s.automation.cdp_runtime === true && !actsNaturally(facts)),
    },
    cdp_driven_input: {
      channel: 'console',
      name: 'Input sent through remote debugging',
      strength: 'strong',
      score: 62,
      looksAt: 'remote debugging is on, and every click hits an exact centre or carries protocol coordinates',
      falsePositives: 'none; developer tools do not aim clicks',
      fires: snapshot(
        (s, { behavior }) =>
          s.automation.cdp_runtime === true && behavior !== null && hasSyntheticClicks(behavior),
      ),
    },
  }),
]

const noisy = ({ canvas, audio }: Snapshot) => canvas.noise_detected === true || audio.noise_detected === true

// APIs that hide automation when patched; privacy extensions patch canvas, audio, sizes and the user agent.
const stealthTargets = /permissions|plugins|mimeTypes|contentWindow/i

const patchesStealth = ({ tamper }: Snapshot) =>
  tamper.patched_functions.some((name) => stealthTargets.test(name))

export const tamperSignals = signals(
  { role: 'risk', category: 'integrity' },
  {
    webdriver_property_overridden: {
      channel: 'webdriver',
      name: 'WebDriver flag overridden',
      strength: 'definitive',
      score: 92,
      looksAt: '`webdriver` is an own property of `navigator`, or its getter was replaced or taken away',
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
      channel: 'functions',
      name: 'Navigator values overridden',
      strength: 'moderate',
      score: 32,
      looksAt: 'own properties on `navigator` that shadow built-in ones',
      falsePositives: 'privacy extensions, user agent switchers',
      fires: inBrowser(
        (s, { privacyTool }) =>
          !privacyTool && s.tamper.navigator_own_properties.some((name) => name !== 'webdriver'),
      ),
    },
    patched_stealth_functions: {
      channel: 'functions',
      name: 'Functions patched as stealth plugins do',
      strength: 'strong',
      score: 45,
      looksAt:
        'replaced native `permissions`, `Permissions.query`, `plugins`, `mimeTypes` or `contentWindow` of frames',
      falsePositives: 'privacy extensions',
      fires: inBrowser((s, { privacyTool }) => !privacyTool && patchesStealth(s)),
    },
    patched_functions: {
      channel: 'functions',
      name: 'Patched native functions',
      strength: 'weak',
      score: 10,
      looksAt: 'other built-in functions whose source text is not native',
      falsePositives: 'privacy extensions, polyfills',
      fires: inBrowser(
        (s, { privacyTool }) => !privacyTool && s.tamper.patched_functions.length > 0 && !patchesStealth(s),
      ),
    },
    stealth_iframe_proxy: {
      channel: 'frames',
      name: 'Iframe proxy of a stealth plugin',
      strength: 'strong',
      score: 65,
      looksAt: 'an iframe with `srcdoc` has a content window before it is attached',
      falsePositives: 'none',
      fires: inBrowser((s) => s.tamper.iframe_srcdoc_proxy === true),
    },
    faked_chrome_runtime: {
      channel: 'extensions',
      name: 'Imitated Chrome runtime',
      strength: 'strong',
      score: 60,
      looksAt: 'functions of `chrome.runtime` that can be constructed or have a prototype',
      falsePositives: 'none',
      fires: inBrowser((s) => s.tamper.chrome_runtime_faked === true),
    },
    imitated_plugins: {
      channel: 'plugins',
      name: 'Imitated plugins',
      strength: 'strong',
      score: 55,
      looksAt: '`navigator.plugins` is no real PluginArray, or its members do not refer to each other',
      falsePositives: 'none',
      fires: inBrowser((s) => s.navigator.plugins_genuine === false),
    },
    native_claims_in_browser: {
      channel: 'app',
      name: 'App observations from a page',
      strength: 'strong',
      score: 60,
      looksAt: 'a session of a page sends `native`, which only an app can observe',
      falsePositives: 'none',
      fires: ({ claimsNative }) => claimsNative,
    },
    webgl_parameters_spoofed: {
      channel: 'graphics',
      name: 'Spoofed graphics parameters',
      strength: 'moderate',
      score: 28,
      looksAt: 'parameters that WebGL and WebGL 2 must share differ',
      falsePositives: 'privacy extensions',
      fires: inBrowser((s, { privacyTool }) => !privacyTool && s.tamper.webgl_parameter_mismatch === true),
    },
    fingerprint_noise: {
      channel: 'graphics',
      name: 'Noise in canvas or audio',
      strength: 'weak',
      score: 10,
      looksAt: 'read-back of canvas or audio differs from what was drawn, in no known privacy browser',
      falsePositives: 'privacy extensions',
      fires: inBrowser((s, { privacyTool }) => !privacyTool && noisy(s)),
    },
    privacy_hardening_indicators: {
      channel: 'functions',
      name: 'Privacy hardening indicators',
      role: 'context',
      strength: 'moderate',
      score: 0,
      looksAt: 'Brave, resistance to fingerprinting, a clock in steps of 5 ms or more in Firefox, noise',
      falsePositives: 'no risk: tamper signals weigh less',
      fires: inBrowser((s, { privacyTool }) => privacyTool || noisy(s)),
    },
  },
)
