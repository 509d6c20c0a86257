import type { Snapshot } from '../../../../schemas/observations.ts'
import { hashJson, hashOrNull } from '../hashes.ts'
import { tryOrNull, withTimeoutOrNull } from '../support.ts'

/** Collects the speech voices and the hash of a rendered sound, which is not played. Rendering may take `ms`. */
export async function collectAudio(ms: number): Promise<Snapshot['audio']> {
  const [rendered, voices] = await Promise.all([
    withTimeoutOrNull(ms, render),
    withTimeoutOrNull(350, loadVoices),
  ])
  const list = voices ?? tryOrNull(() => speechSynthesis.getVoices())
  return {
    hash:
      rendered && (await hashOrNull(() => Array.from(rendered.getChannelData(0).subarray(4500)))),
    sample_rate: rendered?.sampleRate ?? null,
    channel_count: rendered?.numberOfChannels ?? null,
    voice_count: list?.length ?? null,
    local_voice_count: list?.filter((voice) => voice.localService).length ?? null,
    default_voice_lang: list?.find((voice) => voice.default)?.lang ?? null,
    noise_detected: rendered && tryOrNull(() => hasNoise(rendered)),
  }
}

function render(): Promise<AudioBuffer> {
  const context = new OfflineAudioContext(1, 5000, 44100)
  const oscillator = new OscillatorNode(context, { type: 'triangle', frequency: 10000 })
  const compressor = new DynamicsCompressorNode(context, {
    threshold: -50,
    knee: 40,
    ratio: 12,
    attack: 0,
    release: 0.25,
  })
  oscillator.connect(compressor).connect(context.destination)
  oscillator.start(0)
  return context.startRendering()
}

// Detects noise added by the browser or an extension: two ways to read the same samples must agree.
function hasNoise(buffer: AudioBuffer): boolean {
  const copied = new Float32Array(buffer.length)
  buffer.copyFromChannel(copied, 0)
  const direct = buffer.getChannelData(0)
  return copied.some((value, i) => value !== direct[i])
}

// Never resolves if there are no voices, so the caller needs a timeout. The first `voiceschanged` may come with an
// empty list; in Chromium on desktop Linux, this list is final.
function loadVoices(): Promise<SpeechSynthesisVoice[]> {
  const isEmptyListFinal = /X11; Linux.*Chrome/.test(navigator.userAgent)
  return new Promise((resolve) => {
    const check = (event?: Event) => {
      const voices = speechSynthesis.getVoices()
      if (voices.length > 0 || (event && isEmptyListFinal)) resolve(voices)
      return voices.length > 0
    }
    if (!check()) speechSynthesis.addEventListener('voiceschanged', check, { once: true })
  })
}

export async function collectMedia(): Promise<Snapshot['media']> {
  const devices = await navigator.mediaDevices.enumerateDevices()
  const counts: Record<string, number> = {}
  for (const { kind } of devices) counts[kind] = (counts[kind] ?? 0) + 1
  return {
    device_count: devices.length,
    counts_by_kind: counts,
    blank_label_count: devices.filter(({ label }) => label === '').length,
    topology_hash: await hashJson(devices.map(({ kind, groupId }) => [kind, groupId !== ''])),
  }
}
