import type {
  IntegrityLevel,
  Manipulation,
  RuntimeIntegrity,
  SessionAgent,
} from '../../../schemas/events.ts'
import type { Facts } from '../session/facts.ts'
import type { Slug } from '../signals/catalogue.ts'
import type { FiredSignal } from '../signals/evaluate.ts'

// Signals by the member of `runtime_integrity` that they affect.
const signalsByMember: Record<keyof RuntimeIntegrity, Slug[]> = {
  tampering_detected: [
    'webdriver_property_overridden',
    'navigator_overridden',
    'patched_stealth_functions',
    'patched_functions',
    'rewritten_primitives',
    'rewritten_navigator',
    'stealth_iframe_proxy',
    'faked_chrome_runtime',
    'imitated_plugins',
    'native_claims_in_browser',
    'webgl_parameters_spoofed',
    'fingerprint_noise',
    'native_hooks',
    'native_code_signing_invalid',
    'native_jailbreak_or_root',
    'device_not_trusted',
  ],
  developer_tools_detected: [
    'developer_tools_detected',
    'debugged_before_input',
    'cdp_driven_input',
    'native_debugger',
  ],
  emulation_suspected: [
    'phone_without_touch',
    'phone_with_desktop_graphics',
    'phone_on_desktop_system',
    'phone_with_computer_parts',
    'emulated_touch',
    'mouse_on_phone',
    'keyboard_on_phone',
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
    'browser_with_tool_handshake',
    'impossible_device_memory',
    'apple_device_contradicted',
    'user_agent_replaced',
    'session_identity_changed',
    'kept_id_of_another_device',
    'timezone_contradiction',
    'realm_differences',
    'native_observations_missing',
    'browser_user_agent_in_app',
    'attestation_invalid',
    'attestation_counter',
  ],
  replay_suspected: [
    'stale_snapshot',
    'proofs_missing',
    'conflicting_replay',
    'replayed_behavior',
    'replayed_session',
    'nearly_replayed_behavior',
    'nearly_replayed_session',
  ],
  outdated_environment: [],
  verified_bot_identity: [],
}

// Oldest versions of Chromium, Firefox and Safari that don't count as outdated: about three years old.
const oldestCurrent: Record<string, number> = { blink: 110, gecko: 110, webkit: 15 }

export function runtimeIntegrityOf(fired: FiredSignal[], facts: Facts): RuntimeIntegrity {
  const level = (name: keyof RuntimeIntegrity) =>
    levelOf(fired.filter(({ slug }) => signalsByMember[name].includes(slug)))
  return {
    tampering_detected: level('tampering_detected'),
    developer_tools_detected: level('developer_tools_detected'),
    emulation_suspected: level('emulation_suspected'),
    virtualization_suspected: level('virtualization_suspected'),
    privacy_hardening_suspected:
      level('privacy_hardening_suspected') === 'clean' ? 'clean' : 'notice',
    identity_spoofing_suspected: level('identity_spoofing_suspected'),
    replay_suspected: level('replay_suspected'),
    outdated_environment: isOutdated(facts) ? 'notice' : 'clean',
    verified_bot_identity: identityLevels[facts.identity.status],
  }
}

const identityLevels: Record<SessionAgent['status'], IntegrityLevel> = {
  none: 'clean',
  verified: 'clean',
  signed: 'notice',
  declared: 'notice',
  spoofed: 'high_risk',
}

function levelOf(signals: FiredSignal[]): IntegrityLevel {
  const has = (strength: FiredSignal['strength']) =>
    signals.some((signal) => signal.strength === strength)
  const strong = signals.filter(({ strength }) => strength === 'strong').length
  if (has('definitive') || strong >= 2) return 'high_risk'
  if (strong === 1) return 'elevated'
  return signals.length > 0 ? 'notice' : 'clean'
}

/** Returns true if the engine's version is known, so that its age can be judged. */
export function hasKnownAge({ agent, snapshot }: Facts): boolean {
  // WebKit browsers other than Safari have version numbers that don't follow the engine.
  if (agent.engine === 'webkit' && agent.browser !== 'Safari') return false
  return snapshot !== null && agent.engine in oldestCurrent && Number(agent.major) > 0
}

function isOutdated(facts: Facts): boolean {
  const oldest = oldestCurrent[facts.agent.engine] ?? 0
  return hasKnownAge(facts) && Number(facts.agent.major) < oldest
}

const manipulationSlugs: Slug[] = [
  ...signalsByMember.tampering_detected,
  ...signalsByMember.replay_suspected,
  'session_identity_changed',
]

/** Returns the degree of manipulation: 0 none, 1-33 low, 34-66 medium, 67-100 high. Null without a snapshot. */
export function manipulationOf(fired: FiredSignal[], facts: Facts): Manipulation | null {
  if (!facts.snapshot) return null
  const signals = fired.filter(
    ({ slug, role }) => role === 'risk' && manipulationSlugs.includes(slug),
  )
  const remainder = signals.reduce((rest, { points }) => rest * (1 - points / 100), 1)
  const score = Math.round(100 * (1 - remainder))
  return { score, verdict: manipulationVerdict(score) }
}

export function manipulationVerdict(score: number): Manipulation['verdict'] {
  if (score === 0) return 'none'
  if (score <= 33) return 'low'
  return score <= 66 ? 'medium' : 'high'
}
