import { type Snapshot, snapshotSchema } from '../../../../schemas/observations.ts'
import type { DeviceFamily } from './families.ts'
import { hardwareOf, nativeOf } from './hardware.ts'
import type { SeededRandom } from './random.ts'

/** Returns the snapshot of a device in the family, without traces of automation. */
export function deviceSnapshot(family: DeviceFamily, random: SeededRandom): Snapshot {
  return snapshotSchema.parse(
    family.client === 'web' ? browserOf(family, random) : appOf(family, random),
  )
}

function browserOf(family: DeviceFamily, random: SeededRandom) {
  const navigator = navigatorOf(family, random)
  const gpu = random.pick(family.gpus)
  const { languages, ...zone } = random.pick(family.locales)
  const { user_agent, platform, hardware_concurrency } = navigator
  const realm = { available: true, user_agent, platform, languages, hardware_concurrency }
  return {
    navigator: { ...navigator, language: languages[0], languages },
    environment: { ...windowOf(family, random), ...zone },
    automation: noAutomation,
    tamper: noTamper,
    engine: engineOf(family),
    worker: { ...realm, webgl_renderer: gpu[1] },
    iframe: { ...realm, webgl_renderer: null },
    storage: allStorage,
    ...hardwareOf(family, gpu, random),
  }
}

function appOf(family: DeviceFamily, random: SeededRandom) {
  const { languages, ...zone } = random.pick(family.locales)
  const [width, height, ratio] = random.pick(family.screens)
  return {
    navigator: {
      user_agent: family.userAgent,
      language: languages[0],
      languages,
      hardware_concurrency: 8,
    },
    environment: {
      screen_width: width,
      screen_height: height,
      pixel_ratio: ratio,
      color_depth: 24,
      ...zone,
    },
    native: nativeOf(family, random),
  }
}

const noAutomation = {
  webdriver: false,
  webdriver_iframe: false,
  webdriver_worker: false,
  webdriver_own_property: false,
  globals: [],
  document_attributes: [],
  cdp_runtime: false,
  sequentum: false,
  electron: false,
}
const noTamper = {
  examined: 80,
  patched_functions: [],
  navigator_own_properties: [],
  iframe_srcdoc_proxy: false,
  chrome_runtime_faked: false,
  webgl_parameter_mismatch: false,
  timezone_mismatch: false,
  brave: false,
  timer_precision_reduced: false,
}
const allStorage = {
  cookies: true,
  local_storage: true,
  session_storage: true,
  indexed_db: true,
  service_worker: true,
  window_name: true,
}

function navigatorOf(family: DeviceFamily, random: SeededRandom) {
  const version = random.pick(family.versions)
  const userAgent = family.userAgent.replaceAll('{v}', String(version))
  return {
    user_agent: userAgent,
    app_version: userAgent.replace('Mozilla/', ''),
    platform: family.platform,
    vendor: family.vendor,
    product_sub: family.engine === 'SpiderMonkey' ? '20100101' : '20030107',
    hardware_concurrency: random.pick(family.mobile ? [6, 8] : [4, 8, 12, 16]),
    device_memory: family.engine === 'V8' ? random.pick([4, 8]) : null,
    max_touch_points: family.mobile ? 5 : 0,
    pdf_viewer_enabled: !family.mobile,
    cookie_enabled: true,
    mime_types_count: family.mobile ? 0 : 2,
    plugins: family.mobile ? [] : ['PDF Viewer', 'Chrome PDF Viewer', 'Chromium PDF Viewer'],
    plugins_genuine: true,
    connection_rtt: family.engine === 'V8' ? random.pick([50, 100, 150]) : null,
    ...hintsOf(family, String(version)),
  }
}

function hintsOf({ brand, hintsPlatform, mobile }: DeviceFamily, version: string) {
  if (!brand || !hintsPlatform) return {}
  return {
    brands: [
      { brand: 'Chromium', version },
      { brand, version },
      { brand: 'Not;A=Brand', version: '99' },
    ],
    ua_data_platform: hintsPlatform,
    ua_data_platform_version: '15.0.0',
    ua_data_architecture: mobile ? '' : 'x86',
    ua_data_model: mobile ? 'Pixel 8' : '',
    ua_data_mobile: mobile,
    ua_full_version: `${version}.0.7204.100`,
  }
}

function windowOf({ screens, mobile, engine }: DeviceFamily, random: SeededRandom) {
  const [width, height, ratio] = random.pick(screens)
  const available = mobile ? height : height - 40
  return {
    screen_width: width,
    screen_height: height,
    avail_width: width,
    avail_height: available,
    outer_width: width,
    outer_height: available,
    inner_width: mobile ? width : width - 15,
    // The browser's toolbars take the rest.
    inner_height: available - (mobile ? 110 : random.int(74, 120)),
    color_depth: 24,
    pixel_ratio: ratio,
    orientation_type: mobile ? 'portrait-primary' : 'landscape-primary',
    has_focus: true,
    pointer_coarse: mobile,
    has_chrome_object: engine === 'V8' && !mobile,
    notification_permission: 'default',
    permissions_query_state: 'prompt',
  }
}

const nullMessages = {
  V8: "Cannot read properties of null (reading 'x')",
  SpiderMonkey: 'can\'t access property "x" of null',
  JavaScriptCore: "null is not an object (evaluating 'null.x')",
}

function engineOf({ engine }: DeviceFamily) {
  return {
    name: engine,
    eval_length: engine === 'V8' ? 33 : 37,
    null_property_message: nullMessages[engine],
  }
}
