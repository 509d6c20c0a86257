import type { Snapshot } from '../../../../schemas/observations.ts'
import {
  type AskBrowser,
  booleanOf,
  member,
  numberOf,
  readOrNull,
  textOf,
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
    user_agent: readOrNull(() => navigator.userAgent),
    app_version: readOrNull(() => textOf(member(navigator, 'appVersion'))),
    platform: readOrNull(() => textOf(member(navigator, 'platform'))),
    vendor: readOrNull(() => textOf(member(navigator, 'vendor'))),
    product_sub: readOrNull(() => textOf(member(navigator, 'productSub'))),
    language: readOrNull(() => navigator.language),
    languages: readOrNull(() => [...navigator.languages]) ?? [],
    cookie_enabled: readOrNull(() => navigator.cookieEnabled),
    pdf_viewer_enabled: readOrNull(() => navigator.pdfViewerEnabled),
  }
}

function hardware() {
  return {
    hardware_concurrency: readOrNull(() => navigator.hardwareConcurrency),
    device_memory: readOrNull(() => numberOf(member(navigator, 'deviceMemory'))),
    max_touch_points: readOrNull(() => navigator.maxTouchPoints),
    connection_rtt: readOrNull(() => numberOf(member(member(navigator, 'connection'), 'rtt'))),
  }
}

function plugins() {
  return {
    plugins: readOrNull(() => Array.from(navigator.plugins, (plugin) => plugin.name)) ?? [],
    mime_types_count: readOrNull(() => navigator.mimeTypes.length),
    plugins_genuine: readOrNull(pluginsGenuine),
  }
}

// Returns false for a faked list, which fails at the prototypes, a MIME type's back reference, or the 32-bit index
// wrap.
function pluginsGenuine(): boolean {
  const list = navigator.plugins
  const prototypes = list instanceof PluginArray && navigator.mimeTypes instanceof MimeTypeArray
  const first = list[0]
  if (!prototypes || !first) return prototypes
  const wrapped = list.item(4294967296) === first
  return wrapped && first[0]?.enabledPlugin === first
}

async function clientHints(ask: AskBrowser) {
  const data = readOrNull(() => member(navigator, 'userAgentData'))
  const detail = data ? await ask(() => highEntropyValues(data)) : null
  return {
    brands: brandsOf(member(data, 'brands')),
    ua_data_mobile: booleanOf(member(data, 'mobile')),
    ua_data_platform: textOf(member(data, 'platform')),
    ua_data_platform_version: textOf(member(detail, 'platformVersion')),
    ua_data_architecture: textOf(member(detail, 'architecture')),
    ua_data_model: textOf(member(detail, 'model')),
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
    brand: textOf(member(item, 'brand')),
    version: textOf(member(item, 'version')),
  }))
}

// Returns the version of the most specific brand: not the GREASE brand, and Chromium only if there is no other.
function fullVersion(brands: Navigator_['brands']): string | null {
  const real = brands.filter(
    ({ brand }) => !/not.?a.?brand/i.test(brand?.replace(/[^a-z]/gi, '') ?? ''),
  )
  const chosen = real.find(({ brand }) => brand !== 'Chromium') ?? real[0]
  return chosen?.version ?? null
}
