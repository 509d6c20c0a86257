export type Client = 'web' | 'ios' | 'android'

export interface DeviceFamily {
  name: string
  client: Client
  engine: 'V8' | 'SpiderMonkey' | 'JavaScriptCore'
  /** `{v}` stands for the major version. */
  userAgent: string
  versions: readonly number[]
  platform: string
  hintsPlatform: string | null
  vendor: string
  brand: string | null
  mobile: boolean
  screens: readonly Screen[]
  gpus: readonly Gpu[]
  fonts: readonly string[]
  places: readonly Place[]
}

// Width and height in CSS pixels, device pixel ratio.
type Screen = readonly [number, number, number]
type Gpu = readonly [string, string]

// The offset is in minutes, as JavaScript counts it: west of UTC is positive.
interface Place {
  languages: readonly string[]
  timezone: string
  timezone_offset_min: number
}

const places = [
  { languages: ['en-US', 'en'], timezone: 'America/New_York', timezone_offset_min: 240 },
  { languages: ['de-DE', 'de', 'en'], timezone: 'Europe/Berlin', timezone_offset_min: -120 },
  { languages: ['fr-FR', 'fr'], timezone: 'Europe/Paris', timezone_offset_min: -120 },
  { languages: ['ja-JP', 'ja'], timezone: 'Asia/Tokyo', timezone_offset_min: -540 },
] as const

const desktopScreens = [
  [1920, 1080, 1],
  [2560, 1440, 1],
  [1536, 864, 1.25],
  [1366, 768, 1],
] as const
const macScreens = [
  [1512, 982, 2],
  [1728, 1117, 2],
  [1440, 900, 2],
] as const
const phoneScreens = [
  [412, 915, 2.625],
  [384, 832, 2.8125],
  [360, 800, 3],
] as const
const iphoneScreens = [
  [390, 844, 3],
  [393, 852, 3],
  [430, 932, 3],
] as const

const windowsGpus = [
  ['Google Inc. (NVIDIA)', 'ANGLE (NVIDIA, NVIDIA GeForce RTX 3060 Direct3D11 vs_5_0 ps_5_0, D3D11)'],
  ['Google Inc. (Intel)', 'ANGLE (Intel, Intel(R) UHD Graphics 620 Direct3D11 vs_5_0 ps_5_0, D3D11)'],
  ['Google Inc. (AMD)', 'ANGLE (AMD, AMD Radeon RX 6600 Direct3D11 vs_5_0 ps_5_0, D3D11)'],
] as const
const macGpus = [
  ['Google Inc. (Apple)', 'ANGLE (Apple, ANGLE Metal Renderer: Apple M2, Unspecified Version)'],
  ['Google Inc. (Apple)', 'ANGLE (Apple, ANGLE Metal Renderer: Apple M1 Pro, Unspecified Version)'],
] as const
const linuxGpus = [
  ['Google Inc. (Intel)', 'ANGLE (Intel, Mesa Intel(R) Iris(R) Xe Graphics (TGL GT2), OpenGL 4.6)'],
  ['Google Inc. (AMD)', 'ANGLE (AMD, AMD Radeon Graphics (radeonsi renoir), OpenGL 4.6)'],
] as const
const phoneGpus = [
  ['Qualcomm', 'Adreno (TM) 740'],
  ['ARM', 'Mali-G715'],
  ['Qualcomm', 'Adreno (TM) 650'],
] as const
const appleGpu = [['Apple Inc.', 'Apple GPU']] as const

const windowsFonts = ['Arial', 'Calibri', 'Cambria', 'Consolas', 'Segoe UI', 'Tahoma', 'Verdana']
const macFonts = ['Arial', 'Avenir', 'Geneva', 'Helvetica Neue', 'Menlo', 'Monaco', 'San Francisco']
const linuxFonts = ['DejaVu Sans', 'DejaVu Serif', 'Liberation Sans', 'Noto Sans', 'Ubuntu']
const phoneFonts = ['Roboto', 'Noto Sans', 'Droid Sans Mono']

