import type { Snapshot } from '../../../../schemas/observations.ts'

/**
 * Synthetic snapshots: written by hand after what such browsers are known to report, not recorded from devices.
 */
type Parts = {
  [K in keyof Snapshot]?: Snapshot[K] extends object | null ? Partial<NonNullable<Snapshot[K]>> : never
}

export interface Client {
  snapshot: Parts
  clientHints?: Record<string, string>
}

const desktopSize = {
  outer_width: 1512,
  outer_height: 916,
  inner_width: 1512,
  inner_height: 790,
  screen_width: 1512,
  screen_height: 982,
  avail_width: 1512,
  avail_height: 944,
  color_depth: 24,
  pixel_ratio: 2,
  has_focus: true,
  timezone: 'Europe/Berlin',
  timezone_offset_min: -60,
  pointer_coarse: false,
}
const phoneSize = {
  outer_width: 393,
  outer_height: 852,
  inner_width: 393,
  inner_height: 659,
  screen_width: 393,
  screen_height: 852,
  color_depth: 24,
  pixel_ratio: 3,
  has_focus: true,
  timezone: 'Europe/Berlin',
  pointer_coarse: true,
}
const clean = {
  webdriver: false,
  webdriver_iframe: false,
  globals: [],
  document_attributes: [],
  cdp_runtime: false,
}
const untouched = {
  patched_functions: [],
  navigator_own_properties: [],
  iframe_srcdoc_proxy: false,
  chrome_runtime_faked: false,
  webgl_parameter_mismatch: false,
  timezone_mismatch: false,
  brave: false,
  timer_precision_reduced: false,
}
const storage = {
  cookies: true,
  local_storage: true,
  session_storage: true,
  indexed_db: true,
  service_worker: true,
  window_name: true,
}
const languages = { language: 'de-DE', languages: ['de-DE', 'de', 'en'] }
const pdfPlugins = [
  'PDF Viewer',
  'Chrome PDF Viewer',
  'Chromium PDF Viewer',
  'Microsoft Edge PDF Viewer',
  'WebKit built-in PDF',
]

const chromeUa =
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36'
const linuxChromeUa =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36'

function realms(user_agent: string, platform: string, renderer: string | null) {
  const realm = {
    available: true,
    user_agent,
    platform,
    languages: languages.languages,
    hardware_concurrency: 8,
    webgl_renderer: renderer,
  }
  return { worker: realm, iframe: realm }
}

const appleGpu = 'ANGLE (Apple, ANGLE Metal Renderer: Apple M2, Unspecified Version)'

export const desktopChrome: Client = {
  clientHints: {
    'sec-ch-ua': '"Chromium";v="140", "Google Chrome";v="140", "Not=A?Brand";v="24"',
    'sec-ch-ua-platform': '"macOS"',
    'sec-ch-ua-mobile': '?0',
  },
  snapshot: {
    navigator: {
      user_agent: chromeUa,
      platform: 'MacIntel',
      vendor: 'Google Inc.',
      product_sub: '20030107',
      ...languages,
      hardware_concurrency: 8,
      device_memory: 8,
      max_touch_points: 0,
      pdf_viewer_enabled: true,
      mime_types_count: 2,
      plugins: pdfPlugins,
      plugins_genuine: true,
      brands: [
        { brand: 'Chromium', version: '140' },
        { brand: 'Google Chrome', version: '140' },
        { brand: 'Not=A?Brand', version: '24' },
      ],
      ua_data_platform: 'macOS',
      ua_data_platform_version: '15.6.0',
      ua_data_architecture: 'arm',
      ua_full_version: '140.0.7339.81',
    },
    environment: {
      ...desktopSize,
      has_chrome_object: true,
      notification_permission: 'default',
      permissions_query_state: 'prompt',
    },
    automation: clean,
    tamper: untouched,
    engine: { eval_length: 33, name: 'V8' },
    ...realms(chromeUa, 'MacIntel', appleGpu),
    storage,
    capabilities: { touch: false, webgpu: true, media_devices: true, speech_synthesis: true },
    canvas: { hash: 'c-mac-1', noise_detected: false },
    webgl: {
      vendor: 'Google Inc. (Apple)',
      renderer: appleGpu,
      parameters_hash: 'p-1',
      extensions_hash: 'e-1',
    },
    audio: { hash: 124.04344968475198, sample_rate: 48000, voice_count: 184, noise_detected: false },
    fonts: { detected_count: 41, tested_count: 60, enumeration_hash: 'f-1' },
    media: {
      device_count: 3,
      counts_by_kind: { audioinput: 1, audiooutput: 1, videoinput: 1 },
      topology_hash: 't-1',
    },
  },
}

