import type { Snapshot } from '../../../../schemas/observations.ts'
import {
  type AskBrowser,
  booleanOrNull,
  member,
  numberOrNull,
  textOrNull,
  tryOrNull,
  yieldToPage,
} from '../support.ts'

type Navigator_ = Snapshot['navigator']

const highEntropy = ['architecture', 'fullVersionList', 'model', 'platform', 'platformVersion']

export async function collectNavigator(ask: AskBrowser): Promise<Navigator_> {
  const browser = { ...identity(), ...hardware() }
  await yieldToPage()
  const pluginFacts = plugins()
  await yieldToPage()
  return { ...browser, ...pluginFacts, ...(await clientHints(ask)) }
}

function identity() {
  return {
    user_agent: tryOrNull(() => navigator.userAgent),
    app_version: tryOrNull(() => textOrNull(member(navigator, 'appVersion'))),
    platform: tryOrNull(() => textOrNull(member(navigator, 'platform'))),
    vendor: tryOrNull(() => textOrNull(member(navigator, 'vendor'))),
    product_sub: tryOrNull(() => textOrNull(member(navigator, 'productSub'))),
    language: tryOrNull(() => navigator.language),
    languages: tryOrNull(() => [...navigator.languages]) ?? [],
    cookie_enabled: tryOrNull(() => navigator.cookieEnabled),
    pdf_viewer_enabled: tryOrNull(() => navigator.pdfViewerEnabled),
  }
}

function hardware() {
  return {
    hardware_concurrency: tryOrNull(() => navigator.hardwareConcurrency),
    device_memory: tryOrNull(() => numberOrNull(member(navigator, 'deviceMemory'))),
    max_touch_points: tryOrNull(() => navigator.maxTouchPoints),
    connection_rtt: tryOrNull(() => numberOrNull(member(member(navigator, 'connection'), 'rtt'))),
  }
}

function plugins() {
  return {
    plugins: tryOrNull(() => Array.from(navigator.plugins, (plugin) => plugin.name)) ?? [],
    mime_types_count: tryOrNull(() => navigator.mimeTypes.length),
    plugins_genuine: tryOrNull(pluginsGenuine),
  }
}

// Returns false for a faked list: it has wrong prototypes or back references, or its index does not wrap at 32 bits.
function pluginsGenuine(): boolean {
  const list = navigator.plugins
  const prototypes = list instanceof PluginArray && navigator.mimeTypes instanceof MimeTypeArray
  const first = list[0]
  if (!prototypes || !first) return prototypes
  const wrapped = list.item(4294967296) === first
  return wrapped && first[0]?.enabledPlugin === first
}

async function clientHints(ask: AskBrowser) {
  const data = tryOrNull(() => member(navigator, 'userAgentData'))
  const detail = data ? await ask(() => highEntropyValues(data)) : null
  return {
    brands: brandsOf(member(data, 'brands')),
    ua_data_mobile: booleanOrNull(member(data, 'mobile')),
    ua_data_platform: textOrNull(member(data, 'platform')),
    ua_data_platform_version: textOrNull(member(detail, 'platformVersion')),
    ua_data_architecture: textOrNull(member(detail, 'architecture')),
    ua_data_model: textOrNull(member(detail, 'model')),
    ua_full_version: fullVersion(brandsOf(member(detail, 'fullVersionList'))),
  }
}

async function highEntropyValues(data: unknown): Promise<unknown> {
  const read = member(data, 'getHighEntropyValues')
  return typeof read === 'function' ? Reflect.apply(read, data, [highEntropy]) : null
}

function brandsOf(list: unknown): Navigator_['brands'] {
  if (!Array.isArray(list)) return []
  return list.map((item) => ({
    brand: textOrNull(member(item, 'brand')),
    version: textOrNull(member(item, 'version')),
  }))
}

// Returns the version of the browser's own brand, or of Chromium if there is none. Ignores the made-up GREASE brand.
function fullVersion(brands: Navigator_['brands']): string | null {
  const real = brands.filter(
    ({ brand }) => !/not.?a.?brand/i.test(brand?.replace(/[^a-z]/gi, '') ?? ''),
  )
  const chosen = real.find(({ brand }) => brand !== 'Chromium') ?? real[0]
  return chosen?.version ?? null
}
