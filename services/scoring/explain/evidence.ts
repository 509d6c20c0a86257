import type { AddressNetwork, IpSource } from '../../../infra/ip/network.ts'
import type { RuntimeIntegrity, SessionEvidence, SessionScored } from '../../../schemas/events.ts'
import type { Snapshot } from '../../../schemas/observations.ts'
import type { NativeDetail } from '../device.ts'
import type { Facts } from '../session/facts.ts'
import { hasKnownAge } from './findings.ts'

export type Described = NativeDetail & Pick<SessionScored, 'runtime_integrity' | 'visitor'>

/**
 * `sources` names what was consulted. `unchecked` names members that have their harmless value only because nothing was
 * consulted: those of runtime_integrity by name, others by path. Members that are null need no mention. `attestation` is
 * no member, and stands for an app that nobody attests. `claimed` names members that nothing but the app says.
 */
export function evidenceOf(facts: Facts, described: Described): SessionEvidence {
  return {
    sources: sourcesOf(facts, described),
    unchecked: [
      ...uncheckedRuntime(facts, described.runtime_integrity),
      ...(facts.isMinimal ? leftOut : []),
      ...uncheckedNetwork(facts.network),
      ...uncheckedNative(facts, described.native_runtime_integrity),
      ...(facts.platform === 'web' || wasAttested(facts) ? [] : ['attestation']),
    ],
    missing: facts.missing,
    withheld: facts.withheld,
    impossible: facts.impossible,
    claimed: claimedOf(described),
  }
}

const wasAttested = ({ attestation }: Facts) =>
  ['valid', 'invalid'].includes(attestation?.status ?? '')

function sourcesOf(facts: Facts, { visitor }: Described): string[] {
  const { snapshot, behavioral, document, network, answers, identity } = facts
  const isCompared = answers.engine === 'as_claimed' || answers.engine === 'otherwise'
  const consulted = {
    request_headers: document !== null,
    snapshot: snapshot !== null,
    native_observations: (snapshot?.native ?? null) !== null,
    behavior: behavioral,
    visitor_history: visitor !== null,
    recorded_answers: isCompared && answers.engineBy === 'recorded',
    learned_answers: answers.engineBy === 'learned',
    simulated_answers: answers.engineBy === 'simulated',
    published_ranges: (identity.evidence?.list ?? null) !== null,
    reverse_dns:
      identity.method === 'reverse_dns' || (identity.evidence?.host_name ?? null) !== null,
    signature_directory: identity.method === 'signature',
    attestation: wasAttested(facts),
  }
  const own = Object.entries(consulted).flatMap(([name, was]) => (was ? [name] : []))
  return [...own, ...network.sources]
}

// The minimal mode does without these.
const leftOut = ['canvas', 'graphics', 'audio', 'fonts', 'media'].map(
  (name) => `client_telemetry.${name}`,
)

type Native = NonNullable<Snapshot['native']>
type RuntimeName = keyof RuntimeIntegrity

const nothing = () => []

// By name, the members that its signals read, of a page and of an app. The name counts as checked where all of them are
// there, so members that some browsers do not have, such as `deviceMemory`, are left out.
const inputs: Record<
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
      // Where there is no `chrome`, nothing of it can be an imitation.
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
    app: nothing,
  },
  privacy_hardening_suspected: {
    page: ({ tamper, canvas, audio }) => [
      tamper.brave,
      canvas.noise_detected,
      audio.noise_detected,
    ],
    app: nothing,
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
  // Provisional decisions are not compared with what others sent.
  replay_suspected: { page: (_, { repeats }) => [repeats], app: (_, { repeats }) => [repeats] },
  // Where an agent could have named itself.
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

function uncheckedRuntime(facts: Facts, found: RuntimeIntegrity): string[] {
  const names = Object.keys(found).filter((name): name is RuntimeName => name in found)
  return names.filter((name) => found[name] === 'clean' && !wasChecked(name, facts))
}

function wasChecked(name: RuntimeName, facts: Facts): boolean {
  if (name === 'outdated_environment') return hasKnownAge(facts)
  const { snapshot } = facts
  if (!snapshot) return false
  const { page, app } = inputs[name]
  const seen = snapshot.native ? app(snapshot.native, facts) : page(snapshot, facts)
  return seen.length > 0 && seen.every((value) => value !== null)
}

// Which flags a source can clear. Lists of VPNs and proxies are never complete, so that only a database of them does, and
// none has callback proxies.
const flagSources = {
  vpn: ['anonymity_database'],
  proxy: ['anonymity_database'],
  tor: ['anonymity_database', 'address_lists'],
  hosting: ['anonymity_database', 'address_lists'],
  residential_proxy: ['anonymity_database'],
  relay: ['address_lists'],
  callback_proxy: [],
} as const satisfies Partial<Record<keyof AddressNetwork['anonymity'], readonly IpSource[]>>
// No source has all of these tags and types.
const neverComplete = ['operator_tags', 'client_types'] as const

function uncheckedNetwork({ sources, anonymity, evidence }: AddressNetwork): string[] {
  const all = Object.keys(flagSources).filter(
    (name): name is keyof typeof flagSources => name in flagSources,
  )
  const wasChecked = (flag: keyof typeof flagSources) =>
    flagSources[flag].some((one) => sources.includes(one))
  const flags = all.filter((flag) => !anonymity[flag] && !wasChecked(flag))
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
  found: SessionScored['native_runtime_integrity'],
): string[] {
  if (!found || !snapshot?.native) return []
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

// What an app says of itself and its device, which is all that anybody knows of that.
function claimedOf({
  native_app,
  native_carrier,
  native_motion_print,
  ...described
}: Described): string[] {
  const { native_runtime_integrity, install_id } = described
  const said = {
    native_runtime_integrity,
    native_app,
    native_carrier,
    native_motion_print,
    install_id,
  }
  return Object.entries(said).flatMap(([name, value]) => (value === null ? [] : [name]))
}
