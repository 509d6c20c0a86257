import { useState } from 'preact/hooks'
import type { Engines } from '../../schemas.ts'
import { useResponse } from '../shared/api.ts'
import { MutationFailure, useMutation } from '../shared/mutation.tsx'
import { FactList, Panel } from '../shared/panel.tsx'
import { person } from '../shared/person.ts'
import { canTeach, engineNames, teachThisEngine } from '../shared/teach.ts'
import { Loaded } from '../shell/loaded.tsx'

export function EnginesPanel() {
  // Polled, because visitors also teach engines, and answers count only after a few seconds.
  const engines = useResponse<{ data: Engines }>('/engines', { pollMs: 5000 })
  return <Loaded response={engines}>{({ data }) => <EngineProgress engines={data} />}</Loaded>
}

function EngineProgress({ engines: { engines, own_engine } }: { engines: Engines }) {
  const { run, failure } = useMutation()
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
        Tidegate learns each engine from visitors, or when you teach it with your browser. Until
        then, sessions of that engine without natural input are inconclusive.
      </p>
      {person.value && canTeach(person.value) && own_engine && (
        <p>
          <button type="button" disabled={state === 'teaching'} onClick={teach}>
            Teach {engineNames[own_engine] ?? own_engine} with this browser
          </button>{' '}
          <span role="status">
            {state === 'teaching' && 'Answering questions. This takes up to a minute.'}
            {state === 'taught' && 'Learned. New sessions use it within seconds.'}
          </span>
        </p>
      )}
      <MutationFailure failure={failure} />
    </Panel>
  )
}
