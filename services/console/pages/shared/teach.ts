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

/** Lets this browser answer the deployment's questions for the organization. Throws a `RequestFailure`. */
export async function teachThisBrowser(): Promise<void> {
  const { data } = await send<{ data: { questions: object[] } }>('/engines/questions')
  const { answerQuestions }: QuestionsModule = await import(script)
  await send('/engines', {
    method: 'POST',
    body: { answers: await answerQuestions(data.questions) },
  })
}

export const mayTeach = ({ role, environments }: LoggedInPerson): boolean =>
  role === 'admin' && environments.includes('live')

/** Under `tidegate dev` a browser teaches its engine when somebody logs in, so that the first sessions are judged by it. */
export async function teachAtLogin(): Promise<void> {
  if (!person.value || !mayTeach(person.value)) return
  const { data } = await send<{ data: Engines }>('/engines')
  const own = data.engines.find(({ engine }) => engine === data.own_engine)
  if (data.teaches_at_login && own && !own.is_learned) await teachThisBrowser()
}
