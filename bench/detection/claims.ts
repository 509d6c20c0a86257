import { type DeviceFamily, families } from '../../services/cli/simulate/generate/families.ts'

const familyOf = (name: string): DeviceFamily => {
  const [family] = families.find(([{ name: other }]) => other === name) ?? []
  if (!family) throw new Error(`the generator has no ${name}`)
  return family
}

const safari = familyOf('safari-macos')
const iphone = familyOf('safari-iphone')
const windows = familyOf('chrome-windows')
const linux = familyOf('chrome-linux')
const android = familyOf('chrome-android')
const { engine, vendor, brand, hintsPlatform } = familyOf('firefox-windows')
const gecko = { engine, vendor, brand, hintsPlatform }

const gtk =
  'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/{v}.5 Safari/605.1.15'
const webView =
  'Mozilla/5.0 (iPhone; CPU iPhone OS {v}_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148'
const samsung =
  'Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/28.0 Chrome/{v}.0.0.0 Mobile Safari/537.36'

/** Device families that forgers claim. */
export const claims: Record<string, DeviceFamily> = {
  iphone,
  // Safari on an iPad requests desktop pages and claims to run on a Mac.
  ipad: { ...safari, mobile: true, screens: [[820, 1180, 2]] },
  'mac-safari': safari,
  'ios-web-view': { ...iphone, userAgent: webView },
  webkitgtk: {
    ...safari,
    userAgent: gtk,
    versions: [60],
    platform: 'Linux x86_64',
    fonts: linux.fonts,
  },
  'firefox-android': {
    ...android,
    ...gecko,
    versions: [153],
    userAgent: 'Mozilla/5.0 (Android 15; Mobile; rv:{v}.0) Gecko/{v}.0 Firefox/{v}.0',
  },
  samsung: { ...android, brand: 'Samsung Internet', userAgent: samsung, versions: [136] },
  opera: {
    ...windows,
    brand: 'Opera',
    userAgent: `${windows.userAgent} OPR/140.0.0.0`,
    versions: [156],
  },
  chrome: { ...linux, versions: [156] },
  'chrome-old': { ...windows, versions: [109] },
  'chrome-future': { ...windows, versions: [175] },
}
