export const clientNames = ['web', 'ios', 'android'] as const
export type Client = (typeof clientNames)[number]

export interface DeviceFamily {
  name: string
  client: Client
  engine: 'V8' | 'SpiderMonkey' | 'JavaScriptCore'
  /** User agent with `{v}` as a placeholder for the major version. */
  userAgent: string
  versions: readonly number[]
  platform: string
  /** Platform in client hints. Null if the browser doesn't send client hints, as is `brand`. */
  hintsPlatform: string | null
  vendor: string
  brand: string | null
  mobile: boolean
  /** Width and height in CSS pixels, device pixel ratio. */
  screens: readonly (readonly [number, number, number])[]
  /** Vendor and renderer that WebGL reports. */
  gpus: readonly (readonly [string, string])[]
  fonts: readonly string[]
  /** Offsets are in minutes as in `Date.getTimezoneOffset`: positive west of UTC. */
  locales: readonly {
    languages: readonly string[]
    timezone: string
    timezone_offset_min: number
  }[]
}

const locales: DeviceFamily['locales'] = [
  { languages: ['en-US', 'en'], timezone: 'America/New_York', timezone_offset_min: 240 },
  { languages: ['de-DE', 'de', 'en'], timezone: 'Europe/Berlin', timezone_offset_min: -120 },
  { languages: ['fr-FR', 'fr'], timezone: 'Europe/Paris', timezone_offset_min: -120 },
  { languages: ['ja-JP', 'ja'], timezone: 'Asia/Tokyo', timezone_offset_min: -540 },
]

type Engine = Pick<DeviceFamily, 'engine' | 'vendor' | 'versions' | 'brand' | 'locales'>
const chromium: Engine = {
  engine: 'V8',
  vendor: 'Google Inc.',
  versions: [138, 139, 140, 141],
  brand: 'Google Chrome',
  locales,
}
const noHints = { brand: null, hintsPlatform: null, locales }
const webkit = {
  engine: 'JavaScriptCore',
  vendor: 'Apple Computer, Inc.',
  versions: [17, 18],
  ...noHints,
} satisfies Engine
const gecko = {
  engine: 'SpiderMonkey',
  vendor: '',
  versions: [140, 142, 143],
  ...noHints,
} satisfies Engine

type Machine = Omit<DeviceFamily, 'name' | 'userAgent' | keyof Engine>
const windows: Machine = {
  client: 'web',
  mobile: false,
  platform: 'Win32',
  hintsPlatform: 'Windows',
  screens: [
    [1920, 1080, 1],
    [2560, 1440, 1],
    [1536, 864, 1.25],
    [1366, 768, 1],
  ],
  gpus: [
    [
      'Google Inc. (NVIDIA)',
      'ANGLE (NVIDIA, NVIDIA GeForce RTX 3060 Direct3D11 vs_5_0 ps_5_0, D3D11)',
    ],
    [
      'Google Inc. (Intel)',
      'ANGLE (Intel, Intel(R) UHD Graphics 620 Direct3D11 vs_5_0 ps_5_0, D3D11)',
    ],
    ['Google Inc. (AMD)', 'ANGLE (AMD, AMD Radeon RX 6600 Direct3D11 vs_5_0 ps_5_0, D3D11)'],
  ],
  fonts: ['Arial', 'Calibri', 'Cambria', 'Consolas', 'Segoe UI', 'Tahoma', 'Verdana'],
}
const linux: Machine = {
  ...windows,
  platform: 'Linux x86_64',
  hintsPlatform: 'Linux',
  gpus: [
    [
      'Google Inc. (Intel)',
      'ANGLE (Intel, Mesa Intel(R) Iris(R) Xe Graphics (TGL GT2), OpenGL 4.6)',
    ],
    ['Google Inc. (AMD)', 'ANGLE (AMD, AMD Radeon Graphics (radeonsi renoir), OpenGL 4.6)'],
  ],
  fonts: ['DejaVu Sans', 'DejaVu Serif', 'Liberation Sans', 'Noto Sans', 'Ubuntu'],
}
const mac: Machine = {
  ...windows,
  platform: 'MacIntel',
  hintsPlatform: 'macOS',
  screens: [
    [1512, 982, 2],
    [1728, 1117, 2],
    [1440, 900, 2],
  ],
  gpus: [
    ['Google Inc. (Apple)', 'ANGLE (Apple, ANGLE Metal Renderer: Apple M2, Unspecified Version)'],
    [
      'Google Inc. (Apple)',
      'ANGLE (Apple, ANGLE Metal Renderer: Apple M1 Pro, Unspecified Version)',
    ],
  ],
  fonts: ['Arial', 'Avenir', 'Geneva', 'Helvetica Neue', 'Menlo', 'Monaco', 'San Francisco'],
}
const appleGpu = [['Apple Inc.', 'Apple GPU']] as const
const iphone: Omit<Machine, 'hintsPlatform'> = {
  client: 'web',
  mobile: true,
  platform: 'iPhone',
  screens: [
    [390, 844, 3],
    [393, 852, 3],
    [430, 932, 3],
  ],
  gpus: appleGpu,
  fonts: mac.fonts,
}
const phone: Machine = {
  client: 'web',
  mobile: true,
  platform: 'Linux armv81',
  hintsPlatform: 'Android',
  screens: [
    [412, 915, 2.625],
    [384, 832, 2.8125],
    [360, 800, 3],
  ],
  gpus: [
    ['Qualcomm', 'Adreno (TM) 740'],
    ['ARM', 'Mali-G715'],
    ['Qualcomm', 'Adreno (TM) 650'],
  ],
  fonts: ['Roboto', 'Noto Sans', 'Droid Sans Mono'],
}