const chromebookUa =
  'Mozilla/5.0 (X11; CrOS x86_64 14541.0.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36'
const intelGpu = 'ANGLE (Intel, Mesa Intel(R) UHD Graphics (JSL), OpenGL ES 3.2)'

export const chromebook: Client = {
  clientHints: { ...desktopChrome.clientHints, 'sec-ch-ua-platform': '"Chrome OS"' },
  snapshot: {
    ...desktopChrome.snapshot,
    navigator: {
      ...desktopChrome.snapshot.navigator,
      user_agent: chromebookUa,
      platform: 'Linux x86_64',
      ua_data_platform: 'Chrome OS',
      ua_data_platform_version: '16371.0.0',
      ua_data_architecture: 'x86',
    },
    ...realms(chromebookUa, 'Linux x86_64', intelGpu),
    webgl: {
      vendor: 'Google Inc. (Intel)',
      renderer: intelGpu,
      parameters_hash: 'p-cros',
      extensions_hash: 'e-cros',
    },
  },
}

const safariUa =
  'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Safari/605.1.15'

export const desktopSafari: Client = {
  snapshot: {
    ...desktopChrome.snapshot,
    navigator: {
      user_agent: safariUa,
      platform: 'MacIntel',
      vendor: 'Apple Computer, Inc.',
      product_sub: '20030107',
      ...languages,
      hardware_concurrency: 8,
      max_touch_points: 0,
      pdf_viewer_enabled: true,
      plugins: pdfPlugins,
      plugins_genuine: true,
    },
    environment: { ...desktopSize, has_chrome_object: false, notification_permission: 'default' },
    engine: { eval_length: 37, name: 'JavaScriptCore' },
    ...realms(safariUa, 'MacIntel', 'Apple GPU'),
    webgl: { vendor: 'Apple Inc.', renderer: 'Apple GPU', parameters_hash: 'p-s', extensions_hash: 'e-s' },
  },
}

const firefoxUa = 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:140.0) Gecko/20100101 Firefox/140.0'

const firefoxGpu = 'ANGLE (NVIDIA, NVIDIA GeForce GTX 980 Direct3D11 vs_5_0 ps_5_0), or similar'

/** Firefox as it is installed: the clock in steps of 1 ms, no client hints, no device memory. */
export const desktopFirefox: Client = {
  snapshot: {
    ...desktopChrome.snapshot,
    navigator: {
      user_agent: firefoxUa,
      platform: 'Win32',
      vendor: '',
      product_sub: '20100101',
      ...languages,
      hardware_concurrency: 8,
      max_touch_points: 0,
      pdf_viewer_enabled: true,
      plugins: pdfPlugins,
      plugins_genuine: true,
    },
    environment: { ...desktopSize, has_chrome_object: false, notification_permission: 'default' },
    engine: { eval_length: 37, name: 'SpiderMonkey' },
    ...realms(firefoxUa, 'Win32', firefoxGpu),
    canvas: { hash: 'c-firefox', noise_detected: false },
    webgl: {
      vendor: 'Google Inc. (NVIDIA)',
      renderer: firefoxGpu,
      parameters_hash: 'p-f',
      extensions_hash: 'e-f',
    },
    audio: { hash: 35.749968223273754, sample_rate: 48000, voice_count: 3, noise_detected: false },
  },
}

/** Firefox with privacy.resistFingerprinting: UTC, noise, coarse timers, no WebGL details. */
export const resistingFirefox: Client = {
  snapshot: {
    navigator: {
      user_agent: firefoxUa,
      platform: 'Win32',
      vendor: '',
      product_sub: '20100101',
      language: 'en-US',
      languages: ['en-US', 'en'],
      hardware_concurrency: 2,
      max_touch_points: 0,
      pdf_viewer_enabled: true,
      plugins: pdfPlugins,
      plugins_genuine: true,
    },
    environment: {
      ...desktopSize,
      screen_width: 1400,
      screen_height: 900,
      timezone: 'UTC',
      has_chrome_object: false,
    },
    automation: clean,
    tamper: { ...untouched, timer_precision_reduced: true },
    engine: { eval_length: 37, name: 'SpiderMonkey' },
    worker: {
      available: true,
      user_agent: firefoxUa,
      platform: 'Win32',
      languages: ['en-US', 'en'],
      hardware_concurrency: 2,
    },
    iframe: {
      available: true,
      user_agent: firefoxUa,
      platform: 'Win32',
      languages: ['en-US', 'en'],
      hardware_concurrency: 2,
    },
    storage,
    canvas: { hash: 'noise-8842', noise_detected: true },
    webgl: { vendor: 'Mozilla', renderer: 'Mozilla' },
    audio: { hash: 35.74, voice_count: 0, noise_detected: false },
    fonts: { detected_count: 2, tested_count: 60 },
    media: { device_count: 0 },
  },
}

