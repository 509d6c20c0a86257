import type { DeviceFamily } from './families.ts'
import type { SeededRandom } from './random.ts'

/** Returns the hardware and software groups of a browser's observation snapshot. */
export function hardwareOf(
  family: DeviceFamily,
  gpu: DeviceFamily['gpus'][number],
  random: SeededRandom,
) {
  return {
    capabilities: {
      touch: family.mobile,
      webgpu: family.engine === 'V8',
      platform_authenticator: random.chance(0.8),
      conditional_mediation: true,
      media_devices: true,
      speech_synthesis: true,
    },
    canvas: canvasOf(random),
    webgl: webglOf(gpu, random),
    webgpu: webgpuOf(family, random),
    audio: audioOf(random),
    fonts: fontsOf(family, random),
    media: mediaOf(family, random),
  }
}

const canvasOf = (random: SeededRandom) => ({
  hash: random.hash(),
  geometry_hash: random.hash(),
  text_hash: random.hash(),
  winding: true,
  noise_detected: false,
  offscreen_consistent: true,
})

const webglOf = ([vendor, renderer]: DeviceFamily['gpus'][number], random: SeededRandom) => ({
  vendor,
  renderer,
  version: 'WebGL 2.0 (OpenGL ES 3.0 Chromium)',
  shading_language_version: 'WebGL GLSL ES 3.00 (OpenGL ES GLSL ES 3.0 Chromium)',
  parameters_hash: random.hash(),
  extensions_hash: random.hash(),
  extension_parameters_hash: random.hash(),
  shader_precision_hash: random.hash(),
})

function webgpuOf({ engine, mobile }: DeviceFamily, random: SeededRandom) {
  if (engine !== 'V8') return { available: false }
  return {
    available: true,
    adapter_vendor: mobile ? 'qualcomm' : 'intel',
    adapter_architecture: mobile ? 'adreno-7xx' : 'gen-12lp',
    fallback_adapter: false,
    features_hash: random.hash(),
    limits_hash: random.hash(),
  }
}

function audioOf(random: SeededRandom) {
  const voices = random.int(5, 180)
  return {
    hash: random.hash(),
    sample_rate: random.pick([44_100, 48_000]),
    channel_count: 2,
    voice_count: voices,
    local_voice_count: Math.ceil(voices / 2),
    default_voice_lang: 'en-US',
    noise_detected: false,
  }
}

function fontsOf(family: DeviceFamily, random: SeededRandom) {
  const detected = family.fonts.filter(() => random.chance(0.9))
  return {
    detected_count: detected.length,
    tested_count: 60,
    detected,
    enumeration_hash: random.hash(),
    metrics_hash: random.hash(),
    preferences_hash: random.hash(),
    emoji_hash: random.hash(),
  }
}

function mediaOf(family: DeviceFamily, random: SeededRandom) {
  const cameras = family.mobile ? 2 : random.int(0, 1)
  return {
    device_count: cameras + 2,
    counts_by_kind: { audioinput: 1, audiooutput: 1, videoinput: cameras },
    blank_label_count: cameras + 2,
    topology_hash: random.hash(),
  }
}

/** Returns the device data that a native app reports. */
export function nativeOf({ client }: DeviceFamily, random: SeededRandom) {
  const phone =
    client === 'ios'
      ? {
          device_model: random.pick(['iPhone15,2', 'iPhone16,1']),
          os_name: 'iOS',
          os_version: '18.5',
        }
      : { device_model: random.pick(['Pixel 8', 'SM-S921B']), os_name: 'Android', os_version: '15' }
  return {
    ...phone,
    architecture: 'arm64',
    install_id: random.hash(32),
    bundle_id: 'com.example.shop',
    app_version: '4.2.0',
    app_build: '4200',
    carrier_name: random.pick(['Example Mobile', 'Sample Telecom']),
    country_iso: 'de',
    jailbreak_or_root: false,
    hooks: false,
    debugger: false,
    simulator_or_emulator: false,
    code_signing_invalid: false,
  }
}
