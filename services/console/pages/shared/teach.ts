import type { Engines, LoggedInPerson } from '../../schemas.ts'
import { serverPath } from './address.ts'
import { callApi } from './api.ts'
import { person } from './person.ts'

interface QuestionsModule {
  answerQuestions(questions: object[]): Promise<object[]>
}

export const engineNames: Record<string, string> = {
  blink: 'Blink (Chrome, Edge)',
  gecko: 'Gecko (Firefox)',
  webkit: 'WebKit (Safari)',
  webkitgtk: 'WebKitGTK',
}

const questionsScript = `${serverPath}/console/assets/questions.js`

/** Answers the engine questions in this browser and sends the answers to the server. Throws `RequestFailure`. */
export async function teachThisEngine(): Promise<void> {
  const { data } = await callApi<{ data: { questions: object[] } }>('/engines/questions')
  const { answerQuestions }: QuestionsModule = await import(questionsScript)
  await callApi('/engines', {
    method: 'POST',
    body: { answers: await answerQuestions(data.questions) },
  })
}

export const canTeach = ({ role, environments }: LoggedInPerson): boolean =>
  role === 'admin' && environments.includes('live')

/** Under `tidegate dev`, teaches this browser's engine at login, before the first sessions are scored. */
export async function teachAtLogin(): Promise<void> {
  if (!person.value || !canTeach(person.value)) return
  const { data } = await callApi<{ data: Engines }>('/engines')
  const ownEngine = data.engines.find(({ engine }) => engine === data.own_engine)
  if (data.teaches_at_login && ownEngine && !ownEngine.is_learned) await teachThisEngine()
}
