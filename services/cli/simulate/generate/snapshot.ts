import { type Snapshot, snapshotSchema } from '../../../../schemas/observations.ts'
import type { DeviceFamily } from './families.ts'
import {
  audioOf,
  canvasOf,
  capabilitiesOf,
  fontsOf,
  mediaOf,
  nativeOf,
  webglOf,
  webgpuOf,
} from './hardware.ts'
import type { SeededRandom } from './random.ts'

const nullMessages = {
  V8: "Cannot read properties of null (reading 'x')",
  SpiderMonkey: 'can\'t access property "x" of null',
  JavaScriptCore: "null is not an object (evaluating 'null.x')",
}

export function deviceSnapshot(family: DeviceFamily, random: SeededRandom): Snapshot {
  return family.client === 'web' ? browserSnapshot(family, random) : appSnapshot(family, random)
}

function browserSnapshot(family: DeviceFamily, random: SeededRandom): Snapshot {
  const navigator = navigatorOf(family, random)
  const gpu = random.pick(family.gpus)
  const { languages, ...zone } = random.pick(family.places)
  const realm = realmOf(navigator, gpu, languages)
  return snapshotSchema.parse({
    navigator: { ...navigator, language: languages[0], languages },
    environment: { ...windowOf(family, random), ...zone },
    automation: { webdriver: false, webdriver_iframe: false, webdriver_worker: false, ...quietAutomation },
    tamper: { ...quietTamper, timer_precision_reduced: false },
    engine: engineOf(family),
    worker: realm,
    iframe: { ...realm, webgl_renderer: null },
    storage: allStorage,
    capabilities: capabilitiesOf(family, random),
    canvas: canvasOf(random),
    webgl: webglOf(gpu, random),
    webgpu: webgpuOf(family, random),
    audio: audioOf(random),
    fonts: fontsOf(family, random),
    media: mediaOf(family, random),
  })
}

function appSnapshot(family: DeviceFamily, random: SeededRandom): Snapshot {
  const { languages, ...zone } = random.pick(family.places)
  const [width, height, ratio] = random.pick(family.screens)
  return snapshotSchema.parse({
    navigator: { user_agent: family.userAgent, language: languages[0], languages, hardware_concurrency: 8 },
    environment: { screen_width: width, screen_height: height, pixel_ratio: ratio, color_depth: 24, ...zone },
    native: nativeOf(family, random),
  })
}

const quietAutomation = {
  webdriver_own_property: false,
  globals: [],
  document_attributes: [],
  cdp_runtime: false,
  sequentum: false,
  electron: false,
}
const quietTamper = {
  examined: 80,
  patched_functions: [],
  navigator_own_properties: [],
  iframe_srcdoc_proxy: false,
  chrome_runtime_faked: false,
  webgl_parameter_mismatch: false,
  timezone_mismatch: false,
  brave: false,
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
  const plugins = family.mobile ? [] : ['PDF Viewer', 'Chrome PDF Viewer', 'Chromium PDF Viewer']
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
    plugins,
    plugins_genuine: true,
    connection_rtt: family.engine === 'V8' ? random.pick([50, 100, 150]) : null,
    ...hintsOf(family, version),
  }
}

function hintsOf({ brand, hintsPlatform, mobile }: DeviceFamily, version: number) {
  if (!brand || !hintsPlatform) return {}
  const text = String(version)
  return {
    brands: [
      { brand: 'Chromium', version: text },
      { brand, version: text },
      { brand: 'Not;A=Brand', version: '99' },
    ],
    ua_data_platform: hintsPlatform,
    ua_data_platform_version: '15.0.0',
    ua_data_architecture: mobile ? '' : 'x86',
    ua_data_model: mobile ? 'Pixel 8' : '',
    ua_data_mobile: mobile,
    ua_full_version: `${text}.0.7204.100`,
  }
}

function windowOf(family: DeviceFamily, random: SeededRandom) {
  const [width, height, ratio] = random.pick(family.screens)
  const chrome = family.mobile ? 0 : random.int(74, 120)
  return {
    screen_width: width,
    screen_height: height,
    avail_width: width,
    avail_height: family.mobile ? height : height - 40,
    outer_width: width,
    outer_height: family.mobile ? height : height - 40,
    inner_width: family.mobile ? width : width - 15,
    inner_height: family.mobile ? height - 110 : height - 40 - chrome,
    color_depth: 24,
    pixel_ratio: ratio,
    orientation_type: family.mobile ? 'portrait-primary' : 'landscape-primary',
    has_focus: true,
    pointer_coarse: family.mobile,
    has_chrome_object: family.engine === 'V8' && !family.mobile,
    notification_permission: 'default',
    permissions_query_state: 'prompt',
  }
}

type NavigatorValues = ReturnType<typeof navigatorOf>

function realmOf(navigator: NavigatorValues, gpu: readonly [string, string], languages: readonly string[]) {
  return {
    available: true,
    user_agent: navigator.user_agent,
    platform: navigator.platform,
    languages,
    hardware_concurrency: navigator.hardware_concurrency,
    webgl_renderer: gpu[1],
  }
}

function engineOf({ engine }: DeviceFamily) {
  return { name: engine, eval_length: engine === 'V8' ? 33 : 37, null_property_message: nullMessages[engine] }
}
