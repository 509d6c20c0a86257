import type { AddressNetwork, IpSource } from '../../../infra/ip/network.ts'
import type { RuntimeIntegrity, SessionEvidence, SessionScored } from '../../../schemas/events.ts'
import type { Snapshot } from '../../../schemas/observations.ts'
import type { NativeDetail } from '../device.ts'
import type { Facts } from '../session/facts.ts'
import { hasKnownAge } from './findings.ts'

export type ScoredMembers = NativeDetail & Pick<SessionScored, 'runtime_integrity' | 'visitor'>

/**
 * Returns the evidence behind a decision. `unchecked`: fields that are clean only because nothing checked them, those of
 * `runtime_integrity` by name and others by path. Null fields are left out. `claimed`: fields that only the app reports.
 */
export function evidenceOf(facts: Facts, members: ScoredMembers): SessionEvidence {
  return {
    sources: sourcesOf(facts, members),
    unchecked: [
      ...uncheckedRuntime(facts, members.runtime_integrity),
      ...(facts.isMinimal ? minimalModeOmissions : []),
      ...uncheckedNetwork(facts.network),
      ...uncheckedNative(facts, members.native_runtime_integrity),
      ...(facts.platform === 'web' || wasAttested(facts) ? [] : ['attestation']),
    ],
    missing: facts.missing,
    withheld: facts.withheld,
    impossible: facts.impossible,
    claimed: claimedOf(members),
  }
}

const wasAttested = ({ attestation }: Facts) =>
  ['valid', 'invalid'].includes(attestation?.status ?? '')

function sourcesOf(facts: Facts, { visitor }: ScoredMembers): string[] {
  const { snapshot, hasInput, document, network, answers, identity } = facts
  const isCompared = answers.engine === 'as_claimed' || answers.engine === 'contradicted'
  const consulted = {
    request_headers: document !== null,
    snapshot: snapshot !== null,
    native_observations: (snapshot?.native ?? null) !== null,
    behavior: hasInput,
    visitor_history: visitor !== null,
    recorded_answers: isCompared && answers.judgedBy === 'recorded',
    learned_answers: answers.judgedBy === 'learned',
    simulated_answers: answers.judgedBy === 'simulated',
    published_ranges: (identity.evidence?.list ?? null) !== null,
    reverse_dns:
      identity.method === 'reverse_dns' || (identity.evidence?.host_name ?? null) !== null,
    signature_directory: identity.method === 'signature',
    attestation: wasAttested(facts),
  }
  const names = Object.entries(consulted).flatMap(([name, isUsed]) => (isUsed ? [name] : []))
  return [...names, ...network.sources]
}

const minimalModeOmissions = ['canvas', 'graphics', 'audio', 'fonts', 'media'].map(
  (name) => `client_telemetry.${name}`,
)

type Native = NonNullable<Snapshot['native']>
type RuntimeName = keyof RuntimeIntegrity

const noObservations = () => []

// Observations that must all be present for a member to count as checked, in pages and in apps. Leaves out observations
// that some browsers lack, such as `deviceMemory`.
const requiredObservations: Record<
  Exclude<RuntimeName, 'outdated_environment'>,
  {
    page(snapshot: Snapshot, facts: Facts): unknown[]
    app(native: Native, facts: Facts): unknown[]
  }
> = {
  tampering_detected: {
    page: ({ automation, tamper, navigator, canvas, audio, environment }) => [
      automation.webdriver_own_property,
      tamper.examined,
      tamper.iframe_srcdoc_proxy,
      tamper.webgl_parameter_mismatch,
      // Without `window.chrome` there is nothing to fake.
      environment.has_chrome_object === false || tamper.chrome_runtime_faked,
      navigator.plugins_genuine,
      canvas.noise_detected,
      audio.noise_detected,
    ],
    app: (native) => [native.hooks, native.code_signing_invalid, native.jailbreak_or_root],
  },
  developer_tools_detected: {
    page: ({ automation }) => [automation.cdp_runtime],
    app: (native) => [native.debugger],
  },
  emulation_suspected: {
    page: ({ navigator, webgl, worker, iframe, environment }) => [
      navigator.user_agent,
      navigator.platform,
      navigator.max_touch_points,
      navigator.product_sub,
      environment.pointer_coarse,
      webgl.renderer,
      worker.platform,
      iframe.platform,
    ],
    app: (native) => [native.simulator_or_emulator],
  },
  virtualization_suspected: {
    page: ({ webgl, navigator, fonts, audio, media }) => [
      webgl.renderer,
      navigator.hardware_concurrency,
      fonts.detected_count,
      audio.voice_count,
      media.device_count,
    ],
    app: noObservations,
  },
  privacy_hardening_suspected: {
    page: ({ tamper, canvas, audio }) => [
      tamper.brave,
      canvas.noise_detected,
      audio.noise_detected,
    ],
    app: noObservations,
  },
  identity_spoofing_suspected: {
    page: ({ navigator, engine, worker, iframe, tamper }, { document }) => [
      navigator.user_agent,
      navigator.platform,
      engine.name,
      engine.eval_length,
      worker.user_agent,
      worker.platform,
      iframe.user_agent,
      iframe.platform,
      tamper.examined,
      tamper.timezone_mismatch,
      document,
    ],
    app: () => [true],
  },
  // Repeats are not counted for provisional decisions.
  replay_suspected: { page: (_, { repeats }) => [repeats], app: (_, { repeats }) => [repeats] },
  // An agent could have declared itself in any of these.
  verified_bot_identity: {
    page: ({ navigator, worker, iframe }, { document }) => [
      navigator.user_agent,
      worker.user_agent,
      iframe.user_agent,
      document,
    ],
    app: (_, { document }) => [document],
  },
}