const chromium = {
  engine: 'V8',
  vendor: 'Google Inc.',
  versions: [138, 139, 140, 141],
  brand: 'Google Chrome',
  places,
} as const
// Neither sends client hints.
const webkit = {
  engine: 'JavaScriptCore',
  vendor: 'Apple Computer, Inc.',
  versions: [17, 18],
  brand: null,
  hintsPlatform: null,
  places,
} as const
const gecko = {
  engine: 'SpiderMonkey',
  vendor: '',
  versions: [140, 142, 143],
  brand: null,
  hintsPlatform: null,
  places,
} as const

const windows = {
  client: 'web',
  mobile: false,
  platform: 'Win32',
  hintsPlatform: 'Windows',
  screens: desktopScreens,
  gpus: windowsGpus,
  fonts: windowsFonts,
} as const
const linux = {
  ...windows,
  platform: 'Linux x86_64',
  hintsPlatform: 'Linux',
  gpus: linuxGpus,
  fonts: linuxFonts,
} as const
const mac = {
  ...windows,
  platform: 'MacIntel',
  hintsPlatform: 'macOS',
  screens: macScreens,
  gpus: macGpus,
  fonts: macFonts,
} as const
const iphone = {
  client: 'web',
  mobile: true,
  platform: 'iPhone',
  screens: iphoneScreens,
  gpus: appleGpu,
  fonts: macFonts,
} as const
const phone = {
  client: 'web',
  mobile: true,
  platform: 'Linux armv81',
  hintsPlatform: 'Android',
  screens: phoneScreens,
  gpus: phoneGpus,
  fonts: phoneFonts,
} as const

const chrome = 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{v}.0.0.0'
const safari = 'AppleWebKit/605.1.15 (KHTML, like Gecko) Version/{v}.5'
const agents = {
  windows: `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${chrome} Safari/537.36`,
  mac: `Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) ${chrome} Safari/537.36`,
  linux: `Mozilla/5.0 (X11; Linux x86_64) ${chrome} Safari/537.36`,
  firefox: 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:{v}.0) Gecko/20100101 Firefox/{v}.0',
  safari: `Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) ${safari} Safari/605.1.15`,
  iphone: `Mozilla/5.0 (iPhone; CPU iPhone OS {v}_5 like Mac OS X) ${safari} Mobile/15E148 Safari/604.1`,
  android: `Mozilla/5.0 (Linux; Android 10; K) ${chrome} Mobile Safari/537.36`,
}
const edge = { brand: 'Microsoft Edge', userAgent: `${agents.windows} Edg/{v}.0.0.0` }
const iosApp = { client: 'ios', userAgent: 'Shop/4.2 CFNetwork/1568.100.1 Darwin/24.5.0' } as const
const androidApp = {
  client: 'android',
  userAgent: 'Shop/4.2 (Android 15; okhttp 4.12.0)',
  hintsPlatform: null,
  brand: null,
} as const

/** What the synthetic visitors use, with the weight of each. Values are as these browsers report them in 2025. */
export const families: readonly (readonly [DeviceFamily, number])[] = [
  [{ ...windows, ...chromium, name: 'chrome-windows', userAgent: agents.windows }, 30],
  [{ ...windows, ...chromium, name: 'edge-windows', ...edge }, 10],
  [{ ...mac, ...chromium, name: 'chrome-macos', userAgent: agents.mac }, 12],
  [{ ...linux, ...chromium, name: 'chrome-linux', userAgent: agents.linux }, 4],
  [{ ...windows, ...gecko, name: 'firefox-windows', userAgent: agents.firefox }, 6],
  [{ ...mac, ...webkit, name: 'safari-macos', userAgent: agents.safari, gpus: appleGpu }, 10],
  [{ ...iphone, ...webkit, name: 'safari-iphone', userAgent: agents.iphone }, 15],
  [{ ...phone, ...chromium, name: 'chrome-android', userAgent: agents.android }, 13],
  [{ ...iphone, ...webkit, name: 'app-iphone', ...iosApp }, 1],
  [{ ...phone, ...chromium, name: 'app-android', ...androidApp }, 1],
]
