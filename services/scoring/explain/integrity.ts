import type { IntegrityLevel, Manipulation, RuntimeIntegrity } from '../../../schemas/events.ts'
import type { Facts } from '../facts.ts'
import type { Signal } from '../signals/signal.ts'

/** Which signals speak to which question, by slug. */
const questions: Record<keyof RuntimeIntegrity, string[]> = {
  tampering_detected: [
    'webdriver_property_overridden',
    'navigator_overridden',
    'patched_stealth_functions',
    'patched_functions',
    'stealth_iframe_proxy',
    'faked_chrome_runtime',
    'imitated_plugins',
    'webgl_parameters_spoofed',
    'fingerprint_noise',
    'native_hooks',
    'native_code_signing_invalid',
    'native_jailbreak_or_root',
  ],
  developer_tools_detected: ['developer_tools_detected', 'cdp_driven_input', 'native_debugger'],
  emulation_suspected: [
    'phone_without_touch',
    'native_emulator',
    'product_sub_mismatch',
    'gpu_system_mismatch',
  ],
  virtualization_suspected: ['software_rendered_graphics_path', 'bare_machine', 'very_many_cores'],
  privacy_hardening_suspected: ['privacy_hardening_indicators'],
  identity_spoofing_suspected: [
    'engine_mismatch',
    'platform_mismatch',
    'worker_mismatch',
    'iframe_mismatch',
    'user_agent_header_mismatch',
    'client_hints_mismatch',
    'impossible_device_memory',
    'session_identity_changed',
    'timezone_contradiction',
  ],
  replay_suspected: ['stale_snapshot', 'conflicting_replay'],
  outdated_environment: [],
  verified_bot_identity: [],
}

/** The earliest Chromium, Firefox and Safari that are not called outdated: about three years old. */
const oldestCurrent: Record<string, number> = { blink: 110, gecko: 110, webkit: 15 }

/** How sure the evidence makes one of each trait of the runtime. */
export function runtimeIntegrityOf(fired: Signal[], facts: Facts): RuntimeIntegrity {
  const level = (question: keyof RuntimeIntegrity) =>
    levelOf(fired.filter(({ slug }) => questions[question].includes(slug)))
  return {
    tampering_detected: level('tampering_detected'),
    developer_tools_detected: level('developer_tools_detected'),
    emulation_suspected: level('emulation_suspected'),
    virtualization_suspected: level('virtualization_suspected'),
    privacy_hardening_suspected: level('privacy_hardening_suspected') === 'clean' ? 'clean' : 'notice',
    identity_spoofing_suspected: level('identity_spoofing_suspected'),
    replay_suspected: level('replay_suspected'),
    outdated_environment: isOutdated(facts) ? 'notice' : 'clean',
    // Web Bot Auth signatures are not checked, so that no identity is ever verified.
    verified_bot_identity: 'clean',
  }
}

function levelOf(signals: Signal[]): IntegrityLevel {
  const has = (strength: Signal['strength']) => signals.some((signal) => signal.strength === strength)
  const strong = signals.filter(({ strength }) => strength === 'strong').length
  if (has('definitive') || strong >= 2) return 'high_risk'
  if (strong === 1) return 'elevated'
  return signals.length > 0 ? 'notice' : 'clean'
}

function isOutdated({ agent, snapshot }: Facts): boolean {
  const oldest = oldestCurrent[agent.engine]
  const major = Number(agent.major)
  // Outside Safari the version of a WebKit browser is its own, not that of the engine.
  if (agent.engine === 'webkit' && agent.browser !== 'Safari') return false
  return snapshot !== null && oldest !== undefined && major > 0 && major < oldest
}

const manipulationSlugs = [
  ...questions.tampering_detected,
  ...questions.replay_suspected,
  'session_identity_changed',
]

/** How far the client was manipulated: 0 none, 1-33 low, 34-66 medium, 67-100 high; null without a snapshot. */
export function manipulationOf(fired: Signal[], facts: Facts): Manipulation | null {
  if (!facts.snapshot) return null
  const signals = fired.filter(({ slug, role }) => role === 'risk' && manipulationSlugs.includes(slug))
  const doubt = signals.reduce((left, { score }) => left * (1 - score / 100), 1)
  const score = Math.round(100 * (1 - doubt))
  return { score, verdict: manipulationVerdict(score) }
}

export function manipulationVerdict(score: number): Manipulation['verdict'] {
  if (score === 0) return 'none'
  if (score <= 33) return 'low'
  return score <= 66 ? 'medium' : 'high'
}
