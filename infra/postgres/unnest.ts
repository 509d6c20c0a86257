type Value = string | number | boolean | Buffer | null

/** A column to write: its SQL element type and where its value comes from. No array types: unnest flattens them. */
export interface Column<Row> {
  name: string
  type: string
  of: (row: Row) => Value
}

export interface Unnested {
  /** Column names, comma-separated. */
  names: string
  /** `unnest($1::text[], ...)`, one parameter a column. */
  source: string
  values: Value[][]
}

/** Rows as one array parameter a column, so that a batch of any size is one statement. */
export function unnest<Row>(columns: Column<Row>[], rows: Row[], firstParameter = 1): Unnested {
  return {
    names: columns.map(({ name }) => name).join(', '),
    source: `unnest(${columns.map(({ type }, i) => `$${firstParameter + i}::${type}[]`).join(', ')})`,
    values: columns.map(({ of }) => rows.map(of)),
  }
}
