import type { World } from '../world.ts'

const name = 'Bots outside Germany'
const query = 'verdict=bot&country[not]=DE&last=24h'

/** Saved views: made, refused, listed, changed and deleted. One stays. */
export async function views({ record, recordEach, read, own, live, test }: World): Promise<void> {
  const path = `${own}/views`
  const { id } = await read('save view', `POST ${path}`, live, { name, query })
  await recordEach('save view', `POST ${path}`, live, {
    'nothing in it': {},
    'empty name': { name: ' ', query },
    'name that is taken': { name: name.toUpperCase(), query },
    'name of a user': { name: 'Ada', query: 'client_user_id=ada' },
    'wrong country': { name: 'Germany', query: 'country=Germany' },
    'unknown filter': { name: 'Red', query: 'color=red' },
    'another one': { name: 'Sign-ups', query: 'page_path=/signup&group=network' },
  })
  await record('list views', `GET ${path}`, live)
  await record('list views: of the test environment', `GET ${path}`, test)
  await recordEach('update view', `PATCH ${path}/${id}`, live, {
    'nothing in it': {},
    'another name': { name: 'Bots abroad' },
    'another query': { query: 'verdict=bot&country[not]=DE&country[not]=AT' },
  })
  await record('delete view of another environment', `DELETE ${path}/${id}`, test)
  await record('delete view', `DELETE ${path}/${id}`, live)
  await record('delete view again', `DELETE ${path}/${id}`, live)
}
