import { ChangeFailure } from './change.tsx'
import type { ListPages } from './pages.ts'

/** A button that loads the next page, if there is one. */
export function NextPageButton<Row>({ loadNext, failure }: ListPages<Row>) {
  return (
    <>
      <ChangeFailure failure={failure} />
      {loadNext && (
        <button type="button" onClick={loadNext}>
          Load more
        </button>
      )}
    </>
  )
}