function uncheckedRuntime(facts: Facts, levels: RuntimeIntegrity): string[] {
  const names = Object.keys(levels).filter((name): name is RuntimeName => name in levels)
  return names.filter((name) => levels[name] === 'clean' && !wasChecked(name, facts))
}

function wasChecked(name: RuntimeName, facts: Facts): boolean {
  if (name === 'outdated_environment') return hasKnownAge(facts)
  const { snapshot } = facts
  if (!snapshot) return false
  const { page, app } = requiredObservations[name]
  const values = snapshot.native ? app(snapshot.native, facts) : page(snapshot, facts)
  return values.length > 0 && values.every((value) => value !== null)
}

// Sources that can clear each flag. Address lists of VPNs and proxies are never complete, so only an anonymity database
// clears those. No source covers callback proxies.
const flagSources = {
  vpn: ['anonymity_database'],
  proxy: ['anonymity_database'],
  tor: ['anonymity_database', 'address_lists'],
  hosting: ['anonymity_database', 'address_lists'],
  residential_proxy: ['anonymity_database'],
  relay: ['address_lists'],
  callback_proxy: [],
} as const satisfies Partial<Record<keyof AddressNetwork['anonymity'], readonly IpSource[]>>
// Lists that no source fills completely.
const neverComplete = ['operator_tags', 'client_types'] as const

function uncheckedNetwork({ sources, anonymity, evidence }: AddressNetwork): string[] {
  const names = Object.keys(flagSources).filter(
    (name): name is keyof typeof flagSources => name in flagSources,
  )
  const wasChecked = (flag: keyof typeof flagSources) =>
    flagSources[flag].some((source) => sources.includes(source))
  const flags = names.filter((flag) => !anonymity[flag] && !wasChecked(flag))
  return [
    ...flags.map((flag) => `network.anonymity.${flag}`),
    ...(sources.includes('reputation_lists') ? [] : ['network.reputation']),
    ...neverComplete.flatMap((name) =>
      evidence[name].length > 0 ? [] : [`network.evidence.${name}`],
    ),
  ]
}

function uncheckedNative(
  { snapshot }: Facts,
  integrity: SessionScored['native_runtime_integrity'],
): string[] {
  if (!integrity || !snapshot?.native) return []
  const { jailbreak_or_root, hooks, code_signing_invalid, simulator_or_emulator, ...native } =
    snapshot.native
  const { hardware_claims_mismatch, sim_posture, app_provenance } = native.integrity ?? {}
  const reports = {
    jailbreak_or_root,
    hooks,
    debugger: native.debugger,
    code_signing: code_signing_invalid,
    simulator_or_emulator,
    debug_posture: native.debugger,
    hardware_claims_mismatch: hardware_claims_mismatch?.detected ?? null,
    sim_posture: sim_posture?.detected ?? null,
    app_provenance: app_provenance?.detected ?? null,
  }
  const unreported = Object.entries(reports).flatMap(([name, report]) =>
    report === null ? [name] : [],
  )
  return unreported.map((name) => `native_runtime_integrity.${name}`)
}

// Returns the members that only the app itself reports.
function claimedOf(members: ScoredMembers): string[] {
  const names = [
    'native_runtime_integrity',
    'native_app',
    'native_carrier',
    'native_motion_print',
    'install_id',
  ] as const
  return names.filter((name) => members[name] !== null)
}
