import type { Facts } from '../facts.ts'
import { browser, type Signal } from './signal.ts'

const base = { family: 'machine', role: 'risk', category: 'fingerprint', strength: 'weak' } as const

const software = /swiftshader|llvmpipe|softpipe|mesa offscreen|software|basic render|microsoft basic/i
const memorySizes = [0.25, 0.5, 1, 2, 4, 8, 16, 32, 64]

export function isSoftwareRendered({ snapshot }: Facts): boolean {
  return snapshot !== null && software.test(`${snapshot.webgl.vendor ?? ''} ${snapshot.webgl.renderer ?? ''}`)
}

/** How many of the things that nearly every personal desktop has are known to be absent. */
function absences({ snapshot, agent }: Facts): number {
  if (!snapshot) return 0
  const { navigator, fonts, media, audio } = snapshot
  const chromium = agent.engine === 'blink' && agent.formFactor === 'desktop'
  return [
    chromium && navigator.pdf_viewer_enabled !== null && navigator.plugins.length === 0,
    fonts.detected_count !== null && fonts.detected_count < 4,
    media.device_count === 0,
    audio.voice_count === 0,
  ].filter(Boolean).length
}

/** Traits of machines that nobody sits at. Together they stay below a bot: thin clients and virtual desktops look the same. */
export const machineSignals: Signal[] = [
  {
    ...base,
    slug: 'software_rendered_graphics_path',
    name: 'Software-rendered graphics',
    score: 16,
    looksAt: 'the WebGL renderer is SwiftShader, llvmpipe or another software rasteriser',
    falsePositives: 'virtual machines, remote desktops, blocklisted GPU drivers',
    fires: isSoftwareRendered,
  },
  {
    ...base,
    slug: 'utc_timezone',
    name: 'Clock set to UTC',
    score: 8,
    looksAt: 'the time zone is UTC',
    falsePositives: 'people in UTC, privacy browsers (not counted), servers used as desktops',
    fires: browser(
      (s, { privacyTool }) =>
        !privacyTool && /^(UTC|Etc\/UTC|Etc\/GMT|GMT|Etc\/UCT)$/.test(s.environment.timezone ?? ''),
    ),
  },
  {
    ...base,
    slug: 'bare_machine',
    name: 'Bare machine',
    score: 14,
    looksAt: 'at least two of: no plugins in desktop Chromium, hardly any fonts, no media devices, no voices',
    falsePositives: 'fresh installs, virtual desktops, the "download PDFs" setting',
    fires: browser((_, facts) => !facts.privacyTool && absences(facts) >= 2),
  },
  {
    ...base,
    slug: 'very_many_cores',
    name: 'Very many processor cores',
    score: 8,
    looksAt: 'more than 64 logical processors',
    falsePositives: 'large workstations',
    fires: browser((s) => (s.navigator.hardware_concurrency ?? 0) > 64),
  },
  {
    ...base,
    slug: 'impossible_device_memory',
    name: 'Impossible amount of memory',
    strength: 'strong',
    score: 45,
    looksAt: '`navigator.deviceMemory` is not one of the rounded values that browsers report',
    falsePositives: 'none known',
    fires: browser(
      (s) => s.navigator.device_memory !== null && !memorySizes.includes(s.navigator.device_memory),
    ),
  },
]
