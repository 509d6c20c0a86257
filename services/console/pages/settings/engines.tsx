import { useState } from 'preact/hooks'
import type { Engines } from '../../schemas.ts'
import { useResponse } from '../shared/api.ts'
import { ChangeFailure, useChange } from '../shared/change.tsx'
import { FactList, Panel } from '../shared/parts.tsx'
import { person } from '../shared/person.ts'
import { canTeach, engineNames, teachThisEngine } from '../shared/teach.ts'
import { Loaded } from '../shell/states.tsx'

/** Learning progress by engine, and a button to teach this browser's. */
export function EnginesPanel() {
  // Polled, because visitors teach engines too, and a lesson takes effect after a few seconds.
  const engines = useResponse<{ data: Engines }>('/engines', { everyMs: 5000 })
  return <Loaded response={engines}>{({ data }) => <EngineProgress engines={data} />}</Loaded>
}

function EngineProgress({ engines: { engines, own_engine } }: { engines: Engines }) {
  const { run, failure } = useChange()
  const [state, setState] = useState<'idle' | 'teaching' | 'taught'>('idle')
  const teach = () =>
    run(async () => {
      setState('teaching')
      try {
        await teachThisEngine()
        setState('taught')
      } catch (error) {
        setState('idle')
        throw error
      }
    })
  const progress = engines.map(({ engine, is_learned, visitors, visitors_needed }) => [
    engineNames[engine] ?? engine,
    is_learned ? 'learned' : `${visitors} of ${visitors_needed} visitors`,
  ])
  return (
    <Panel title="Browser engines">
      <FactList facts={Object.fromEntries(progress)} />
      <p class="hint">
        Until an engine is learned, sessions of its browsers are inconclusive without natural input.
        It is learned from visitors, or when you teach it.
      </p>
      {person.value && canTeach(person.value) && own_engine && (
        <p>
          <button type="button" disabled={state === 'teaching'} onClick={teach}>
            Teach {engineNames[own_engine] ?? own_engine} with this browser
          </button>{' '}
          <span role="status">
            {state === 'teaching' && 'Answering questions. This takes up to a minute.'}
            {state === 'taught' && 'Learned. It applies to new sessions within seconds.'}
          </span>
        </p>
      )}
      <ChangeFailure failure={failure} />
    </Panel>
  )
}
