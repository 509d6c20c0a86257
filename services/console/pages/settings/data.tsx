import { useState } from 'preact/hooks'
import type { Organization } from '../../../organizations/schemas.ts'
import type { ScoringModelResponse } from '../../../scoring/model/schemas.ts'
import type { Engines } from '../../schemas.ts'
import { hrefOf } from '../shared/address.ts'
import { useResponse } from '../shared/api.ts'
import { ApiRequest } from '../shared/api-request.tsx'
import { useCounts } from '../shared/counts.ts'
import { formatNumber, pluralize } from '../shared/format.ts'
import { MutationFailure, useMutation } from '../shared/mutation.tsx'
import { FactPanel } from '../shared/panel.tsx'
import { organizationPath, person } from '../shared/person.ts'
import { isoTime, now } from '../shared/span.ts'
import { canTeach, engineNames, teachThisEngine } from '../shared/teach.ts'
import { RelativeTime } from '../shared/values.tsx'
import { Loaded } from '../shell/loaded.tsx'

const modelPath = '/v1/scoring/model'

/** Retention, limits and usage, scoring model and browser engines. */
export function DataAndLimits() {
  const path = organizationPath()
  const organization = useResponse<{ data: Organization }>(path)
  const model = useResponse<{ data: ScoringModelResponse }>(modelPath)
  // Polled, because visitors also teach engines, and answers count only after a few seconds.
  const engines = useResponse<{ data: Engines }>('/engines', { pollMs: 5000 })
  return (
    <>
      <Loaded response={organization} lines={6}>
        {({ data: { data_policy, rate_limits } }) => (
          <div class="columns">
            {data_policy && <FactPanel title="Retention" facts={retentionFacts(data_policy)} />}
            <Limits limits={rate_limits} />
          </div>
        )}
      </Loaded>
      <div class="columns">
        <Loaded response={model}>
          {({ data: { id, is_standard, effective_at } }) => (
            <FactPanel
              title="Scoring model"
              facts={{
                Model: `${id}, ${is_standard ? 'standard' : 'specific to this organization'}`,
                'Active since': effective_at && <RelativeTime at={effective_at} />,
              }}
            />
          )}
        </Loaded>
        <Loaded response={engines}>{({ data }) => <EnginesPanel engines={data} />}</Loaded>
      </div>
      <ApiRequest paths={[path, modelPath]} />
    </>
  )
}

const inDays = (value: number): string => (value === 0 ? 'forever' : pluralize('day', value))

const retentionFacts = (policy: NonNullable<Organization['data_policy']>) => ({
  Sessions: inDays(policy.kept_days.session_days),
  Decisions: inDays(policy.kept_days.decision_days),
  Visitors: inDays(policy.kept_days.visitor_days),
  Webhooks: inDays(policy.kept_days.webhook_days),
  'IP addresses': policy.shortens_addresses ? 'truncated to the network' : 'full',
  'Minimal mode': policy.allows_minimal_mode ? 'allowed' : 'refused',
})

const dayMs = 86_400_000

function Limits({ limits }: { limits: Organization['rate_limits'] }) {
  const since = isoTime(now.value - (now.value % dayMs))
  const { data: counts } = useCounts(new URLSearchParams({ since }))
  const query = new URLSearchParams({ since, until: isoTime(now.value) })
  return (
    <FactPanel
      title="Usage and limits"
      facts={{
        'Sessions today': counts && (
          <a href={hrefOf({ page: 'sessions', query })}>{formatNumber(counts.data.sessions)}</a>
        ),
        ...(limits && {
          'Publishable keys': `${formatNumber(limits.publishable)} requests per minute`,
          'Secret keys': `${formatNumber(limits.secret)} units per minute`,
          'Scored requests': `${formatNumber(limits.scored_requests)} per minute`,
          'Console session': `${formatNumber(limits.console)} units per minute`,
        }),
      }}
    />
  )
}

function EnginesPanel({ engines: { engines, own_engine } }: { engines: Engines }) {
  const { run, isRunning, failure } = useMutation()
  const [isTaught, setTaught] = useState(false)
  const teach = () =>
    run(async () => {
      setTaught(false)
      await teachThisEngine()
      setTaught(true)
    })
  const progress = engines.map(({ engine, is_learned, visitors, visitors_needed }) => [
    engineNames[engine] ?? engine,
    is_learned ? 'learned' : `${visitors} of ${visitors_needed} visitors`,
  ])
  return (
    <FactPanel title="Browser engines" facts={Object.fromEntries(progress)}>
      <p class="hint">
        Tidegate learns each engine from visitors, or when you teach it with your browser. Until
        then, sessions of that engine without natural input are inconclusive.
      </p>
      {person.value && canTeach(person.value) && own_engine && (
        <p>
          <button type="button" disabled={isRunning} onClick={teach}>
            Teach {engineNames[own_engine] ?? own_engine} with this browser
          </button>{' '}
          <span role="status">
            {isRunning && 'Answering questions. This takes up to a minute.'}
            {isTaught && 'Learned. New sessions use it within seconds.'}
          </span>
        </p>
      )}
      <MutationFailure failure={failure} />
    </FactPanel>
  )
}
