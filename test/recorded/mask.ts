/** Members whose values are random or sealed, whatever they look like. */
const opaque = [
  'documentId',
  'resumeToken',
  'continuityScope',
  'challenge',
  'serverPublicKey',
  'nonce',
  'timingNonce',
  'responseHmac',
  'sealedToken',
  'sealed_token',
  'next_cursor',
  'confirmation_code',
  'public_key',
  'ephemeral_public_key',
  'key_id',
  'salt',
  'iv',
  'ciphertext',
  'tag',
].join('|')

const rules: [kind: string, pattern: RegExp][] = [
  // key_preview: enough of a key to recognise it by.
  ['preview', /\b[ps]k_(?:live|test)_[0-9a-z]{4}\.\.\.[0-9a-z]{4}/g],
  ['key', /\b[ps]k_(?:live|test)_[0-9a-z]{38}\b/g],
  ['secret', /\bwhsec_[0-9A-Za-z+/]{44}={0,2}/g],
  ['token', /\b(?:gtpoll|agt|gtapr|gtack|gtcode|gtrcpt)_[0-9a-z]{26,40}\b/g],
  ['id', /\b[a-z]{2,8}_[0-9a-z]{26}\b|\b[a-z]{2,8}_[0-9a-f]{32}\b/g],
  ['cookie', /(?<=__Host-sid=)[\w-]+/g],
  ['proof', /(?<=[?&]proof=)[\w-]{43}/g],
  ['cursor', /(?<=[?&]cursor=)[\w-]{40,}/g],
  ['document', /(?<=\/documents\/)[\w-]{40,}/g],
  ['opaque', new RegExp(`(?<="(?:${opaque})":\\s?")[^"]+`, 'g')],
  ['challenge', /(?<=tidegate-verification=|"content":\s?")[\w-]{43}/g],
  ['etag', /W\/"[\w-]{22}"/g],
  ['state', /(?<="state":\{"id":")[^"]+/g],
]

/** Kinds whose values begin with what they are, such as `sk_live_`. */
const prefixed = new Set(['id', 'key', 'token'])

/** Texts that get one placeholder each, before values get numbered ones. */
const fixedPlaceholders: [pattern: RegExp, name: string][] = [
  // As a repeated answer names it; the answer's own was replaced before.
  [/\breq_[0-9a-f]{32}\b/g, '<earlier request>'],
  [/(?<="canvasChallenge":\{"ops":)\[.*?\](?=,"width":\d+,"height")/g, '"<drawing>"'],
  [/(?<="engineQuestions":)\[.*?\](?=\}$|,"next":)/g, '"<questions>"'],
  // Repeats are counted a moment later, so they may or may not be there yet.
  [/(?<="repeats":)\{(?:[^{}]|\{[^{}]*\})*\}/g, '"<counts>"'],
  [/,?\{"key":"(?:equal_machine|shared_address)"[^[]*\[[^\]]*\]\}(?=\])/g, ''],
  [/\{"key":"(?:equal_machine|shared_address)"[^[]*\[[^\]]*\]\},/g, ''],
  [/\{"signal":"(?:replayed_snapshot|velocity_address)"[^}]*\},?/g, ''],
  [/(?<="client_count":\s?)(?:null|\d+)/g, '"<count>"'],
  [/,?"shared_address"(?=\])/g, ''],
  // Counted once a minute.
  [/(?<="(?:of_visitors|visitors_with_it)":\s?)\d+/g, '"<count>"'],
  // Another one each hour, which may begin in the middle of a run.
  [/(?<="serverPublicKey":\s?")[^"]+/g, 'of this hour'],
  [/(?<="last_used_at":)(?:null|"[^"]*")/g, '"<time or null>"'],
  [/(?<="(?:(?:evaluation_)?duration|latency_p\d\d)_ms":\s?)\d+/g, '"<milliseconds>"'],
  [/(?<="(?:webhook|X-Foil)-timestamp":\s?")\d+/gi, '<seconds>'],
  // Shown to a person and typed in by another.
  [/(?<="code":")\d{3} \d{3}(?=")/g, '<claim code>'],
  // Just queued, so it may or may not be on its way yet.
  [/(?<="object":"webhook_delivery",[^{}]*"status":")(?:pending|delivering)/g, '<not delivered>'],
]

const minute = 60_000
const day = 24 * 60 * minute
const year = 365 * day
/** After which something is over. */
const terms: [name: string, ms: number][] = [
  ['5 minutes', 5 * minute],
  ['15 minutes', 15 * minute],
  ['1 day', day],
  ['30 days', 30 * day],
  ['90 days', 90 * day],
]

/**
 * A time of this run: what lies ahead as the term that it was given, however long ago. What is further away than a
 * year is no time of this run and stays as it is.
 */
function masked(text: string, at: number, { now, name }: { now: number; name: string }): string {
  const distance = at - now
  if (Math.abs(distance) > year) return text
  if (distance < minute) return `<${name}>`
  const term = terms.find(([, ms]) => distance <= ms)
  return `<${name} in ${term?.[0] ?? 'a year'}>`
}

/**
 * Replaces what differs from run to run. A value keeps its placeholder for the whole run, so that two answers that
 * name the same thing are compared in that, too. Placeholders are numbered in the order in which values appear.
 */
export function createMask(places: Record<string, string>) {
  const known = new Map<string, string>()
  const counts = new Map<string, number>()

  function placeholder(kind: string, value: string): string {
    const found = known.get(value)
    if (found !== undefined) return found
    const name = prefixed.has(kind) ? value.slice(0, value.lastIndexOf('_')) : kind
    const count = (counts.get(name) ?? 0) + 1
    counts.set(name, count)
    known.set(value, `<${name} ${count}>`)
    return `<${name} ${count}>`
  }

  return (text: string, now: number): string => {
    let result = withoutEvidence(text)
    for (const [place, name] of Object.entries(places)) result = result.replaceAll(place, name)
    for (const [pattern, name] of fixedPlaceholders) result = result.replace(pattern, name)
    for (const [kind, pattern] of rules)
      result = result.replace(pattern, (value) => placeholder(kind, value))
    result = result.replace(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{3})?Z/g, (time) =>
      masked(time, Date.parse(time), { now, name: 'time' }),
    )
    return result.replace(
      /(?<=:)\b1[789]\d{11}\b/g,
      (time) => `"${masked(time, Number(time), { now, name: 'epoch' })}"`,
    )
  }
}

interface Exported {
  data: {
    sessions: {
      decisions: { session_id: string; verdict: string }[]
      state: object | null
      link: object | null
    }[]
  }
}

/** Removes what depends on learned answers and durations from the decisions of an export. */
function withoutEvidence(text: string): string {
  if (!text.startsWith('{"data":{"object":"person_export"')) return text
  const answer: Exported = JSON.parse(text)
  for (const session of answer.data.sessions) {
    session.decisions = session.decisions.map(({ session_id, verdict }) => ({
      session_id,
      verdict,
    }))
    session.state &&= {}
    session.link &&= {}
  }
  return JSON.stringify(answer)
}

export type Mask = ReturnType<typeof createMask>
