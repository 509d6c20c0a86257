import { useState } from 'preact/hooks'
import type { Engines } from '../../schemas.ts'
import { useAnswer } from '../shared/api.ts'
import { ChangeFailure, useChange } from '../shared/change.tsx'
import { FactList, Panel } from '../shared/parts.tsx'
import { person } from '../shared/person.ts'
import { engineNames, mayTeach, teachThisBrowser } from '../shared/teach.ts'
import { Loaded } from '../shell/states.tsx'

/** Which engines' answers the deployment knows, and a button to teach that of this browser. */
export function EnginesPanel() {
  // Visitors teach meanwhile, and a lesson of this browser counts a few seconds after it.
  const engines = useAnswer<{ data: Engines }>('/engines', { everyMs: 5000 })
  return <Loaded answer={engines}>{({ data }) => <Learned engines={data} />}</Loaded>
}

function Learned({ engines: { engines, own_engine } }: { engines: Engines }) {
  const { run, failure } = useChange()
  const [state, setState] = useState<'idle' | 'teaching' | 'taught'>('idle')
  const teach = () =>
    run(async () => {
      setState('teaching')
      try {
        await teachThisBrowser()
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
        Visitors teach it, or you do.
      </p>
      {person.value && mayTeach(person.value) && own_engine && (
        <p>
          <button type="button" disabled={state === 'teaching'} onClick={teach}>
            Teach {engineNames[own_engine] ?? own_engine} with this browser
          </button>{' '}
          <span role="status">
            {state === 'teaching' && 'Answering questions. This takes up to a minute.'}
            {state === 'taught' && 'Taught. New sessions are judged by it in a few seconds.'}
          </span>
        </p>
      )}
      <ChangeFailure failure={failure} />
    </Panel>
  )
}