export const brave: Client = {
  snapshot: {
    ...desktopChrome.snapshot,
    tamper: {
      ...untouched,
      brave: true,
      patched_functions: ['HTMLCanvasElement.toDataURL', 'navigator.plugins'],
    },
    canvas: { hash: 'farbled-1', noise_detected: true },
    audio: { hash: 124.08, voice_count: 184, noise_detected: true },
    worker: { ...realms(chromeUa, 'MacIntel', appleGpu).worker, hardware_concurrency: 5 },
  },
}

const iphoneUa =
  'Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 Mobile/15E148 Safari/604.1'

export const iphoneSafari: Client = {
  snapshot: {
    navigator: {
      user_agent: iphoneUa,
      platform: 'iPhone',
      vendor: 'Apple Computer, Inc.',
      product_sub: '20030107',
      ...languages,
      hardware_concurrency: 4,
      max_touch_points: 5,
      pdf_viewer_enabled: true,
      plugins: pdfPlugins,
      plugins_genuine: true,
    },
    environment: { ...phoneSize, has_chrome_object: false },
    automation: clean,
    tamper: untouched,
    engine: { eval_length: 37, name: 'JavaScriptCore' },
    ...realms(iphoneUa, 'iPhone', 'Apple GPU'),
    storage,
    capabilities: { touch: true },
    canvas: { hash: 'c-iphone', noise_detected: false },
    webgl: { vendor: 'Apple Inc.', renderer: 'Apple GPU', parameters_hash: 'p-i', extensions_hash: 'e-i' },
    audio: { hash: 124.1, voice_count: 60, noise_detected: false },
    fonts: { detected_count: 20, enumeration_hash: 'f-i' },
    media: { device_count: 2, topology_hash: 't-i' },
  },
}

const androidUa =
  'Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36'

export const androidChrome: Client = {
  clientHints: {
    'sec-ch-ua': '"Chromium";v="140", "Google Chrome";v="140"',
    'sec-ch-ua-platform': '"Android"',
    'sec-ch-ua-mobile': '?1',
  },
  snapshot: {
    ...iphoneSafari.snapshot,
    navigator: {
      user_agent: androidUa,
      platform: 'Linux armv81',
      vendor: 'Google Inc.',
      product_sub: '20030107',
      ...languages,
      hardware_concurrency: 8,
      device_memory: 8,
      max_touch_points: 5,
      pdf_viewer_enabled: false,
      plugins: [],
      plugins_genuine: true,
      ua_data_platform: 'Android',
      ua_data_mobile: true,
    },
    environment: { ...phoneSize, has_chrome_object: true },
    engine: { eval_length: 33, name: 'V8' },
    ...realms(androidUa, 'Linux armv81', 'Adreno (TM) 740'),
    webgl: {
      vendor: 'Qualcomm',
      renderer: 'Adreno (TM) 740',
      parameters_hash: 'p-a',
      extensions_hash: 'e-a',
    },
  },
}

const webViewUa =
  'Mozilla/5.0 (Linux; Android 15; Pixel 8 Build/AP4A; wv) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/140.0.0.0 Mobile Safari/537.36 Instagram 390.0.0.0'

export const androidWebView: Client = {
  snapshot: {
    ...androidChrome.snapshot,
    navigator: { ...androidChrome.snapshot.navigator, user_agent: webViewUa, connection_rtt: 0 },
    environment: { ...phoneSize, has_chrome_object: false },
    ...realms(webViewUa, 'Linux armv81', 'Adreno (TM) 740'),
  },
}

const headlessUa =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/140.0.0.0 Safari/537.36'
const swiftShader = 'ANGLE (Google, Vulkan 1.3.0 (SwiftShader Device (Subzero)), SwiftShader driver)'