const chrome = 'AppleWebKit/537.36 (KHTML, like Gecko) Chrome/{v}.0.0.0'
const safari = 'AppleWebKit/605.1.15 (KHTML, like Gecko) Version/{v}.5'
const userAgents = {
  windows: `Mozilla/5.0 (Windows NT 10.0; Win64; x64) ${chrome} Safari/537.36`,
  mac: `Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) ${chrome} Safari/537.36`,
  linux: `Mozilla/5.0 (X11; Linux x86_64) ${chrome} Safari/537.36`,
  firefox: 'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:{v}.0) Gecko/20100101 Firefox/{v}.0',
  safari: `Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) ${safari} Safari/605.1.15`,
  iphone: `Mozilla/5.0 (iPhone; CPU iPhone OS {v}_5 like Mac OS X) ${safari} Mobile/15E148 Safari/604.1`,
  android: `Mozilla/5.0 (Linux; Android 10; K) ${chrome} Mobile Safari/537.36`,
  iosApp: 'Shop/4.2 CFNetwork/1568.100.1 Darwin/24.5.0',
  androidApp: 'Shop/4.2 (Android 15; okhttp 4.12.0)',
}
const edge = { brand: 'Microsoft Edge', userAgent: `${userAgents.windows} Edg/{v}.0.0.0` }

/** Device families and their weights, with values that browsers reported in 2025. */
export const families: readonly (readonly [DeviceFamily, number])[] = [
  [{ ...windows, ...chromium, name: 'chrome-windows', userAgent: userAgents.windows }, 30],
  [{ ...windows, ...chromium, name: 'edge-windows', ...edge }, 10],
  [{ ...mac, ...chromium, name: 'chrome-macos', userAgent: userAgents.mac }, 12],
  [{ ...linux, ...chromium, name: 'chrome-linux', userAgent: userAgents.linux }, 4],
  [{ ...windows, ...gecko, name: 'firefox-windows', userAgent: userAgents.firefox }, 6],
  [{ ...mac, ...webkit, name: 'safari-macos', userAgent: userAgents.safari, gpus: appleGpu }, 10],
  [{ ...iphone, ...webkit, name: 'safari-iphone', userAgent: userAgents.iphone }, 15],
  [{ ...phone, ...chromium, name: 'chrome-android', userAgent: userAgents.android }, 13],
  [{ ...iphone, ...webkit, name: 'app-iphone', client: 'ios', userAgent: userAgents.iosApp }, 1],
  [
    {
      ...phone,
      ...chromium,
      ...noHints,
      name: 'app-android',
      client: 'android',
      userAgent: userAgents.androidApp,
    },
    1,
  ],
]
