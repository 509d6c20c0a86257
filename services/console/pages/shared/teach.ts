import type { Engines, LoggedInPerson } from '../../schemas.ts'
import { send } from './api.ts'
import { person } from './person.ts'
import { serverPath } from './server-path.ts'

interface QuestionsModule {
  answerQuestions(questions: object[]): Promise<object[]>
}

export const engineNames: Record<string, string> = {
  blink: 'Blink (Chrome, Edge)',
  gecko: 'Gecko (Firefox)',
  webkit: 'WebKit (Safari)',
  webkitgtk: 'WebKitGTK',
}

const script = `${serverPath}/console/assets/questions.js`

/** Answers the deployment's engine questions in this browser and submits the answers. Throws a `RequestFailure`. */
export async function teachThisEngine(): Promise<void> {
  const { data } = await send<{ data: { questions: object[] } }>('/engines/questions')
  const { answerQuestions }: QuestionsModule = await import(script)
  await send('/engines', {
    method: 'POST',
    body: { answers: await answerQuestions(data.questions) },
  })
}

export const canTeach = ({ role, environments }: LoggedInPerson): boolean =>
  role === 'admin' && environments.includes('live')

/** Teaches this browser's engine at login under `tidegate dev`, so that the first sessions are scored with it. */
export async function teachAtLogin(): Promise<void> {
  if (!person.value || !canTeach(person.value)) return
  const { data } = await send<{ data: Engines }>('/engines')
  const ownEngine = data.engines.find(({ engine }) => engine === data.own_engine)
  if (data.teaches_at_login && ownEngine && !ownEngine.is_learned) await teachThisEngine()
}