/** A container: software rendering, UTC, hardly any fonts, no media devices, no voices. */
const container = {
  environment: {
    outer_width: 1280,
    outer_height: 800,
    inner_width: 1280,
    inner_height: 715,
    screen_width: 1280,
    screen_height: 800,
    avail_width: 1280,
    avail_height: 800,
    color_depth: 24,
    pixel_ratio: 1,
    has_focus: true,
    timezone: 'UTC',
    timezone_offset_min: 0,
    pointer_coarse: false,
    has_chrome_object: true,
  },
  storage,
  canvas: { hash: 'c-soft', noise_detected: false },
  audio: { hash: 124.04347657808103, voice_count: 0, noise_detected: false },
  fonts: { detected_count: 1, tested_count: 60, enumeration_hash: 'f-bare' },
  media: { device_count: 0, topology_hash: 't-none' },
  webgl: {
    vendor: 'Google Inc. (Google)',
    renderer: swiftShader,
    parameters_hash: 'p-soft',
    extensions_hash: 'e-soft',
  },
  engine: { eval_length: 33, name: 'V8' },
} satisfies Parts

function linuxNavigator(user_agent: string) {
  return {
    user_agent,
    platform: 'Linux x86_64',
    vendor: 'Google Inc.',
    product_sub: '20030107',
    language: 'en-US',
    languages: ['en-US', 'en'],
    hardware_concurrency: 2,
    device_memory: 4,
    max_touch_points: 0,
    pdf_viewer_enabled: true,
    plugins: pdfPlugins,
    plugins_genuine: true,
  }
}

const linuxRealm = (user_agent: string) => ({
  ...realms(user_agent, 'Linux x86_64', swiftShader).worker,
  languages: ['en-US', 'en'],
})

export const headlessChrome: Client = {
  clientHints: {
    'sec-ch-ua': '"Chromium";v="140", "HeadlessChrome";v="140"',
    'sec-ch-ua-platform': '"Linux"',
  },
  snapshot: {
    ...container,
    navigator: linuxNavigator(headlessUa),
    automation: { ...clean, webdriver: true, webdriver_iframe: true, cdp_runtime: true },
    tamper: untouched,
    worker: linuxRealm(headlessUa),
    iframe: linuxRealm(headlessUa),
  },
}

/** A headless browser under puppeteer-extra-stealth: no flag, no name, but the marks of the patches. */
export const stealthPuppeteer: Client = {
  snapshot: {
    ...container,
    navigator: { ...linuxNavigator(linuxChromeUa), plugins_genuine: false },
    automation: { ...clean, cdp_runtime: true },
    tamper: {
      ...untouched,
      iframe_srcdoc_proxy: true,
      chrome_runtime_faked: true,
      patched_functions: ['navigator.plugins', 'Permissions.query'],
    },
    worker: linuxRealm(linuxChromeUa),
    iframe: linuxRealm(linuxChromeUa),
  },
}

/** An ordinary windowed Chromium in a container (Xvfb, llvmpipe, UTC, no devices) that a person or xdotool uses. */
export const bareChromium: Client = {
  snapshot: {
    ...container,
    navigator: {
      ...linuxNavigator(linuxChromeUa),
      plugins: [],
      pdf_viewer_enabled: false,
      mime_types_count: 0,
    },
    automation: clean,
    tamper: untouched,
    worker: linuxRealm(linuxChromeUa),
    iframe: linuxRealm(linuxChromeUa),
    webgl: {
      vendor: 'Google Inc. (Mesa)',
      renderer: 'ANGLE (Mesa, llvmpipe (LLVM 15.0.6 256 bits), OpenGL 4.5)',
      parameters_hash: 'p-llvm',
      extensions_hash: 'e-llvm',
    },
    environment: {
      ...container.environment,
      notification_permission: 'default',
      permissions_query_state: 'prompt',
    },
  },
}

/** `navigator.appVersion` as browsers make it of the user agent string. */
export function appVersionOf(client: Client): string | null {
  const userAgent = client.snapshot.navigator?.user_agent ?? null
  return userAgent?.replace(/^Mozilla\//, '') ?? null
}

/** With parts of the snapshot replaced member by member. */
export function withParts(client: Client, parts: Parts): Client {
  const merged = Object.fromEntries(
    Object.entries(parts).map(([name, part]) => [
      name,
      { ...Object.entries(client.snapshot).find(([n]) => n === name)?.[1], ...part },
    ]),
  )
  return { ...client, snapshot: { ...client.snapshot, ...merged } }
}
