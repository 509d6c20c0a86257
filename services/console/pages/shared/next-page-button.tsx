import { MutationFailure } from './mutation.tsx'
import type { ListPages } from './pages.ts'

/** A button that loads the next page, if there is one. */
export function NextPageButton<Row>({ loadNext, failure }: ListPages<Row>) {
  return (
    <>
      <MutationFailure failure={failure} />
      {loadNext && (
        <button type="button" onClick={loadNext}>
          Load more
        </button>
      )}
    </>
  )
}
