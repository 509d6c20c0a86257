import type { World } from '../world.ts'

const name = 'Bots outside Germany'
const query = 'verdict=bot&country[not]=DE&last=24h'

/** Saved views: made, refused, listed, changed and deleted. One stays. */
export async function views(world: World): Promise<void> {
  const { record, recordEach, read, own, live, test } = world
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
  await alerts(world, id)
  await record('delete view of another environment', `DELETE ${path}/${id}`, test)
  await record('delete view', `DELETE ${path}/${id}`, live)
  await record('delete view again', `DELETE ${path}/${id}`, live)
}

async function alerts(
  { record, recordEach, read, own, live, test }: World,
  view_id: string,
): Promise<void> {
  const path = `${own}/alerts`
  const alert = { view_id, kind: 'count', threshold: 60 }
  const { id } = await read('create alert', `POST ${path}`, live, alert)
  await recordEach('create alert', `POST ${path}`, live, {
    'nothing in it': {},
    'unknown view': { ...alert, view_id: `view_${'0'.repeat(26)}` },
    'share above 100': { ...alert, kind: 'share', threshold: 101 },
    'window of a minute': { ...alert, window_minutes: 1 },
  })
  await record('create alert by a test key', `POST ${path}`, test, alert)
  await record('list alerts', `GET ${path}`, live)
  await recordEach('update alert', `PATCH ${path}/${id}`, live, {
    'nothing in it': {},
    'another threshold': { threshold: 100 },
  })
  await record('delete alert of another environment', `DELETE ${path}/${id}`, test)
  await record('delete alert', `DELETE ${path}/${id}`, live)
  await record('delete alert again', `DELETE ${path}/${id}`, live)
}
